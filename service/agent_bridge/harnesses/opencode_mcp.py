"""Our MCP server in OpenCode's settings: `mcp.agent-bridge` in a file of the project. Pure.

Source: OpenCode 1.18.33, by running it. A local server is `{"type": "local", "command": [program, ...],
"enabled": true}`; it runs in the project's directory with the environment of OpenCode. The layers' `mcp` are
merged by name.
"""

from __future__ import annotations

from agent_bridge.harnesses import mcp_command, mcp_entry, opencode_config, opencode_files
from agent_bridge.harnesses.absent import ABSENT
from agent_bridge.harnesses.base import FileKind, InstructionFile, KeyEdit, Notice, Site

KEY = ("mcp", mcp_command.SERVER)


def edits(site: Site) -> tuple[KeyEdit, ...]:
    """The server in one of the project's files; () where the user's own settings have it, or no file can."""
    place = None if not _wanted(site) or _of_user(site) else _place(site)
    if place is None:
        return ()
    return (
        KeyEdit(
            path=place.path,
            format="json",
            key=KEY,
            value={"type": "local", "command": [mcp_command.NAME], "enabled": True},
            why="OpenCode starts our MCP server: tools for the memory and for messages",
            only_if="OpenCode is in use",
            local=not place.tracked,
        ),
    )


def notices(site: Site) -> tuple[Notice, ...]:
    """What keeps OpenCode from our tools, apart from what stands in the file itself."""
    if not _wanted(site):
        return ()
    if not _of_user(site) and _place(site) is None:
        text = "OpenCode gets no tools of ours: none of its settings files in the project can be changed."
        return (Notice("warning", "mcp-no-place", text, site.checkout),)
    return mcp_entry.of_user(site, opencode_config.user_files(site.env), KEY, "OpenCode")


def _wanted(site: Site) -> bool:
    return bool(site.project and site.project.mcp) and not opencode_config.project_switched_off(site)


def _of_user(site: Site) -> bool:
    return bool(mcp_entry.holders(site, opencode_config.user_files(site.env), KEY))


def _place(site: Site) -> InstructionFile | None:
    """The file with an entry of our name; else one that the user keeps out of Git, a new one, a tracked one.

    One with instructions of ours comes before the user's. `.opencode` isn't made for this: OpenCode installs
    packages in each such folder.
    """
    files = [site.file(path) for path in opencode_config.project_files(site)]
    usable = [file for file in files if opencode_config.is_usable(site, file) and _has_room(site, file)]
    folder = site.file(opencode_config.FOLDER).is_directory
    holding = mcp_entry.holders(site, [file.path for file in usable], KEY)
    own = [file for file in usable if file.kind is FileKind.FILE and not file.tracked]
    own.sort(key=lambda file: not _lists_ours(site, file))
    new = [file for file in usable if file.kind is FileKind.ABSENT and ("/" not in file.name or folder)]
    new.sort(key=lambda file: ("/" in file.name) is not folder)
    tracked = [file for file in usable if file.tracked]
    return next(iter((*map(site.file, holding), *own, *new, *tracked)), None)


def _has_room(site: Site, file: InstructionFile) -> bool:
    servers = mcp_entry.value_at(site.settings(file.path), KEY[:1])
    return servers is ABSENT or isinstance(servers, dict)


def _lists_ours(site: Site, file: InstructionFile) -> bool:
    listed = opencode_config.entries_in(site.settings(file.path) or b"")
    return not set(opencode_files.ENTRIES).isdisjoint(listed)
