"""Sessions in the channel's directory: entered when they come, said anew while they live, then taken out.

All of it happens in the background: the registry may have to be loaded first, and may be away for a while.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from agent_bridge.errors import AgentBridgeError
from agent_bridge.log import get_logger
from agent_bridge.mcp.own_row import root_of, row_of

if TYPE_CHECKING:
    from agent_bridge.mcp.ports import ChannelPort
    from agent_bridge.mcp.sessions import Connected

BEAT_SECONDS: Final = 30.0
"""Between two signs of life of a session."""
END_SECONDS: Final = 3.0
"""What taking one out may take."""
_log = get_logger("mcp")


class Presence:
    """Keeps the rows of sessions; each session on the loop that serves it."""

    def __init__(self, channel: ChannelPort) -> None:
        self._channel = channel
        self._beating: dict[Connected, asyncio.Task[None]] = {}
        self._is_over = False

    def begin(self, connected: Connected) -> None:
        """Enter the session from now on; nothing where it is entered already."""
        if connected not in self._beating and not connected.is_closed:
            self._beating[connected] = asyncio.create_task(self._beat(connected))

    def stop(self) -> None:
        """The service ends, and the directory with it: nothing is taken out any more."""
        self._is_over = True

    async def moved(self, connected: Connected, before: str) -> None:
        """It has another id now: its row of before goes."""
        await self._remove(connected.session.hello.identity, before)
        beating = self._beating.pop(connected, None)
        if beating is not None:
            beating.cancel()
            self.begin(connected)

    async def end(self, connected: Connected, *, is_last: bool) -> None:
        """It has gone. `is_last`: nobody else goes by its id, so that its row goes too."""
        beating = self._beating.pop(connected, None)
        if beating is not None:
            beating.cancel()
        if is_last and not self._is_over:
            await self._remove(connected.session.hello.identity, connected.session.agent_id)

    async def _beat(self, connected: Connected) -> None:
        session = connected.session
        told: str | None = None
        while True:
            try:
                root = await asyncio.to_thread(root_of, session)
                await self._channel.register(row_of(session, root))
                told = None
            except AgentBridgeError as error:
                if told != error.title:  # what fails again and again is logged once
                    _log.warning("a session can't be entered into the directory", error=error)
                told = error.title
            except Exception as error:  # noqa: BLE001 - a fault of ours here must not end the session
                if told != type(error).__name__:
                    _log.error("a session can't be entered into the directory", exc_info=error)
                told = type(error).__name__
            await asyncio.sleep(BEAT_SECONDS)

    async def _remove(self, identity: str, agent_id: str) -> None:
        """A row that stays is swept by the registry, for want of a sign of life."""
        try:
            await asyncio.wait_for(self._channel.remove(identity, agent_id), END_SECONDS)
        except (AgentBridgeError, TimeoutError) as error:
            _log.warning("a session's row can't be taken out", agent_id=agent_id, reason=str(error))
