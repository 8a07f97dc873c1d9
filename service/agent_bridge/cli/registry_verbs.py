"""`registry`: the hub between agents. It is a part of the service, so it starts and stops with that."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agent_bridge import paths
from agent_bridge.cli import service_verbs
from agent_bridge.cli.app import Verbs
from agent_bridge.cli.printing import harmless_line
from agent_bridge.cli.registry_access import connect
from agent_bridge.cli.result import Result, counted, info
from agent_bridge.daemon.client import read_status
from agent_bridge.errors import EXIT_DONE, EXIT_FAILED

_PANEL = "Channel"
_PART = "The registry is a part of the service: this {} the whole of it."


def register(verbs: Verbs) -> None:
    """Add the commands of this module."""
    group = Verbs("registry", "The registry: where agents find and write to each other.")
    group.verb("start")(start)
    group.verb("stop")(stop)
    group.verb("status")(status)
    verbs.add(group, panel=_PANEL)


def start() -> Result:
    """Start the service; the same as `up`.

    The registry is a part of it.
    """
    return _told(service_verbs.up(), "started")


def stop() -> Result:
    """Stop the service; the same as `down`.

    The registry is a part of it.
    """
    return _told(service_verbs.down(), "stopped")


def status() -> Result:
    """Say where it answers, and who is there."""
    with connect(None) as registry:
        health, url = registry.health(), registry.address.url
    told = read_status().get("registry")  # only now: a registry that was idle is loaded by the question
    part: Mapping[str, Any] = told if isinstance(told, dict) else {}
    data = {**part, "url": url, "token_file": str(paths.registry_token()), "health": health}
    is_well = health.get("status") == "ok" and not part.get("reasons")
    return Result(
        "registry status",
        data=data,
        view=("\n".join(_lines(data)),),
        exit_code=EXIT_DONE if is_well else EXIT_FAILED,
    )


def _told(result: Result, done: str) -> Result:
    return result._replace(messages=(*result.messages, info(_PART.format(done))))


def _lines(data: Mapping[str, Any]) -> list[str]:
    health = data["health"]
    lines = [
        f"registry: {health.get('status')} at {data['url']}",
        f"  token: {data['token_file']}",
        f"  {counted(int(health.get('agents') or 0), 'session')},"
        f" {counted(int(health.get('wsDashboardClients') or 0), 'connection')}",
    ]
    lines += [f"  ! {harmless_line(str(reason))}" for reason in data.get("reasons") or ()]
    lines += [f"  {harmless_line(str(notice))}" for notice in data.get("notices") or ()]
    store = data.get("store")
    lines += [f"  messages: {harmless_line(str(store.get('path')))}"] if isinstance(store, dict) else []
    lines += [_sweep(sweep) for sweep in data.get("sweeps") or () if isinstance(sweep, dict)]
    return lines


def _sweep(sweep: Mapping[str, Any]) -> str:
    said = [
        f"every {sweep.get('interval_s')} s",
        f"last {sweep.get('last_run') or 'never'}",
        f"{sweep.get('counts') or 0} dealt with",
    ]
    said += [f"{counted(sweep['failures'], 'failure')}"] if sweep.get("failures") else []
    said += [f"failed: {harmless_line(str(sweep['error']))}"] if sweep.get("error") else []
    return f"  sweep {sweep.get('name')}: {', '.join(said)}"
