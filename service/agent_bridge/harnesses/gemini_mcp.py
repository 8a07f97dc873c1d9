"""Our MCP server in Gemini CLI's settings: `mcpServers.agent-bridge` in `.gemini/settings.json`. Pure.

Source: Gemini CLI 0.61.0, by running it. The file is JSON with comments and counts for sessions started in
the directory above `.gemini`. `trust: true` lets the tools run without a question at each call; the plan says
so. `mcp.allowed` and `mcp.excluded` name servers that may or may not be started.
"""

from __future__ import annotations

from pathlib import Path

from agent_bridge.harnesses import agents_md, gemini_config, mcp_command, mcp_entry
from agent_bridge.harnesses.base import KeyEdit, Notice, Site

KEY = ("mcpServers", mcp_command.SERVER)

_TITLE = "Gemini CLI"


def edits(site: Site) -> tuple[KeyEdit, ...]:
    """The server in the project's settings; () where the user's own have it, or the project's don't count."""
    if not _wanted(site) or _problem(site) or mcp_entry.holders(site, _user(site), KEY):
        return ()
    file = site.file(gemini_config.SETTINGS)
    return (
        KeyEdit(
            path=file.path,
            format="json",
            key=KEY,
            value={"command": mcp_command.NAME, "args": [], "trust": True},
            why="Gemini CLI starts our MCP server: tools for the memory and for messages, which it runs "
            "without asking before each call (`trust`)",
            only_if="Gemini CLI is in use",
            local=not file.tracked,
        ),
    )


def notices(site: Site) -> tuple[Notice, ...]:
    """What keeps Gemini CLI from our tools, apart from an entry in the file itself."""
    if not _wanted(site):
        return ()
    problem, path = _problem(site), site.checkout / gemini_config.SETTINGS
    if problem:
        return (Notice("warning", "mcp-no-place", f"Gemini CLI gets no tools of ours: {problem}.", path),)
    left_out = [found for file in (path, *_user(site)) for found in _left_out(site, file)]
    return (*mcp_entry.of_user(site, _user(site), KEY, _TITLE), *left_out)


def _wanted(site: Site) -> bool:
    return bool(site.project and site.project.mcp)


def _user(site: Site) -> tuple[Path, ...]:
    return (gemini_config.user_file(site.env),)


def _left_out(site: Site, path: Path) -> list[Notice]:
    """Lists of servers by which ours isn't started."""
    data = site.settings(path)
    allowed, excluded = (mcp_entry.value_at(data, ("mcp", name)) for name in ("allowed", "excluded"))
    if isinstance(excluded, list) and mcp_command.SERVER in excluded:
        by = "mcp.excluded names it"
    elif isinstance(allowed, list) and mcp_command.SERVER not in allowed:
        by = "mcp.allowed doesn't name it"
    else:
        return []
    text = f"Gemini CLI doesn't start our MCP server {mcp_command.SERVER}: in {path} {by}."
    return [Notice("info", "mcp-off", text, path)]


def _problem(site: Site) -> str:
    """Why the project's settings aren't used for our server, "" if they are."""
    if gemini_config.distrusted(site):
        return f"the user doesn't trust this folder ({gemini_config.trust_file(site.env)})"
    folders = agents_md.why_no_folders(site, gemini_config.FOLDER)
    unusable = folders or agents_md.why_unusable(site.file(gemini_config.SETTINGS))
    return f"{gemini_config.SETTINGS} can't be used, {unusable}" if unusable else ""
