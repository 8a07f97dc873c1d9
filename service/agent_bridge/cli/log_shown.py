"""The service's log, from wherever it goes: the journal under systemd, else our own file."""

from __future__ import annotations

import subprocess
from collections import deque
from typing import Annotated

import typer

from agent_bridge.cli.printing import put
from agent_bridge.cli.result import Result, info
from agent_bridge.daemon import control
from agent_bridge.daemon.install import installed_manager
from agent_bridge.errors import AgentBridgeError

LinesOption = Annotated[
    int, typer.Option("--lines", "-n", min=1, metavar="N", help="So many of the last lines.")
]
FollowOption = Annotated[bool, typer.Option("--follow", "-f", help="Go on with new lines as they come.")]


def shown_log(lines: int, *, follow: bool) -> Result:
    """The last `lines` of the log; with `follow` new ones are put out until the user stops it."""
    manager = installed_manager()
    command = manager.log_command(lines, follow=follow) if manager is not None else None
    if command is not None:
        return _follow(command) if follow else _journal(command)
    log = control.log_file()
    if not log.exists():
        return Result(
            "logs", data={"file": None, "lines": []}, messages=(info(f"There is no log yet: {log}"),)
        )
    if follow:
        return _follow(["tail", "-n", str(lines), "-F", str(log)])
    with log.open(encoding="utf-8", errors="replace") as file:
        last = [line.rstrip("\n") for line in deque(file, maxlen=lines)]
    return Result(
        "logs", data={"file": str(log), "lines": list(last)}, view=("\n".join(last),) if last else ()
    )


def _journal(command: list[str]) -> Result:
    done = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)
    if done.returncode:
        raise AgentBridgeError("The journal can't be read.", detail=done.stderr.strip())
    lines = done.stdout.splitlines()
    return Result(
        "logs", data={"file": None, "lines": list(lines)}, view=("\n".join(lines),) if lines else ()
    )


def _follow(command: list[str]) -> Result:
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, errors="replace") as tail:
        for line in tail.stdout or ():
            put(line.rstrip("\n"))
    return Result("logs", exit_code=tail.returncode)
