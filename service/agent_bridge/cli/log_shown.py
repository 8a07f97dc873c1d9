"""The service's log, from wherever it goes: the journal under systemd, else our own file."""

from __future__ import annotations

import subprocess
from collections import deque
from pathlib import Path
from typing import Annotated

import typer

from agent_bridge.cli.printing import put
from agent_bridge.cli.result import Result, info
from agent_bridge.daemon import control

LinesOption = Annotated[int, typer.Option("--lines", "-n", min=1, help="So many of the last lines.")]
FollowOption = Annotated[bool, typer.Option("--follow", "-f", help="Go on with new lines as they come.")]


def shown_log(lines: int, *, follow: bool) -> Result:
    """The last `lines` of the log; with `follow` new ones are put out until the user stops it."""
    log = control.log_file()
    if not log.exists():
        return Result(
            "logs", data={"file": None, "lines": []}, messages=(info(f"There is no log yet: {log}"),)
        )
    if follow:
        return _follow(log, lines)
    with log.open(encoding="utf-8", errors="replace") as file:
        last = [line.rstrip("\n") for line in deque(file, maxlen=lines)]
    return Result(
        "logs", data={"file": str(log), "lines": list(last)}, view=("\n".join(last),) if last else ()
    )


def _follow(log: Path, lines: int) -> Result:
    command = ["tail", "-n", str(lines), "-F", str(log)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, errors="replace") as tail:
        for line in tail.stdout or ():
            put(line.rstrip("\n"))
    return Result("logs", exit_code=tail.returncode)
