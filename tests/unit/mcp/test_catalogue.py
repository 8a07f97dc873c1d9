"""What of the catalogue is meant for one client."""

from __future__ import annotations

import pytest

from agent_bridge.mcp.catalogue import wire_tool
from agent_bridge.mcp.tool import Tool
from agent_bridge.mcp.tools import all_tools


@pytest.mark.parametrize("tool", all_tools(), ids=lambda tool: tool.name)
def test_claude_code_is_to_have_it_without_looking_for_it(tool: Tool) -> None:
    assert wire_tool(tool)["_meta"] == {"anthropic/alwaysLoad": True}
