"""Which session a message is for, from what its sender says of it. Pure.

Only healthy client sessions of the sender's own identity come into question, never the sender itself. What
fits several is refused and the candidates are named; an id that is gone is never sent to another session,
unless that one is provably the same: same project, same kind of program, same identity.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from agent_bridge.channel import ids
from agent_bridge.channel.directory import AgentRow
from agent_bridge.channel.errors import AmbiguousError, InvalidError, UnknownError
from agent_bridge.channel.plain import one_line

BRIDGES = {"app-server-bridge": "codex", "opencode-plugin-bridge": "opencode"}
"""The `clientVersion` of a bridge, and the kind of client whose messages it takes."""
PRIORITY = ("claude-code", "claude", "opencode", "antigravity", "agy", "codex-cli", "codex")
"""Client names, the first choice first; bridges go before all of them."""

_KINDS = {
    "claude": "claude",
    "opencode": "opencode",
    "antigravity": "antigravity",
    "agy": "antigravity",
    "codex": "codex",
}
_SEPARATORS = re.compile(r"[\s_.-]+")
_LISTED = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """Whom the sender means. `participants` are those of the conversation that it names, if it names one."""

    identity: str
    sender_id: str
    client_id: str | None = None
    project: str | None = None
    client_type: str | None = None
    participants: Sequence[str] | None = None


def resolve(rows: Iterable[AgentRow], request: Request) -> AgentRow:
    """The session that `request` means, or its bridge.

    Raises InvalidError (nothing said, or the sender itself meant), UnknownError (none; its remedy names what
    comes near), AmbiguousError (several; its detail lists them).
    """
    own = [row for row in rows if row.identity == request.identity]
    candidates = [row for row in own if _is_candidate(row, request)]
    if request.client_id:
        return _by_id(request, request.client_id, own, candidates)
    if request.project and not request.project.isspace():
        return _by_project(request.project, request.client_type, candidates)
    if request.participants is not None:
        return _by_conversation(request, own, candidates)
    raise InvalidError(
        "No recipient was named", detail="one of clientId, project or conversationId is needed"
    )


def is_bridge(row: AgentRow) -> bool:
    """Whether the row is a bridge into a client, rather than a client."""
    return row.client_version in BRIDGES


def kind_of(row: AgentRow) -> str:
    """The kind of client program that a row is of: its family (`claude`, `codex`, …), else its name."""
    if row.client_version in BRIDGES:
        return BRIDGES[row.client_version]
    return _kind(row.client_name or "")


def bridged(row: AgentRow, rows: Iterable[AgentRow]) -> AgentRow:
    """The bridge that takes the messages of that session, where one is among `rows`; else the row itself."""
    if is_bridge(row):
        return row
    for other in rows:
        if (
            is_bridge(other)
            and other.healthy
            and other.project_path == row.project_path
            and other.identity == row.identity
            and kind_of(other) == kind_of(row)
        ):
            return other
    return row


def _is_candidate(row: AgentRow, request: Request) -> bool:
    return row.is_client and row.healthy and row.agent_id not in (request.sender_id, ids.DASHBOARD_ID)


def _by_id(request: Request, wanted: str, own: list[AgentRow], candidates: list[AgentRow]) -> AgentRow:
    if wanted == request.sender_id:
        raise InvalidError("No message is sent to oneself.", detail=f"{one_line(wanted, 80)} is the sender.")
    exact = [row for row in candidates if row.agent_id == wanted]
    fitting = exact or [row for row in candidates if row.agent_id.startswith(wanted)]
    if not fitting:
        fitting = [row for row in candidates if _is_successor(row, wanted, request)]
    if fitting:
        return _only(_bridged_all(fitting, candidates), f"clientId {one_line(wanted, 80)}")
    silent = any(row.agent_id == wanted for row in own)
    raise UnknownError(
        "That session gives no sign of life" if silent else "No session has that id",
        detail=one_line(wanted, 80),
        remedy=_suggestion(wanted, candidates),
    )


def _by_conversation(request: Request, own: list[AgentRow], candidates: list[AgentRow]) -> AgentRow:
    # In a thread the dashboard and agent servers may be answered too: they have spoken there.
    others = [name for name in dict.fromkeys(request.participants or ()) if name != request.sender_id]
    if not others:
        raise UnknownError(
            "Nobody else takes part in that conversation", remedy="Name the recipient by clientId or project."
        )
    present = [row for row in own if row.agent_id in others and row.healthy]
    if len(others) == 1 and not present:
        return _by_id(request, others[0], own, candidates)
    if len(present) < len(others):
        raise AmbiguousError(
            "Several take part in that conversation",
            detail=", ".join(one_line(name, 80) for name in others[:_LISTED]),
            remedy="Name the recipient by clientId.",
        )
    return _only(_bridged_all(present, candidates), "that conversation")


def _by_project(project: str, client_type: str | None, candidates: list[AgentRow]) -> AgentRow:
    part = project.casefold().rstrip("/")
    fitting = [
        row
        for row in candidates
        if part in row.project_path.casefold() or part in row.project_name.casefold()
    ]
    if not fitting:
        known = dict.fromkeys(one_line(row.project_path, 120) for row in candidates)
        raise UnknownError(
            "No other session works in that project",
            detail=one_line(project, 120),
            remedy=f"There are sessions in: {', '.join(list(known)[:_LISTED])}." if known else "",
        )
    wanted = (client_type or "").casefold()
    fitting = [row for row in fitting if wanted in (row.client_name or "").casefold()] or fitting
    fitting = [row for row in fitting if _is_exactly(row, project)] or fitting
    if len({row.project_path for row in fitting}) > 1:
        return _only(fitting, f"project {one_line(project, 120)}")
    first = min(_priority(row) for row in fitting)
    best = [row for row in fitting if _priority(row) == first]
    return _only(_bridged_all(best, candidates), f"project {one_line(project, 120)}")


def _is_exactly(row: AgentRow, project: str) -> bool:
    whole = project.casefold().rstrip("/")
    return whole in (row.project_path.casefold().rstrip("/"), row.project_name.casefold())


def _is_successor(row: AgentRow, gone: str, request: Request) -> bool:
    name = _name_in(gone)
    if not name or _kind(name) != kind_of(row):
        return False
    if request.project:
        return _is_exactly(row, request.project)
    # The digits of an id come of name, path and identity: if they are the row's own, so is the rest.
    return gone == ids.client_id(name, row.project_path, row.identity)


def _suggestion(gone: str, candidates: list[AgentRow]) -> str:
    name = _name_in(gone)
    near = [
        row
        for row in candidates
        if name and (_kind(name) == kind_of(row) or name in (row.client_name or "") or name in row.agent_id)
    ]
    if near:
        return f"Now there is: {_listed(near)}."
    return ""


def _name_in(agent_id: str) -> str:
    """The client's name in an id of the form `client-<name>-<digits>`; empty where it has none."""
    return agent_id.removeprefix("client-").rpartition("-")[0]


def _kind(name: str) -> str:
    plain = _plain_name(name)
    return _KINDS.get(plain.partition("-")[0], plain)


def _priority(row: AgentRow) -> tuple[bool, int]:
    name = kind_of(row) if is_bridge(row) else _plain_name(row.client_name or "")
    for rank, known in enumerate(PRIORITY):
        if name == known or name.startswith(f"{known}-"):
            return not is_bridge(row), rank
    return not is_bridge(row), len(PRIORITY)


def _plain_name(name: str) -> str:
    return "-".join(_SEPARATORS.split(name.casefold()))


def _bridged_all(rows: list[AgentRow], candidates: list[AgentRow]) -> list[AgentRow]:
    return list({row.agent_id: row for row in (bridged(row, candidates) for row in rows)}.values())


def _only(rows: list[AgentRow], what: str) -> AgentRow:
    if len(rows) == 1:
        return rows[0]
    raise AmbiguousError(
        f"Several sessions fit {what}.", detail=_listed(rows), remedy="Name one by its whole id."
    )


def _listed(rows: list[AgentRow]) -> str:
    shown = "; ".join(_shown(row) for row in rows[:_LISTED])
    return f"{shown}; and {len(rows) - _LISTED} more" if len(rows) > _LISTED else shown


def _shown(row: AgentRow) -> str:
    program, project = one_line(row.client_name or row.name, 40), one_line(row.project_path, 120)
    return f"{row.agent_id} ({program}, {project})"
