"""The channel for the tools: the registry of this service, reached from the loop of the tools.

The registry has a thread and a loop of its own, is loaded when first used, and may end and come back at any
time. Whoever asks gets an answer or a typed error within a bound, whatever becomes of it.
"""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any, Final, TypeVar

from agent_bridge.channel.errors import StorageError, TooLargeError
from agent_bridge.channel.writes import Send
from agent_bridge.errors import NotRunningError

if TYPE_CHECKING:
    from agent_bridge.channel.directory import AgentRow
    from agent_bridge.channel.model import AckState
    from agent_bridge.channel.storage.store import Store
    from agent_bridge.channel.writes import Outcome, Write
    from agent_bridge.daemon.registry_host import RegistryHost
    from agent_bridge.registry.hub import Hub
    from agent_bridge.registry.server import RegistryServer

LOAD_SECONDS: Final = 20.0
"""What the registry gets to be loaded; it takes about one."""
RETURN_SECONDS: Final = 3.0
"""What one that failed gets to come back."""
ANSWER_SECONDS: Final = 30.0
"""What it gets for an answer, a slow disk's commit included."""
LAST_SECONDS: Final = 2.0
"""What the last answers of one that ends may take."""
_LOOK_SECONDS = 0.025
_CHECK_SECONDS = 0.5
"""Between two looks whether the registry that was asked is still the one that runs."""

T = TypeVar("T")


class ServiceChannel:
    """`mcp.ports.ChannelPort` over the registry of this process, from any loop, the registry's own too."""

    def __init__(self, host: RegistryHost) -> None:
        self._host = host

    async def register(self, row: AgentRow) -> None:
        """Put a session into the directory, or say anew that it lives. Sessions of the same program in the
        same project stand beside each other."""

        def enter(hub: Hub) -> None:
            now = hub.timeline.now()
            known = hub.directory.find(row.identity, row.agent_id)
            if known is not None and _is_same(known, row):
                hub.publish(hub.directory.heartbeat(row.identity, row.agent_id, now))
            else:
                hub.publish(hub.directory.register(row, now, replaces=False))

        await self._on_hub(enter)

    async def remove(self, identity: str, agent_id: str) -> None:
        """Take a session out of the directory. Nothing where no registry runs: it knows of none then."""
        if self._host.running() is not None:
            await self._on_hub(lambda hub: hub.publish(hub.directory.remove(identity, agent_id)))

    async def rows(self, identity: str) -> list[AgentRow]:
        """What that identity sees of the directory."""
        return await self._on_hub(lambda hub: hub.directory.rows(identity))

    async def reaches(self, identity: str, agent_id: str) -> bool:
        """Whether a socket speaks for that agent."""
        return await self._on_hub(lambda hub: hub.reaches(identity, agent_id))

    async def write(self, write: Write) -> Outcome:
        """Do it; returns after the commit. What was handed over is done even where its caller goes away."""
        if isinstance(write, Send):
            _check_size(write.draft.content, self._host.settings.message_bytes)
        return await self._ask(lambda hub: hub.write(write), ANSWER_SECONDS)

    async def read(self, function: Callable[[Store], T]) -> T:
        """What `function` reads from the store of messages, in a thread of the registry's."""
        return await self._ask(lambda hub: hub.read(function), ANSWER_SECONDS)

    async def settled(
        self, identity: str, message_id: str, states: frozenset[AckState], seconds: float
    ) -> AckState | None:
        """Wait until a message has one of these states or a terminal one, at most so long; its state then."""
        return await self._ask(
            lambda hub: hub.receipts.settled(hub, identity, message_id, states, seconds),
            seconds + ANSWER_SECONDS,
            repeats=False,
        )

    def describe_url(self) -> str:
        """Where the registry listens; empty where it can't."""
        return self._host.url or ""

    async def _on_hub(self, function: Callable[[Hub], T]) -> T:
        async def call(hub: Hub) -> T:
            return function(hub)

        return await self._ask(call, ANSWER_SECONDS)

    async def _ask(
        self, question: Callable[[Hub], Coroutine[Any, Any, T]], seconds: float, *, repeats: bool = True
    ) -> T:
        """The answer. A registry that ends meanwhile is asked once more when it is back, where the question
        `repeats`: messages have ids of their own, all else may be done twice."""
        try:
            return await self._asked(question, seconds)
        except _EndedError:
            if not repeats:
                raise
        return await self._asked(question, seconds)

    async def _asked(self, question: Callable[[Hub], Coroutine[Any, Any, T]], seconds: float) -> T:
        server = await self._loaded()
        try:
            answer = asyncio.wrap_future(server.submit(question(server.hub)))
            try:
                return await self._waited_for(server, answer, seconds)
            finally:
                answer.cancel()
        except StorageError:
            if self._host.running() is server:
                raise
            raise self._ended() from None

    async def _waited_for(self, server: RegistryServer, answer: asyncio.Future[T], seconds: float) -> T:
        loop = asyncio.get_running_loop()
        until = loop.time() + seconds
        while not answer.done() and self._host.running() is server:
            left = until - loop.time()
            if left <= 0:
                raise NotRunningError("The registry doesn't answer", detail=f"waited {seconds:g} s")
            await asyncio.wait({answer}, timeout=min(left, _CHECK_SECONDS))
        # Of one that has ended the last answers come within moments; what is open after that never comes.
        await asyncio.wait({answer}, timeout=LAST_SECONDS)
        if not answer.done() or answer.cancelled():
            raise self._ended()
        return answer.result()

    async def _loaded(self) -> RegistryServer:
        self._host.want()
        loop = asyncio.get_running_loop()
        began = loop.time()
        while (server := self._host.running()) is None:
            waited = loop.time() - began
            reason = self._host.why_not()
            if self._host.is_over or waited > (LOAD_SECONDS if reason is None else RETURN_SECONDS):
                raise NotRunningError(
                    "The registry of messages isn't there",
                    detail=reason or f"it is still being loaded after {waited:.0f} s",
                    remedy="Try again in a while; `agent-bridge status` says more.",
                )
            await asyncio.sleep(_LOOK_SECONDS)
        return server

    def _ended(self) -> _EndedError:
        return _EndedError(
            "The registry of messages ended meanwhile",
            detail=self._host.why_not() or "it is coming back",
            remedy="Whether it was done isn't known: look, or try again in a while.",
        )


class _EndedError(NotRunningError):
    """The registry that was asked has ended before it answered."""


def _check_size(content: str, most: int) -> None:
    size = len(content.encode("utf-8", "surrogatepass"))
    if size > most:
        raise TooLargeError(
            "The message is too large",
            detail=f"{size:,} bytes; a message may have {most:,}",
            remedy="Put it into a file, and say where it is.",
        )


def _is_same(known: AgentRow, row: AgentRow) -> bool:
    """Whether the row says what is known, but for the times."""
    stamped = dataclasses.replace(
        row,
        registered_at=known.registered_at,
        last_heartbeat=known.last_heartbeat,
        healthy=known.healthy,
        beat=known.beat,
    )
    return known == stamped
