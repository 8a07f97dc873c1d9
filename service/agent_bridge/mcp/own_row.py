"""A session's row in the list of sessions."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from pathlib import Path

from agent_bridge.channel.directory import AgentRow, EntryType
from agent_bridge.channel.plain import one_line
from agent_bridge.errors import AgentBridgeError
from agent_bridge.mcp.call import Call, Session
from agent_bridge.mcp.ports import NoProject, StorePlace

TITLES = {
    "claude-code": "Claude Code",
    "codex": "Codex",
    "opencode": "OpenCode",
    "gemini": "Gemini CLI",
    "antigravity": "Antigravity",
}
"""What the programs are called, by profile."""
_NAME_MOST = 60


def row_of(session: Session, root: Path) -> AgentRow:
    """The row; `root` is the project's directory, or the directory that the session works in."""
    hello = session.hello
    client_name = one_line(hello.client_name, _NAME_MOST) or "unknown"
    project_name = one_line(root.name, _NAME_MOST) or str(root)
    return AgentRow(
        agent_id=session.agent_id,
        name=f"{TITLES.get(session.profile, client_name)} in {project_name}",
        identity=hello.identity,
        entry_type=EntryType.CLIENT,
        project_path=str(root),
        project_name=project_name,
        client_name=client_name,
        client_version=one_line(hello.client_version, _NAME_MOST),
        pid=hello.parent_pid or None,
    )


def root_of(session: Session) -> Path:
    """The directory in the row, of a project whose memory can't be used too. Looks at the disk."""
    place: StorePlace | NoProject | None = None
    with suppress(AgentBridgeError, OSError):
        place = session.memory.project(session.start)
    return (place and place.root) or session.start or Path(session.hello.cwd)


async def present(call: Call) -> list[AgentRow]:
    """What the session sees of the list of sessions, itself in it: it is entered where it isn't there yet."""
    session = call.session
    if not session.agent_id:
        raise AgentBridgeError(
            "This session has no name on the channel yet", remedy="Call the tool again in a moment."
        )
    identity = session.hello.identity
    rows = await session.channel.rows(identity)
    if any(row.agent_id == session.agent_id and row.healthy for row in rows):
        return rows
    root = await asyncio.to_thread(root_of, session)
    await session.channel.register(row_of(session, root))
    return await session.channel.rows(identity)


def own(call: Call, rows: list[AgentRow]) -> AgentRow:
    """The session's own row among those that it sees."""
    session = call.session
    for row in rows:
        if row.agent_id == session.agent_id and row.identity == session.hello.identity:
            return row
    raise AgentBridgeError("This session has just left the channel", remedy="Call the tool again.")
