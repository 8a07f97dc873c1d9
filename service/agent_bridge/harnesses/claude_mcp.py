"""How Claude Code starts our MCP server and lets its tools be used without asking. Pure.

Source: Claude Code 2.1.332, by running it: `.mcp.json` in the project names its servers; one of them runs in
interactive sessions once `enabledMcpjsonServers` (or `enableAllProjectMcpServers`) of any layer of settings
approves it, unless `disabledMcpjsonServers` names it. Every call of a tool asks, and is denied with `-p`,
unless `permissions.allow` has the server; `permissions.deny` wins. Tools of a server without `alwaysLoad` are
names in the first prompt, no tools. `~/.claude.json`, which can name servers too, is written by every running
session and is left alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from agent_bridge.errors import RefusedError
from agent_bridge.harnesses import claude_places, claude_settings, mcp_command
from agent_bridge.harnesses.absent import Absent
from agent_bridge.harnesses.base import Ground, Json, KeyEdit, Notice, Site
from agent_bridge.harnesses.json_edit import json_get

NAME = ".mcp.json"
KEY = ("mcpServers", mcp_command.SERVER)
ENTRY: dict[str, Json] = {"type": "stdio", "command": mcp_command.NAME, "args": [], "alwaysLoad": True}

ENABLED = "enabledMcpjsonServers"
DISABLED = "disabledMcpjsonServers"
ALL_ENABLED = "enableAllProjectMcpServers"
_HARMLESS = frozenset(ENTRY)


def servers_file(ground: Ground) -> Path:
    """The servers of a checkout; each worktree has its own."""
    return ground.checkout / NAME


def edits(site: Site, *, may_change_settings: bool) -> tuple[KeyEdit, ...]:
    """The server in each checkout; in the user's own settings of the main one, that it may be used.

    Nothing is approved where another program stands under our name, or where a person has said no.
    """
    entry = KeyEdit(
        path=servers_file(site),
        format="json",
        key=KEY,
        value=ENTRY,
        why="Claude Code starts our MCP server, which has the memory's and the channel's tools",
        local=True,
    )
    if not may_change_settings or not _is_ours(site) or _said_no(site):
        return (entry,)
    settings = claude_places.local_settings(site)
    allowed = KeyEdit(
        path=settings,
        format="json",
        key=("permissions", "allow"),
        value=mcp_command.TOOLS,
        why="Claude Code would ask before each use of our tools, and refuse them without a person there",
        local=True,
        element=True,
    )
    enabled = KeyEdit(
        path=settings,
        format="json",
        key=(ENABLED,),
        value=mcp_command.SERVER,
        why="Claude Code would ask whether to start our MCP server",
        local=True,
        element=True,
    )
    return (entry, allowed) if _all_enabled(site) else (entry, allowed, enabled)


def notices(site: Site) -> tuple[Notice, ...]:
    """What keeps the tools from being used, by a person's word."""
    return tuple(
        Notice("info", "claude-mcp-refused", f"Claude Code doesn't use our tools here, by {how}.", path)
        for how, path in _said_no(site)
    )


def _is_ours(site: Site) -> bool:
    """Whether the server under our name, if there is one, is just our program."""
    try:
        found = json_get(site.settings(servers_file(site)) or b"", KEY)
    except RefusedError:
        return False
    if isinstance(found, Absent):
        return True
    if not isinstance(found, dict):
        return False
    plain = found.keys() <= _HARMLESS and found.get("type", "stdio") == "stdio" and not found.get("args")
    return plain and found.get("command") == mcp_command.NAME


def _all_enabled(site: Site) -> bool:
    layers = (claude_settings.parse(site.settings(path) or b"")[0] for path in claude_places.layers(site))
    return any(values.get(ALL_ENABLED) is True for values in layers)


def _said_no(site: Site) -> list[tuple[str, Path]]:
    """By which settings a person keeps Claude from using our server, in words and with their file."""
    found = []
    for path in claude_places.layers(site):
        values = claude_settings.parse(site.settings(path) or b"")[0]
        permissions = values.get("permissions")
        denied = permissions.get("deny") if isinstance(permissions, dict) else None
        if any(_is_of_ours(rule) for rule in _texts(denied)):
            found.append((f"permissions.deny in {path}", path))
        if mcp_command.SERVER in _texts(values.get(DISABLED)):
            found.append((f"{DISABLED} in {path}", path))
    return found


def _is_of_ours(rule: str) -> bool:
    """Whether a rule is about all of our tools; one tool that is denied stays so beside our rule."""
    return rule in (mcp_command.TOOLS, f"{mcp_command.TOOLS}__*", "mcp__*")


def _texts(value: object) -> Iterator[str]:
    return (text for text in (value if isinstance(value, list) else ()) if isinstance(text, str))
