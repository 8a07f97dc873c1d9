"""What the server says of itself to a model, in every session.

Claude Code puts it into the first request, Codex into the description of the tools, OpenCode and Gemini CLI
into the prompt. It stays below `tool.DESCRIPTION_CHARACTERS`; depth is in `agent_bridge_guide`.
"""

from __future__ import annotations

from importlib import resources


def instructions() -> str:
    """The text."""
    return (resources.files("agent_bridge.mcp") / "pages" / "instructions.md").read_text("utf-8").strip()
