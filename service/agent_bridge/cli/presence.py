"""The person's row in the list of sessions, while a command waits or looks on: they can be written to."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from agent_bridge.channel.errors import UnknownError
from agent_bridge.cli.person import Person
from agent_bridge.client import address
from agent_bridge.client.http import Registry
from agent_bridge.errors import AgentBridgeError

_SECONDS = 5.0
"""How long the registry may take to answer."""
_BEATS = 3
"""Signs of life within the time after which a session counts as silent."""


class Presence:
    """The row; `refresh` asks for a sign of life at once, as after a restart of the registry."""

    def __init__(self, who: Person, unhealthy_s: float) -> None:
        self._who = who
        self._every = unhealthy_s / _BEATS
        self._wanted = asyncio.Event()
        self._is_entered = False
        self._has_left = False
        self._lock = threading.Lock()  # a thread goes on when its task is cancelled

    def refresh(self) -> None:
        """Give a sign of life now."""
        self._wanted.set()

    async def keep(self) -> None:
        """Give signs of life until cancelled. While the registry is away there is nobody to give them to."""
        while True:
            with suppress(AgentBridgeError):  # the stream beside it tells that the registry is away
                await asyncio.to_thread(self._beat)
            with suppress(TimeoutError):
                await asyncio.wait_for(self._wanted.wait(), self._every)
            self._wanted.clear()

    async def leave(self) -> None:
        """Take the row out; without a registry it is gone already."""
        with suppress(AgentBridgeError):
            await asyncio.to_thread(self._deregister)

    def _beat(self) -> None:
        with self._lock, Registry(address.find(), self._who.identity, timeout=_SECONDS) as registry:
            if self._has_left:
                return
            if self._is_entered:
                with suppress(UnknownError):
                    registry.heartbeat(self._who.agent_id)
                    return
            # A row that is there already may be of another command of this person, which is about to end.
            registry.register(self._who.registration())
            self._is_entered = True

    def _deregister(self) -> None:
        with self._lock, Registry(address.find(), self._who.identity, timeout=_SECONDS) as registry:
            self._has_left = True
            registry.deregister(self._who.agent_id)


@asynccontextmanager
async def present(who: Person, unhealthy_s: float) -> AsyncIterator[Presence]:
    """Be in the list of sessions within the block; `unhealthy_s` is the setting `agent_unhealthy_s`."""
    presence = Presence(who, unhealthy_s)
    keeping = asyncio.create_task(presence.keep())
    try:
        yield presence
    finally:
        keeping.cancel()
        with suppress(asyncio.CancelledError):
            await keeping
        await presence.leave()
