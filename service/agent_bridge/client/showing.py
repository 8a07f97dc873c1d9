"""Handing messages to the program's callback: of each conversation one after the other."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from agent_bridge.channel.model import AckState, Message
from agent_bridge.client.intake import Intake
from agent_bridge.client.seen import Seen
from agent_bridge.client.timing import Timing
from agent_bridge.log import get_logger

_log = get_logger("client")


@dataclass(frozen=True, slots=True)
class Receipt:
    """What the callback says has become of a message."""

    state: AckState
    detail: str | None = None


DISPLAYED = Receipt(AckState.DISPLAYED)
"""The program that it was for has taken the message."""


def failed(reason: str) -> Receipt:
    """Given up, and why: the sender is told."""
    return Receipt(AckState.FAILED, reason)


Callback = Callable[[Message], Awaitable[Receipt | None]]
"""Shows a message. None: nobody has seen it yet; the callback's owner acks it some other time. What it raises
is logged, and the message shown again: `Timing.again_s`, `Timing.tries`."""


class Showing:
    """`parallel` conversations at a time. `receipt` passes on what became of a message; `calm` is awaited
    before the next one is taken; `on_room` is told when one has gone."""

    def __init__(
        self,
        intake: Intake,
        seen: Seen,
        callback: Callback,
        *,
        receipt: Callable[[Message, Receipt], None],
        calm: Callable[[], Awaitable[None]],
        on_room: Callable[[], None],
        timing: Timing,
        parallel: int,
    ) -> None:
        self._intake = intake
        self._seen = seen
        self._callback = callback
        self._receipt = receipt
        self._calm = calm
        self._on_room = on_room
        self._timing = timing
        self._parallel = parallel
        self._more = asyncio.Event()
        self._stopping = False
        self._workers: list[asyncio.Task[None]] = []
        self._timers: dict[str, asyncio.TimerHandle] = {}
        self._tries: dict[str, int] = {}
        self.shown = 0
        self.raised = 0

    def start(self) -> None:
        """Begin, on the running loop."""
        self._workers = [asyncio.create_task(self._work()) for _ in range(self._parallel)]

    def wake(self) -> None:
        """Something may be there to be taken."""
        self._more.set()

    async def stop(self, grace_s: float) -> None:
        """Take nothing more; callbacks under way get `grace_s`, then they are cancelled."""
        self._stopping = True
        for timer in self._timers.values():
            timer.cancel()
        self._more.set()
        if self._workers:
            _done, late = await asyncio.wait(self._workers, timeout=grace_s)
            for worker in late:
                worker.cancel()
            await asyncio.gather(*self._workers, return_exceptions=True)

    async def _work(self) -> None:
        while not self._stopping:
            message = self._intake.take()
            if message is None:
                self._more.clear()
                await self._more.wait()
                continue
            await self._show(message)
            await self._calm()

    async def _show(self, message: Message) -> None:
        try:
            receipt = await self._callback(message)
        except Exception:  # noqa: BLE001 - whatever it is, the message stays and the others go on
            _log.exception("a message could not be shown", message_id=message.message_id)
            self.raised += 1
            receipt = self._give_up_or_wait(message)
            if receipt is None:
                return
        else:
            self._tries.pop(message.message_id, None)
            self.shown += 1
        if receipt is not None:
            if receipt.state in (AckState.DISPLAYED, AckState.ANSWERED):
                self._seen.settle(message.message_id, message.attempt_count)
            self._receipt(message, receipt)
        self._intake.done(message)
        self._more.set()
        self._on_room()

    def _give_up_or_wait(self, message: Message) -> Receipt | None:
        tries = self._tries.pop(message.message_id, 0) + 1
        if tries >= self._timing.tries:
            return failed(f"it could not be shown, {tries} times")
        self._tries[message.message_id] = tries
        loop = asyncio.get_running_loop()
        self._timers[message.message_id] = loop.call_later(self._timing.again_s, self._again, message)
        return None

    def _again(self, message: Message) -> None:
        del self._timers[message.message_id]
        self._intake.again(message)
        self._more.set()
