"""`agent-bridge status`: what the service says of itself, or that it doesn't run. Imports next to nothing.

Exit codes: 0 all is well; 1 degraded, starting, stopping, or running without answering; 3 not running.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from agent_bridge import paths
from agent_bridge.cli.hook import TROUBLE
from agent_bridge.cli.notices_shown import gathered
from agent_bridge.cli.result import Message, Result, counted, info, warning
from agent_bridge.daemon.client import NotAnsweringError, read_status
from agent_bridge.errors import EXIT_DONE, EXIT_FAILED, EXIT_NOT_RUNNING, AgentBridgeError, NotRunningError

_SHORT_LIST = 5
_NO_PROJECT = "No project is set up yet: `agent-bridge init`."


def status() -> Result:
    """The service's state; without it the projects that it would care for."""
    try:
        document = read_status()
    except NotRunningError as error:
        return _silent("not running", error, EXIT_NOT_RUNNING)
    except NotAnsweringError as error:
        return _silent("not answering", error, EXIT_FAILED)
    return Result(
        "status",
        data=document,
        view=("\n".join(_lines(document)),),
        messages=_hook_trouble(),
        exit_code=EXIT_DONE if document.get("state") == "ok" else EXIT_FAILED,
    )


def _silent(state: str, error: AgentBridgeError, exit_code: int) -> Result:
    roots, trouble = _listed_projects()
    lines = [f"agent-bridge: {error.title}", *(f"  {root}" for root in roots)]
    return Result(
        "status",
        data={"state": state, "projects": [{"root": root} for root in roots]},
        view=("\n".join(lines),),
        messages=(*trouble, *_hook_trouble(), info(error.remedy)),
        errors=(),
        exit_code=exit_code,
    )


def _hook_trouble() -> tuple[Message, ...]:
    """What a hook of ours wrote down when it had nothing to print; it has no other way to tell."""
    try:
        told = json.loads((paths.state_dir() / TROUBLE).read_bytes())
        text = f"The hook that brings {told['harness']} the memory failed at {told['at']}: {told['why']}"
    except FileNotFoundError:
        return ()
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        text = f"A hook that brings the memory failed; {paths.state_dir() / TROUBLE} can't be read"
    return (warning(text),)


def _listed_projects() -> tuple[list[str], tuple[Message, ...]]:
    """The roots in projects.json, read here: importing `projects` takes longer than this command may."""
    path = paths.projects_file()
    try:
        document = json.loads(path.read_bytes())
        roots = [str(project["root"]) for project in document["projects"]]
        return roots, () if roots else (info(_NO_PROJECT),)
    except FileNotFoundError:
        return [], (info(_NO_PROJECT),)
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        return [], (warning(f"The list of projects can't be read: {path}: {error}"),)


def _lines(document: Mapping[str, Any]) -> Iterator[str]:
    state = document.get("state", "unknown")
    since = f"pid {document.get('pid')} since {document.get('started_at')}"
    yield f"agent-bridge {document.get('version', '')}: {state}, {since}"
    for reason in document.get("reasons") or ():
        yield _indented(f"  ! {reason}")
    for project in document.get("projects") or ():
        yield str(project.get("root"))
        yield from map(_indented, _project_lines(project))
    whole = document.get("global") or {}
    if any((whole.get("facts") or {}).values()) or whole.get("problems") or whole.get("notices"):
        yield "memory of all projects"
        yield from map(_indented, _project_lines(whole))
    yield from map(_indented, _registry_lines(document.get("registry") or {}))
    yield from map(_indented, _tools_lines(document.get("mcp") or {}))


def _registry_lines(registry: Mapping[str, Any]) -> Iterator[str]:
    """Where the registry answers and what it holds; its reasons stand above with the service's."""
    if registry.get("url") is None:
        return
    counts = (
        [counted(sum((registry.get("agents") or {}).values()), "session")]
        if registry.get("state") != "idle"
        else []
    )
    store = registry.get("store") or {}
    if "messages" in store:
        counts.append(counted(store["messages"], "message"))
    yield f"registry {registry['url']}: " + ", ".join([str(registry.get("state")), *counts])
    for notice in registry.get("notices") or ():
        yield f"  {notice}"


def _tools_lines(mcp: Mapping[str, Any]) -> Iterator[str]:
    """Who uses the tools at the moment, and how much; the reasons stand above with the service's."""
    if mcp.get("socket") is None:
        return
    clients = mcp.get("clients") or ()
    programs = sorted({str(one.get("client") or "unknown") for one in clients})
    named = f" ({', '.join(programs)})" if programs else ""
    counts = [counted(len(clients), "client") + named, counted(mcp.get("calls") or 0, "call")]
    yield f"tools: {mcp.get('state')}, " + ", ".join(counts)
    if mcp.get("errors"):
        yield f"  failed inside agent-bridge: {counted(mcp['errors'], 'call')}. {mcp.get('last_error') or ''}"


def _project_lines(project: Mapping[str, Any]) -> Iterator[str]:
    yield "  " + ", ".join(_counts(project))
    if project.get("error"):
        yield f"  failed: {project['error']}"
    if project.get("waiting"):
        yield f"  waiting: {project['waiting']}"
    for problem in project.get("problems") or ():
        yield f"  problem: {problem.get('path')}: {problem.get('reason')}. {problem.get('remedy') or ''}"
    told = (
        (str(one.get("level", "info")), str(one.get("text")), str(one.get("path") or ""))
        for one in project.get("notices") or ()
    )
    for level, text in gathered(told):
        yield f"  {level}: {text}"
    for name, ids in _left_out(project.get("left_out")):
        shown = ", ".join(ids[:_SHORT_LIST]) + (", …" if len(ids) > _SHORT_LIST else "")
        yield f"  left out of {name} for its size: {shown}"
    if project.get("candidates"):
        yield f"  {counted(project['candidates'], 'text')} to look at: `agent-bridge review`"
    for watch in project.get("watches") or ():
        if watch.get("state") == "polled":
            yield f"  polled, not watched: {watch.get('path')}: {watch.get('reason')}"


def _indented(line: str) -> str:
    return line.replace("\n", "\n    ")


def _counts(project: Mapping[str, Any]) -> Iterator[str]:
    facts = project.get("facts") or {}
    shared, private, withheld = (facts.get(kind) or 0 for kind in ("shared", "private", "withheld"))
    of_project = f" ({shared} shared, {private} private)" if "root" in project else ""
    yield counted(shared + private + withheld, "fact") + of_project
    if withheld:
        yield f"{withheld} withheld because of secrets"
    last = project.get("last_projection") or {}
    if last.get("at"):
        yield f"projected {last['at']} in {last.get('ms', 0):.0f} ms"


def _left_out(value: object) -> Iterator[tuple[str, list[str]]]:
    """`left_out` by file, or as one list of ids."""
    if isinstance(value, dict):
        yield from ((name, list(ids)) for name, ids in value.items() if ids)
    elif isinstance(value, list) and value:
        yield "the block", value
