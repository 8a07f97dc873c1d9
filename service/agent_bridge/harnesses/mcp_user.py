"""Our MCP server in the settings that a user has for all projects, where a person asks for it there. Pure.

`init` puts it into a project's own files; Codex's are for all projects anyway. Claude Code's file for all
projects, `~/.claude.json`, is rewritten by every running session, so only its own command may change it.
Sources: as in `opencode_mcp`, `gemini_mcp`, `antigravity_mcp`, `codex_mcp`.
"""

from __future__ import annotations

from pathlib import Path

from agent_bridge.harnesses import (
    antigravity_mcp,
    codex_config,
    codex_mcp,
    gemini_config,
    gemini_mcp,
    mcp_command,
    opencode_config,
)
from agent_bridge.harnesses import opencode_mcp as opencode
from agent_bridge.harnesses.base import Json, KeyEdit, Site

BY_COMMAND = {"claude-code": ("claude", "mcp", "add", "--scope", "user", mcp_command.SERVER, "--")}
"""What a person has to type instead, before our command."""

_WHY = "asked for by `mcp config --global`"


def files(name: str, site: Site) -> tuple[Path, ...]:
    """Where a harness's user may have our server for all projects; () where only its own command knows."""
    env = site.env
    if name == "opencode":
        return opencode_config.user_files(env)
    if name == "gemini":
        return (gemini_config.user_file(env),)
    return antigravity_mcp.user_files(env) if name == "antigravity" else ()


def key(name: str) -> tuple[str, ...]:
    """Under which key the server stands there."""
    return {"opencode": opencode.KEY, "gemini": gemini_mcp.KEY}.get(name, antigravity_mcp.KEY)


def edits(name: str, site: Site, command: tuple[str, ...]) -> tuple[KeyEdit, ...]:
    """The server in a harness's settings for all projects; () where only its own command may change them."""
    if name == "codex":
        return codex_mcp.server(codex_config.user_file(site.env), command)
    places = files(name, site)
    if not places:
        return ()
    there = [path for path in places if site.settings(path) is not None]
    usual = next((path for path in places if path.name == "opencode.json"), places[0])
    return (KeyEdit(there[0] if there else usual, "json", key(name), _entry(name, command), _WHY),)


def _entry(name: str, command: tuple[str, ...]) -> dict[str, Json]:
    if name == "opencode":
        return {"type": "local", "command": list(command), "enabled": True}
    entry: dict[str, Json] = {"command": command[0], "args": list(command[1:])}
    return entry | {"trust": True} if name == "gemini" else entry
