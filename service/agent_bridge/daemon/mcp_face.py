"""The tools as the registry mounts them at `/mcp`: loaded with the first request."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from agent_bridge.channel.errors import StorageError
from agent_bridge.registry.calls import GoneError, TooSlowError

if TYPE_CHECKING:
    from agent_bridge.daemon.mcp_parts import McpParts
    from agent_bridge.mcp.http import HttpSessions


class McpFace:
    """`registry.mounted.Mounted`, for one run of the registry. Used on its loop."""

    def __init__(self, parts: Callable[[], McpParts | None]) -> None:
        self._parts = parts
        self._sessions: HttpSessions | None = None
        self._loading = asyncio.Lock()

    async def answer(self, scope: Any, receive: Any, send: Any, identity: str, limit: int) -> None:  # noqa: ANN401 - ASGI
        """One request of `identity`. Raises ChannelError where the tools can't be served."""
        sessions = await self._loaded()
        try:
            await sessions.answer(scope, receive, send, identity, limit)
        except TimeoutError:
            raise TooSlowError("The body took too long to come") from None
        except ConnectionError:
            raise GoneError("The caller has left") from None

    async def close(self) -> None:
        """The registry ends, and with it all sessions over HTTP."""
        if self._sessions is not None:
            await self._sessions.close()

    async def _loaded(self) -> HttpSessions:
        async with self._loading:
            parts = self._parts()
            if parts is None:
                raise StorageError("The tools aren't served", remedy="`agent-bridge status` tells why.")
            if self._sessions is None:
                self._sessions = await asyncio.to_thread(_sessions, parts)
            return self._sessions


def _sessions(parts: McpParts) -> HttpSessions:
    server = parts.server()
    from agent_bridge.mcp.http import HttpSessions

    return HttpSessions(parts.brain(), server)
