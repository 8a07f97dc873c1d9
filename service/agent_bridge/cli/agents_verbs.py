"""`agents`: which agents and sessions there are, and how they are."""

from __future__ import annotations

import socket
from collections.abc import Mapping
from typing import Annotated, Any
from urllib.parse import urlsplit

import typer

from agent_bridge.channel.directory import AgentRow
from agent_bridge.cli.agent_rows import agents_table, pick, row
from agent_bridge.cli.app import Verbs
from agent_bridge.cli.messages_shown import moment, shown_name
from agent_bridge.cli.printing import harmless_line
from agent_bridge.cli.recipient import project_meant
from agent_bridge.cli.registry_access import IdentityOption, connect
from agent_bridge.cli.result import Result, info
from agent_bridge.daemon import processes
from agent_bridge.errors import EXIT_DONE, EXIT_FAILED

_PANEL = "Channel"
_LOOPBACK = ("127.0.0.1", "localhost", "::1")
_HEALTH_SECONDS = 3.0


def register(verbs: Verbs) -> None:
    """Add the commands of this module."""
    group = Verbs("agents", about="List agents and sessions that can be written to.")
    group.bare(agents)
    group.verb("health")(health)
    verbs.add(group, panel=_PANEL)


def agents(
    context: typer.Context,
    *,
    skill: Annotated[
        str | None, typer.Option("--skill", metavar="SKILL", help="With this skill or tag.")
    ] = None,
    project: Annotated[
        str | None,
        typer.Option(
            "--project", metavar="TEXT", help="With this in the project's path or name; `.` is here."
        ),
    ] = None,
    client: Annotated[
        str | None, typer.Option("--client", metavar="TEXT", help="With this in the client program's name.")
    ] = None,
    every: Annotated[bool, typer.Option("--all", help="Those too that gave no sign of life lately.")] = False,
    identity: IdentityOption = None,
) -> Result:
    """List agents and sessions that can be written to."""
    if context.invoked_subcommand is not None:
        return Result("agents")
    with connect(identity) as registry:
        found = registry.agents(
            skill=skill,
            project=None if project is None else project_meant(project),
            healthy=None if every else True,
        )
    rows = [(wire, row(wire)) for wire in found]
    if client is not None:
        rows = [(wire, one) for wire, one in rows if client.casefold() in (one.client_name or "").casefold()]
    nobody = "Nobody is there" if skill is project is client is None else "Nobody that fits is there"
    nobody += "." if every else "; `--all` shows also who fell silent."
    return Result(
        "agents",
        data={"count": len(rows), "agents": [wire for wire, _ in rows]},
        view=(agents_table(one for _, one in rows),),
        messages=() if rows else (info(nobody),),
    )


def health(
    agent: Annotated[
        str | None, typer.Argument(metavar="ID", help="Its id, the beginning of it, or its name.")
    ] = None,
    *,
    identity: IdentityOption = None,
) -> Result:
    """Say how an agent is, or how all are.

    By the list, by its process, and by itself where it answers.
    """
    with connect(identity) as registry:
        rows = [row(wire) for wire in registry.agents()]
    chosen = rows if agent is None else [pick(rows, agent)]
    found = [_health(one) for one in chosen]
    return Result(
        "agents health",
        data={"count": len(found), "agents": found},
        view=("\n".join(_line(one) for one in found),) if found else (),
        messages=() if found else (info("Nobody is there."),),
        exit_code=EXIT_DONE if all(one["well"] for one in found) else EXIT_FAILED,
    )


def _health(one: AgentRow) -> dict[str, Any]:
    process = _process(one)
    itself = _asked(one)
    return {
        "agentId": one.agent_id,
        "name": one.name,
        "healthy": one.healthy,
        "lastHeartbeat": one.last_heartbeat,
        "process": process,
        "answer": itself,
        "well": one.healthy and process != "gone" and itself in ("ok", None),
    }


def _process(one: AgentRow) -> str:
    """`there`, `gone`, or `unknown` for what can't be looked at from here."""
    if one.pid is None or one.host is None or one.host.casefold() != socket.gethostname().casefold():
        return "unknown"
    try:
        return "gone" if processes.look(one.pid) is None else "there"
    except processes.NotInspectableError:
        return "unknown"


def _asked(one: AgentRow) -> str | None:
    """What the agent's own `/health` says: `ok`, `unreachable`; None where it has no address on this machine.

    The address is what some program said of itself, so nothing but this machine is asked, without a token.
    """
    try:
        parts = urlsplit(one.url)
        if parts.scheme != "http" or parts.hostname not in _LOOPBACK or not parts.port:
            return None
        host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
        return _get(f"http://{host}:{parts.port}/health")
    except ValueError:
        return None


def _get(url: str) -> str:
    import httpx

    try:
        with (
            httpx.Client(timeout=_HEALTH_SECONDS, trust_env=False, follow_redirects=False) as client,
            client.stream("GET", url) as answer,
        ):
            return "ok" if answer.status_code == httpx.codes.OK else "unreachable"
    except httpx.HTTPError:
        return "unreachable"


def _line(one: Mapping[str, Any]) -> str:
    said = [
        "healthy" if one["healthy"] else "unhealthy",
        f"last sign of life {moment(one['lastHeartbeat'])}",
        {"there": "its process runs", "gone": "its process is gone"}.get(one["process"], ""),
        {"ok": "it answers", "unreachable": "it doesn't answer"}.get(one["answer"], ""),
    ]
    told = ", ".join(part for part in said if part)
    return f"{harmless_line(one['agentId'])}  {shown_name(one['name'])}: {told}"
