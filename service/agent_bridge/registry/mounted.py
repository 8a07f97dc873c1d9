"""What is served beside the registry's own routes, by a room of its own: the tools, at `/mcp`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol

if TYPE_CHECKING:
    from agent_bridge.registry.answers import Receive, Scope
    from agent_bridge.registry.answers import Send as SendBack

MCP_PATH: Final = "/mcp"
MCP_METHODS: Final = ("POST", "GET", "DELETE")


class Mounted(Protocol):
    """Answers requests that were let in. One for a run of the registry, on its loop."""

    async def answer(self, scope: Scope, receive: Receive, send: SendBack, identity: str, limit: int) -> None:
        """One request of `identity`; `limit`: bytes that its body may have. Raises ChannelError."""

    async def close(self) -> None:
        """The registry ends."""
