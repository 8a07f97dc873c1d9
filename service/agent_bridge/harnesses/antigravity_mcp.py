"""Our MCP server for Antigravity: `mcpServers.agent-bridge` in `.agents/mcp_config.json`. Pure.

Source: Google's documentation and public issues up to `agy` 1.1.25; none of it was run by us. The file is
strict JSON: a comment, a trailing comma or a root that is no object ends `agy` at its start, so such a file
is left as it is. An entry with a value that is no text, in `args` say, is dropped silently.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from agent_bridge import paths
from agent_bridge.harnesses import agents_md, mcp_command, mcp_entry
from agent_bridge.harnesses.base import Ground, KeyEdit, Notice, Site

FOLDER = ".agents"
FILE = ".agents/mcp_config.json"
KEY = ("mcpServers", mcp_command.SERVER)

_USER_FILES = ("antigravity-cli/mcp_config.json", "antigravity/mcp_config.json", "config/mcp_config.json")
"""Below the home that it shares with Gemini CLI: the command line's, the editor's, and that of both."""


def settings_files(ground: Ground) -> tuple[Path, ...]:
    """Everything that this module reads."""
    own = user_files(ground.env)
    return own if ground.project is None else (ground.checkout / FILE, *own)


def user_files(env: Mapping[str, str]) -> tuple[Path, ...]:
    """The files with the user's own servers."""
    return tuple(paths.gemini_home(env) / name for name in _USER_FILES)


def edits(site: Site) -> tuple[KeyEdit, ...]:
    """The server in the project's file; () where one of the user's own has it, or the file can't be used."""
    if not _wanted(site) or _problem(site) or _of_user(site):
        return ()
    file = site.file(FILE)
    return (
        KeyEdit(
            path=file.path,
            format="json",
            key=KEY,
            value={"command": mcp_command.NAME, "args": []},
            why="Antigravity starts our MCP server: tools for the memory and for messages",
            only_if="Antigravity is in use",
            local=not file.tracked,
        ),
    )


def notices(site: Site) -> tuple[Notice, ...]:
    """What keeps Antigravity from our tools, apart from an entry in the file itself."""
    if not _wanted(site):
        return ()
    problem, path = _problem(site), site.checkout / FILE
    if problem:
        return (Notice("warning", "mcp-no-place", f"Antigravity gets no tools of ours: {problem}.", path),)
    return mcp_entry.of_user(site, user_files(site.env), KEY, "Antigravity")


def _wanted(site: Site) -> bool:
    return bool(site.project and site.project.mcp)


def _of_user(site: Site) -> bool:
    return bool(mcp_entry.holders(site, user_files(site.env), KEY))


def _problem(site: Site) -> str:
    """Why the project's file isn't used for our server, "" if it is."""
    unusable = agents_md.why_no_folders(site, FOLDER) or agents_md.why_unusable(site.file(FILE))
    if unusable:
        return f"{FILE} can't be used, {unusable}"
    broken = mcp_entry.why_not_strict(site.settings(FILE))
    return f"{FILE} isn't the strict JSON that Antigravity needs ({broken})" if broken else ""
