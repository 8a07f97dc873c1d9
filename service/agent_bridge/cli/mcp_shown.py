"""`mcp status`: what is looked at, and its lines. Works with the service and without."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from agent_bridge import paths
from agent_bridge.cli import mcp_entries
from agent_bridge.cli.printing import harmless_line
from agent_bridge.cli.result import Json, counted
from agent_bridge.daemon.client import NotAnsweringError, read_status
from agent_bridge.errors import NotRunningError, RefusedError
from agent_bridge.harnesses import mcp_command
from agent_bridge.harnesses.observe import observe_site
from agent_bridge.mcp.shim import catalogue
from agent_bridge.projection import setup
from agent_bridge.projects import load_projects

_STATES = {"set": "yes", "missing": "no", "different": "another's", "unreadable": "can't be read"}


NOT_RUNNING = NotRunningError.code.replace("_", " ")
"""The state where there is no service to ask."""


def looked(directory: Path) -> dict[str, Any]:
    """`program`, the path of `agent-bridge-mcp` on PATH or null; `state`, `socket`, `reasons`, `clients`,
    `calls` and `errors` as the service tells them; `tools`; `project`; and `entries`, one a client's file.
    """
    service = _service()
    project, entries = _entries(directory)
    return {
        "program": shutil.which(mcp_command.NAME),
        "state": service.get("state", "unknown"),
        "socket": str(paths.mcp_socket()),
        "reasons": _list(service.get("reasons")),
        "clients": [one for one in _list(service.get("clients")) if isinstance(one, dict)],
        "calls": service.get("calls", 0),
        "errors": service.get("errors", 0),
        "tools": _tools(),
        "project": project,
        "entries": entries,
    }


def status_lines(data: Mapping[str, Any]) -> Iterator[str]:
    """The same for people."""
    yield f"tools: {harmless_line(str(data['state']))}, {counted(len(data['tools']), 'tool')}"
    yield from (f"  ! {harmless_line(str(reason))}" for reason in data["reasons"])
    where = data["program"] or "not found on PATH: clients can't start it by its name"
    yield f"  {mcp_command.NAME}: {where}"
    yield f"  {', '.join(data['tools'])}"
    if data["project"] is None:
        yield "This directory isn't set up: `agent-bridge init`."
    for entry in data["entries"]:
        state = _STATES.get(entry["state"], entry["state"])
        use = "" if entry["in_use"] else ", not in use"
        yield f"  {entry['client']}: {state}, {harmless_line(entry['path'])}{use}"
    clients = data["clients"]
    yield f"{counted(len(clients), 'session')} connected" + (":" if clients else "")
    for one in clients:
        said = (one.get("client") or "?", one.get("version") or "", one.get("agentId") or "")
        at = f" in {one['project']}" if one.get("project") else ""
        yield "  " + harmless_line(" ".join(str(part) for part in said if part) + at)


def _service() -> Mapping[str, Any]:
    try:
        told = read_status().get("mcp")
    except (NotRunningError, NotAnsweringError) as error:
        return {"state": error.code.replace("_", " "), "reasons": [error.sentence()]}
    return told if isinstance(told, dict) else {}


def _entries(directory: Path) -> tuple[str | None, list[dict[str, Json]]]:
    try:
        described = setup.describe(directory, mcp=True)
    except RefusedError:
        return None, []
    site = observe_site(described, described.root)
    found: list[dict[str, Json]] = []
    for one in mcp_entries.chosen(()):
        known = [entry.as_json() for entry in mcp_entries.of_project(one, site)]
        known += [
            {"client": one.name, "path": str(path), "state": "set", "problem": "", "entry": ""}
            for path in mcp_entries.of_user_already(one, site)
        ]
        in_use = one.name in site.used
        found += [{**entry, "in_use": in_use} for entry in known if in_use or entry["state"] != "missing"]
    is_set_up = any(one.id == described.id for one in load_projects())
    return str(described.root) if is_set_up else None, found


def _tools() -> list[str]:
    """The names of the tools that clients are told now."""
    tools = catalogue.load(str(paths.mcp_catalogue())).tools
    return [str(tool.get("name")) for tool in tools if isinstance(tool, dict)]


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []
