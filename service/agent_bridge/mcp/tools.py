"""The tools that agents get, in the order in which they are listed."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from importlib.util import find_spec

from agent_bridge.mcp.guide_tool import guide_tool
from agent_bridge.mcp.tool import Tool

_ROOMS = ("agent_bridge.mcp.memory_tools", "agent_bridge.mcp.channel_tools")


@cache
def all_tools() -> tuple[Tool, ...]:
    """All of them: those for the memory, those for messages, and the guide, which lists them."""
    others: tuple[Tool, ...] = ()
    for name in _ROOMS:
        if find_spec(name) is not None:
            others += import_module(name).TOOLS
    return (*others, guide_tool(others))
