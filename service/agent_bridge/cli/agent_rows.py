"""Rows of the list of agents and sessions: read from the registry's answer, picked by a name, and shown."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeVar

from agent_bridge.channel.directory import AgentRow, EntryType
from agent_bridge.channel.errors import AmbiguousError, UnknownError
from agent_bridge.channel.model import GLOBAL_IDENTITY
from agent_bridge.cli.messages_shown import moment, shown_name
from agent_bridge.cli.printing import harmless_line
from agent_bridge.cli.result import Table

T = TypeVar("T", str, int)
_LISTED = 10


def row(wire: Mapping[str, Any]) -> AgentRow:
    """A RegistryEntry as a row. What is missing or of another type counts as not said."""
    info = wire.get("clientInfo")
    client = info if isinstance(info, dict) else {}
    card = wire.get("card")
    return AgentRow(
        agent_id=_read(wire, "agentId", str, ""),
        name=_read(wire, "name", str, ""),
        project_path=_read(wire, "projectPath", str, ""),
        identity=_read(wire, "identity", str, GLOBAL_IDENTITY),
        entry_type=EntryType.CLIENT if wire.get("entryType") == EntryType.CLIENT.value else EntryType.AGENT,
        project_name=_read(wire, "projectName", str, ""),
        project_type=_read(wire, "projectType", str, "unknown"),
        url=_read(wire, "url", str, ""),
        ws_url=_read(wire, "wsUrl", str, ""),
        port=_read(wire, "port", int, 0),
        card=card if isinstance(card, dict) else {},
        client_name=_read(client, "clientName", str, "") or None,
        client_version=_read(client, "clientVersion", str, "") or None,
        pid=_read(wire, "pid", int, 0) or None,
        host=_read(wire, "host", str, "") or None,
        registered_at=_read(wire, "registeredAt", int, 0),
        last_heartbeat=_read(wire, "lastHeartbeat", int, 0),
        healthy=wire.get("healthy") is True,
    )


def pick(rows: Sequence[AgentRow], key: str) -> AgentRow:
    """The row that `key` means: its id, the beginning of its id, or its name.

    Raises UnknownError, or AmbiguousError with the candidates.
    """
    found = (
        [one for one in rows if one.agent_id == key]
        or [one for one in rows if one.agent_id.startswith(key)]
        or [one for one in rows if one.name.casefold() == key.casefold()]
    )
    if not key or not found:
        raise UnknownError(
            f"There is no session {shown_name(key)!r}.", remedy="`agent-bridge agents --all` lists them."
        )
    if len(found) > 1:
        raise AmbiguousError(
            f"{shown_name(key)!r} means several sessions.",
            detail=candidates(found),
            remedy="Say more of the id.",
        )
    return found[0]


def known_id(rows: Sequence[AgentRow], key: str) -> str:
    """The id of the session that `key` means, as `pick`; `key` itself where none is there: it may be away.

    Raises AmbiguousError with the candidates.
    """
    try:
        return pick(rows, key).agent_id
    except UnknownError:
        return key


def candidates(rows: Iterable[AgentRow]) -> str:
    """Rows that a name may mean, one a line."""
    lines = [f"{harmless_line(one.agent_id)}  {shown_name(one.name)}  {_project(one)}" for one in rows]
    more = [f"… and {len(lines) - _LISTED} more"] if len(lines) > _LISTED else []
    return "\n".join(lines[:_LISTED] + more)


def agents_table(rows: Iterable[AgentRow]) -> Table:
    """The list of agents and sessions; piped: id, name, project, state."""
    return Table(
        ("id", "name", "client", "project", "state"),
        tuple(
            (
                one.agent_id,
                shown_name(one.name),
                _client(one),
                _project(one),
                "healthy" if one.healthy else f"unhealthy, last heard of {moment(one.last_heartbeat)}",
            )
            for one in rows
        ),
        piped=(0, 1, 3, 4),
    )


def _client(one: AgentRow) -> str:
    if one.is_client:
        return shown_name(one.client_name or "client")
    skills = one.card.get("skills")
    names = (
        [str(skill.get("id")) for skill in skills if isinstance(skill, dict)]
        if isinstance(skills, list)
        else []
    )
    return shown_name(", ".join(names) or one.project_type)


def _project(one: AgentRow) -> str:
    return harmless_line(one.project_path or one.project_name)


def _read(data: Mapping[str, Any], name: str, kind: type[T], default: T) -> T:
    value = data.get(name)
    return value if isinstance(value, kind) and not isinstance(value, bool) else default
