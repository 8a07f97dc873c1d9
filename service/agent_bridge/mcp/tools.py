"""The tools that agents get, in the order in which they are listed."""

from __future__ import annotations

from functools import cache

from agent_bridge.mcp import channel_tools, memory_tools
from agent_bridge.mcp.guide_tool import guide_tool
from agent_bridge.mcp.tool import Tool


@cache
def all_tools() -> tuple[Tool, ...]:
    """All of them: those for the memory, those for messages, and the guide, which lists them."""
    others = (*memory_tools.TOOLS, *channel_tools.TOOLS)
    return (*others, guide_tool(others))
