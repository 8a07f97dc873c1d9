"""What happens on one connection: say who we are, catch up, then read, write, and show that we live."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

from agent_bridge.channel.errors import ChannelError, UnknownError
from agent_bridge.channel.model import Message
from agent_bridge.client import answers
from agent_bridge.client.answers import AnswerError
from agent_bridge.client.cursor import Cursor
from agent_bridge.client.intake import Intake, Mode
from agent_bridge.client.link import Link
from agent_bridge.client.outbox import Outbox, Request
from agent_bridge.client.timing import Timing
from agent_bridge.errors import AgentBridgeError, NotRunningError

PAGE = 100
"""Messages that are fetched from the inbox at a time."""
_ANSWERS = frozenset({"channel.sent", "channel.acked", "channel.error"})
_MISSED_HEARTBEATS = 2
_RECEIPT_AGAIN_S = 1.0


class Connection:
    """Carries the session's state over one link. `run` returns never: it raises what ended the connection.

    `is_for_us` tells which messages are to be shown; `on_event` gets every frame but answers to requests;
    `on_trouble` what is wrong though the connection stands, None when it is right again;
    `room` is set when there may be something to fetch; `wake` when there is something to show.
    """

    def __init__(
        self,
        link: Link,
        *,
        cursor: Cursor,
        intake: Intake,
        outbox: Outbox,
        timing: Timing,
        events: str,
        is_for_us: Callable[[Message], bool],
        on_event: Callable[[Mapping[str, Any]], None],
        on_trouble: Callable[[AgentBridgeError | None], None],
        room: asyncio.Event,
        wake: Callable[[], None],
    ) -> None:
        self._link = link
        self._cursor = cursor
        self._intake = intake
        self._outbox = outbox
        self._timing = timing
        self._events = events
        self._is_for_us = is_for_us
        self._on_event = on_event
        self._on_trouble = on_trouble
        self._room = room
        self._wake = wake

    async def run(self, online: Callable[[], None]) -> None:
        """Live on this connection until it ends; `online` is called once the registry knows us.

        Raises ClosedError and NotRunningError, ChannelError, AnswerError.
        """
        async with asyncio.timeout(self._timing.open_s):
            await self._link.identify(self._cursor.question(), self._events)
            await self._greeting()
        online()
        tasks = [
            asyncio.create_task(part)
            for part in (self._read(), self._write(), self._beat(), self._fetch(), self._look())
        ]
        try:
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            await next(iter(done))
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            self._cursor.replaying = False
            if self._intake.mode is Mode.CATCHING_UP:
                # Only a replay is left here: it goes on from the cursor, with what was held back too.
                self._intake.break_off(Mode.LIVE)

    async def _greeting(self) -> None:
        while True:
            frame = await self._link.receive()
            if frame.get("type") == "identified":
                break
            if frame.get("type") == "error":
                raise answers.refusal(frame.get("data", frame), 400)
            # What is stored comes again, in its order, once the registry knows where we were.
            if "seq" not in frame or frame.get("type") == "snapshot":
                self._on_event(frame)
        if not self._cursor.identified(_epoch(frame), answers.whole(frame, "seq")):
            self._intake.fall_behind()
        elif self._intake.mode is Mode.LIVE:
            self._intake.start()
        self._room.set()
        self._on_event(frame)

    async def _read(self) -> None:
        while True:
            frame = await self._link.receive()
            kind = frame.get("type")
            if kind in _ANSWERS:
                self._answered(str(kind), frame)
                continue
            if kind == "replayed":
                self._replayed(frame)
            elif kind == "resync":
                self._cursor.resync(_epoch(frame), answers.whole(frame, "seq"))
                self._intake.fall_behind()
                self._room.set()
            elif kind == "channel.message":
                self._arrived(frame)
            if isinstance(frame.get("seq"), int) and kind not in ("identified", "snapshot"):
                self._cursor.event(frame["seq"], replayed=frame.get("replay") is True)
            self._on_event(frame)

    def _arrived(self, frame: Mapping[str, Any]) -> None:
        try:
            message = answers.message(frame.get("data"))
        except AnswerError as error:
            self._on_trouble(error)
            return
        if not self._is_for_us(message):
            return
        if frame.get("replay") is True and self._intake.mode is Mode.CATCHING_UP:
            self._intake.feed(message)
        else:
            self._intake.arrive(message)
        self._wake()

    def _replayed(self, frame: Mapping[str, Any]) -> None:
        self._cursor.replayed(answers.whole(frame, "seq"))
        if self._intake.mode is Mode.CATCHING_UP:
            self._intake.finish()
        self._wake()
        self._room.set()

    def _answered(self, kind: str, frame: Mapping[str, Any]) -> None:
        data = frame.get("data")
        again = self._outbox.answered(kind, data if isinstance(data, dict) else frame)
        if again is not None:
            request: Request = again
            loop = asyncio.get_running_loop()
            loop.call_later(_RECEIPT_AGAIN_S, lambda: self._outbox.put_back(request))

    async def _write(self) -> None:
        while True:
            await self._outbox.waiting()
            # A callback that is quick has its receipt in before the one for the arrival has gone.
            await asyncio.sleep(0)
            while (request := self._outbox.pop()) is not None:
                request.size = await self._link.send(request.frame)

    async def _beat(self) -> None:
        missed = 0
        while True:
            await asyncio.sleep(self._timing.heartbeat_s)
            try:
                await self._link.heartbeat()
                missed = 0
            except UnknownError:
                await self._link.register()
                await self._link.identify({}, self._events)
            except NotRunningError:
                missed += 1
                if missed >= _MISSED_HEARTBEATS:
                    raise

    async def _look(self) -> None:
        while True:
            await asyncio.sleep(self._timing.sync_s)
            if self._intake.mode is Mode.LIVE:
                self._intake.fall_behind()
                self._room.set()

    async def _fetch(self) -> None:
        while True:
            await self._room.wait()
            self._room.clear()
            while self._intake.mode is Mode.BEHIND and self._intake.has_room and not self._cursor.replaying:
                await self._fetch_once()

    async def _fetch_once(self) -> None:
        run = self._intake.start()
        before: str | None = None
        try:
            while True:
                page = await self._link.inbox(before, PAGE)
                if self._intake.run != run:
                    return
                before = page.next_before
                if not self._feed(page.items) or before is None:
                    break
        except (ChannelError, NotRunningError, AnswerError) as error:
            self._on_trouble(error)
            if self._intake.run == run:
                self._intake.break_off(Mode.BEHIND)
            await asyncio.sleep(self._timing.first_s)
            return
        except asyncio.CancelledError:
            self._intake.break_off(Mode.BEHIND)
            raise
        self._intake.finish()
        self._on_trouble(None)
        self._wake()

    def _feed(self, messages: tuple[Message, ...]) -> bool:
        fed = all(self._intake.feed(message) for message in messages if self._is_for_us(message))
        self._wake()
        return fed


def _epoch(frame: Mapping[str, Any]) -> str | None:
    epoch = frame.get("epoch")
    return epoch if isinstance(epoch, str) else None
