"""What all connections share: the tools and what is said of them, the sessions, the counts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from agent_bridge.mcp.presence import Presence
from agent_bridge.mcp.running import Counts
from agent_bridge.mcp.sessions import Sessions

if TYPE_CHECKING:
    from agent_bridge.mcp.ports import ChannelPort, MemoryPort
    from agent_bridge.mcp.tool import Tool


class Brain:
    """Made once; used by the loop of the Unix socket and by the registry's for HTTP."""

    def __init__(
        self,
        tools: Sequence[Tool],
        catalogue: Mapping[str, Any],
        memory: MemoryPort,
        channel: ChannelPort,
    ) -> None:
        self.tools = tuple(tools)
        self.catalogue = catalogue
        self.counts = Counts()
        self.sessions = Sessions(memory, channel)
        self.presence = Presence(channel)
