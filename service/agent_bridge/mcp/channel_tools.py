"""The tools for messages between agents, in the order in which they are listed."""

from __future__ import annotations

from agent_bridge.mcp.clear_tool import CHANNEL_CLEAR
from agent_bridge.mcp.inbox_tool import CHANNEL_INBOX
from agent_bridge.mcp.list_agents import LIST_AGENTS
from agent_bridge.mcp.message_session import MESSAGE_CLIENT_SESSION
from agent_bridge.mcp.reply_tool import REPLY
from agent_bridge.mcp.tool import Tool

TOOLS: tuple[Tool, ...] = (LIST_AGENTS, MESSAGE_CLIENT_SESSION, CHANNEL_INBOX, REPLY, CHANNEL_CLEAR)
