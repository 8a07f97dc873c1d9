"""The tool `list_agents`: who is there to be asked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import Field

from agent_bridge.channel.directory import AgentRow
from agent_bridge.channel.plain import one_line
from agent_bridge.mcp.bounded import Part, quoted, within
from agent_bridge.mcp.call import Call
from agent_bridge.mcp.own_row import present
from agent_bridge.mcp.peers import Peer, peer_of
from agent_bridge.mcp.tool import Answer, Hints, Parameters, Tool

_LINE = 120
_PATH = 400
_SKILLS = 20
_NOBODY = (
    "Nobody else is connected. A session of an agent program with agent-bridge's tools is listed here as long"
    " as it runs: `agent-bridge init` in its project sets it up."
)


class ListAgentsParameters(Parameters):
    """Which agents."""

    skill: str | None = Field(None, description="Only agents with this skill id or tag.")
    project: str | None = Field(None, description="Part of a project's name or path.")
    healthy_only: bool = Field(
        default=True, alias="healthyOnly", description="Leave out those that fell silent."
    )
    include_clients: bool = Field(
        default=False, alias="includeClients", description="Also the running sessions of agent programs."
    )


@dataclass(frozen=True, slots=True)
class _Shown:
    row: AgentRow
    peer: Peer


async def list_agents(call: Call, wanted: ListAgentsParameters) -> Answer:
    """Agents with skills, and the sessions that messages can be sent to."""
    rows = await present(call)
    fitting = [_Shown(row, peer_of(row)) for row in rows if _fits(row, wanted)]
    shown = [
        one for one in fitting if not one.peer.is_hidden and (wanted.include_clients or not _is_session(one))
    ]
    agents = [one for one in shown if not _is_session(one)]
    sessions = sorted(
        (one for one in shown if _is_session(one)), key=lambda one: (one.row.project_path, one.row.agent_id)
    )
    me = call.session.agent_id
    parts = [_agent(one.row) for one in agents]
    parts += [_session(one, is_self=one.row.agent_id == me) for one in sessions]
    kept = within(parts)
    head = f"{len(shown)} {'entry' if len(shown) == 1 else 'entries'} connected via agent-bridge:"
    lines = [head, "", "Agents with skills:"]
    lines += [part.text for part in kept[: len(agents)]] or ["(none)"]
    if wanted.include_clients:
        lines += ["", "Sessions of agent programs:"]
        lines += [part.text for part in kept[len(agents) :]] or ["(none)"]
    else:
        lines += ["", "Sessions of agent programs aren't listed: ask with includeClients=true."]
    if len(kept) < len(parts):
        lines += ["", f"{len(parts) - len(kept)} more don't fit here: narrow it down with project or skill."]
    if wanted.include_clients and all(one.row.agent_id == me for one in shown):
        lines += ["", _NOBODY]
    data = {
        "total": len(shown),
        "shown": len(kept),
        "agents": [part.data for part in kept[: len(agents)]],
        "clients": [part.data for part in kept[len(agents) :]],
    }
    return Answer("\n".join(lines), data)


def _fits(row: AgentRow, wanted: ListAgentsParameters) -> bool:
    part = (wanted.project or "").casefold()
    return (
        (row.healthy or not wanted.healthy_only)
        and (part in row.project_path.casefold() or part in row.project_name.casefold())
        and (not wanted.skill or row.has_skill(wanted.skill))
    )


def _is_session(one: _Shown) -> bool:
    return one.row.is_client


def _agent(row: AgentRow) -> Part:
    skills = _skills(row)
    text = [
        f"Agent: {one_line(row.name, _LINE)}  [{one_line(row.agent_id, 200)[-8:]}]",
        f"  agentId: {quoted(row.agent_id)}",
        f"  Project: {_project(row)}",
        f"  Type: {one_line(row.project_type, _LINE)}",
        f"  Status: {_status(row)}",
        "  Skills:" if skills else "  Skills: (none)",
        *(f"    • {name}: {told}" for name, told in skills),
    ]
    data = _common(row) | {
        "projectType": one_line(row.project_type, _LINE),
        "skills": [{"id": name, "description": told} for name, told in skills],
    }
    return Part("\n".join(text), data)


def _session(one: _Shown, *, is_self: bool) -> Part:
    row = one.row
    client = f"{one_line(row.client_name or '', _LINE)} {one_line(row.client_version or '', _LINE)}".strip()
    use = (
        "this is your own session" if is_self else f"message_client_session(clientId={quoted(row.agent_id)})"
    )
    text = [
        f"[{one.peer.label}]  {one_line(row.name, _LINE)}  [{one_line(row.agent_id, 200)[-8:]}]",
        f"  agentId: {quoted(row.agent_id)}",
        f"  Project: {_project(row)}",
        f"  Client: {client or 'unknown'}",
        f"  Status: {_status(row)}",
        f"  Use: {use}",
    ]
    data = _common(row) | {
        "peerType": one.peer.kind,
        "peerLabel": one.peer.label,
        "client": client,
        "isSelf": is_self,
    }
    return Part("\n".join(text), data)


def _common(row: AgentRow) -> dict[str, Any]:
    return {
        "agentId": row.agent_id,
        "name": one_line(row.name, _LINE),
        "projectName": one_line(row.project_name, _LINE),
        "projectPath": one_line(row.project_path, _PATH),
        "healthy": row.healthy,
    }


def _project(row: AgentRow) -> str:
    name, path = one_line(row.project_name, _LINE), one_line(row.project_path, _PATH)
    return f"{name} ({path})" if name else path


def _status(row: AgentRow) -> str:
    return "alive" if row.healthy else "silent"


def _skills(row: AgentRow) -> list[tuple[str, str]]:
    told = row.card.get("skills")
    entries = told if isinstance(told, list) else []
    return [
        (one_line(str(one.get("id", "")), _LINE), one_line(str(one.get("description", "")), _LINE))
        for one in entries[:_SKILLS]
        if isinstance(one, Mapping)
    ]


LIST_AGENTS = Tool(
    name="list_agents",
    title="List agents",
    description=(
        "Who is there to be asked: agents with skills and, with includeClients=true, the running sessions of"
        " agent programs (Claude Code, Codex, OpenCode and others) on this machine. Call it before"
        " message_client_session: its agentId is that tool's clientId."
    ),
    parameters=ListAgentsParameters,
    output_schema={
        "type": "object",
        "properties": {
            "total": {"type": "integer"},
            "shown": {"type": "integer"},
            "agents": {"type": "array"},
            "clients": {"type": "array"},
        },
        "required": ["total", "shown", "agents", "clients"],
    },
    hints=Hints(read_only=True, idempotent=True),
    run=list_agents,
)
