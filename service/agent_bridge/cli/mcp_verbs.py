"""`mcp …`: how agent programs start our tools, whether they do, and where else they answer."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from agent_bridge import paths
from agent_bridge.cli import mcp_entries, service_verbs
from agent_bridge.cli.app import Verbs
from agent_bridge.cli.consent import YesOption, can_ask, consent
from agent_bridge.cli.mcp_entries import Entry
from agent_bridge.cli.mcp_shown import NOT_RUNNING, looked, status_lines
from agent_bridge.cli.printing import harmless_line, tell
from agent_bridge.cli.registry_access import connect
from agent_bridge.cli.result import Json, Message, Result, counted, info, warning
from agent_bridge.cli.where import ProjectOption, start_directory
from agent_bridge.config import load_settings
from agent_bridge.errors import (
    EXIT_DONE,
    EXIT_FAILED,
    EXIT_LEFT_UNDONE,
    EXIT_NOT_RUNNING,
    NotFoundError,
    UsageError,
)
from agent_bridge.harnesses import mcp_command, mcp_user
from agent_bridge.harnesses.base import Harness, Site
from agent_bridge.harnesses.observe import observe_site, observe_user
from agent_bridge.projection import mcp_write, setup
from agent_bridge.projects import Project, load_projects

_PANEL = "Agents"
_TOKEN = "AGENT_BRIDGE_TOKEN"  # noqa: S105 - the name of a variable

ClientOption = Annotated[
    list[str] | None,
    typer.Option("--client", metavar="NAME", help="Only this one: " + ", ".join(mcp_entries.CLIENTS) + "."),
]
WriteOption = Annotated[bool, typer.Option("--write", help="Write it, after a question, as `init` does.")]
GlobalOption = Annotated[
    bool, typer.Option("--global", help="In your own settings for all projects, not in this project's.")
]


def register(verbs: Verbs) -> None:
    """Add the commands of this module."""
    group = Verbs("mcp", "The tools that agents call, and how their programs start them.")
    group.verb("config")(config)
    group.verb("status")(status)
    group.verb("server")(server)
    group.verb("start")(start)
    verbs.add(group, panel=_PANEL)


def config(
    *,
    write: WriteOption = False,
    for_all: GlobalOption = False,
    client: ClientOption = None,
    yes: YesOption = False,
    project: ProjectOption = None,
) -> Result:
    """Print the entry by which each client starts our tools, and its file.

    With `--write` they are written, and `eject` takes them out again.
    """
    if for_all and project is not None:
        raise UsageError("--global and --project exclude each other.")
    directory = start_directory(project)
    if write:
        _check_is_set_up(directory, for_all=for_all)
    described = None if for_all else setup.describe(directory, mcp=True)
    site = _site(described)
    clients = mcp_entries.chosen(client or ())
    if write or not client:
        clients = _in_use(clients, site, asked=client or ()) or (() if write else clients)
    of = mcp_entries.of_user if for_all else mcp_entries.of_project
    entries = [entry for one in clients for entry in of(one, site)]
    remarks = _remarks(clients, site, for_all=for_all)
    if not write:
        return _config(entries, remarks)
    missing = [entry for entry in entries if entry.state == "missing"]
    if missing:
        if not yes and can_ask():
            tell(_shown(missing))
        consent(f"Write to {counted(len(missing), 'file')}?", yes=yes)
        told = _write(missing, described, clients)
        entries = [entry for one in clients for entry in of(one, _site(described))]
        written = {entry.path for entry in missing} & {one.path for one in entries if one.state == "set"}
        remarks = (*told, *(info(f"Written: {path}") for path in sorted(written)), *remarks)
        remarks += (info("Start new sessions: a program reads its tools when a session begins."),)
    undone = any(entry.state != "set" for entry in entries)
    return _config(entries, remarks)._replace(exit_code=EXIT_LEFT_UNDONE if undone else EXIT_DONE)


def status(*, project: ProjectOption = None) -> Result:
    """Say which client has the entry, whether it can be started, and who is connected."""
    data = looked(start_directory(project))
    is_well = data["program"] and data["state"] in ("idle", "loading", "ok")
    is_silent = data["state"] == NOT_RUNNING
    return Result(
        "mcp status",
        data=data,
        view=("\n".join(status_lines(data)),),
        exit_code=EXIT_DONE if is_well else EXIT_NOT_RUNNING if is_silent else EXIT_FAILED,
    )


def server() -> Result:
    """Say where the tools answer over HTTP; the service is started for that.

    The token that it asks for stands in a file, and isn't printed.
    """
    started = service_verbs.up()
    if started.exit_code != EXIT_DONE:
        return started
    with connect(None) as registry:
        url = f"{registry.address.url}/mcp"
    token_file = paths.registry_token()
    headers = {"Authorization": f"Bearer ${{{_TOKEN}}}", "X-Agent-Bridge-Project": str(Path.cwd())}
    ours: dict[str, Json] = {"type": "http", "url": url, "headers": headers}
    entry: dict[str, Json] = {"mcpServers": {mcp_command.SERVER: ours}}
    example = json.dumps(entry, indent=2)
    view = (
        f"{url} (streamable HTTP)\n"
        f"  token: {token_file}\n"
        f'  to have it in the environment: export {_TOKEN}="$(cat {token_file})"\n'
        f"An entry for Claude Code, as an example:\n{example}"
    )
    data: dict[str, Json] = {"url": url, "token_file": str(token_file), "example": entry}
    hint = info("The port may change when the service starts anew; `agent-bridge-mcp` finds it by itself.")
    return Result("mcp server", data=data, view=(view,), messages=(*started.messages, hint))


def start() -> Result:
    """Be the MCP server on standard input and output; the same as `agent-bridge-mcp`.

    For agent programs: `--project DIR`, `--identity NAME`, `--no-auto`.
    """
    # Dispatched by `cli.entry` before this is imported; only odd words lead here.
    raise UsageError("Say it as `agent-bridge mcp start`: it speaks JSON-RPC on standard input and output.")


def _check_is_set_up(directory: Path, *, for_all: bool) -> None:
    """Nothing is touched before `init`, since only `eject` undoes it. Raises NotFoundError."""
    if not for_all:
        setup.listed(directory)
    elif not load_projects():
        raise NotFoundError("No project is set up", remedy="Run `agent-bridge init` in one first.")


def _site(described: Project | None) -> Site:
    """What is seen of a project, or of the user's own places."""
    if described is None:
        return observe_user(dict(os.environ))
    return observe_site(described, described.root)


def _in_use(clients: Sequence[Harness], site: Site, *, asked: Sequence[str]) -> tuple[Harness, ...]:
    """Those in use. Raises NotFoundError for one that was asked for by name and isn't."""
    used = tuple(one for one in clients if one.name in site.used)
    missing = [one for one in clients if one not in used] if asked else []
    if missing:
        raise NotFoundError(
            f"{missing[0].title} isn't found on this machine",
            remedy=f"`agent-bridge sync --to {missing[0].name}` asks for it all the same.",
        )
    return used


def _write(
    missing: Sequence[Entry], described: Project | None, clients: Sequence[Harness]
) -> tuple[Message, ...]:
    settings = load_settings()
    if described is None:
        mcp_write.write_user([edit for entry in missing for edit in entry.edits], settings)
        return ()
    known = next(one for one in load_projects() if one.id == described.id)
    names = {one.name for one in clients}
    only = names if names != {one.name for one in mcp_entries.chosen(())} else set()
    done = mcp_write.write_project(replace(known, mcp=True), settings, only)
    return tuple(warning(notice.text) for notice in done.notices)


def _remarks(clients: Sequence[Harness], site: Site, *, for_all: bool) -> tuple[Message, ...]:
    """What is otherwise than shown, and what only a person can do."""
    told: list[Message] = []
    if for_all:
        program = " ".join(mcp_command.installed())
        for one in clients:
            if words := mcp_user.BY_COMMAND.get(one.name):
                told.append(info(f"{one.title}, for all projects: `{' '.join(words)} {program}`"))
        return tuple(told)
    for one in clients:
        places = mcp_entries.of_user_already(one, site)
        told += [info(f"{one.title} has our server for all projects: {path}") for path in places]
        told += [
            (warning if notice.level == "warning" else info)(notice.text)
            for notice in one.notices(site)
            if "mcp" in notice.code
        ]
    return tuple(told)


def _config(entries: Sequence[Entry], remarks: Sequence[Message]) -> Result:
    data: dict[str, Json] = {
        "command": list(mcp_command.installed()),
        "entries": [entry.as_json() for entry in entries],
    }
    broken = [warning(entry.problem) for entry in entries if entry.problem]
    return Result("mcp config", data=data, view=(_shown(entries),), messages=(*broken, *remarks))


def _shown(entries: Sequence[Entry]) -> str:
    if not entries:
        return "There is nothing to write here."
    parts = [
        f"{entry.client}: {harmless_line(str(entry.path))} ({_WORDS[entry.state]})\n{entry.text}"
        for entry in entries
    ]
    return "\n".join(part.rstrip("\n") + "\n" for part in parts).rstrip("\n")


_WORDS = {
    "set": "it stands there",
    "missing": "not there yet",
    "different": "an entry of this name is there that isn't as we write it",
    "unreadable": "can't be read",
}
