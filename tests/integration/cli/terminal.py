"""Running the program with a person at the terminal, played by a script."""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass

from .conftest import Program


@dataclass(frozen=True)
class Answered:
    """How a run ended at which questions were answered."""

    code: int
    out: str
    err: str


def at_terminal(program: Program, words: list[str], *answers: str) -> Answered:
    """Run `words` with a terminal as stdin, on which `answers` are typed ahead."""
    ours, theirs = os.openpty()
    try:
        os.write(ours, "".join(f"{answer}\n" for answer in answers).encode())
        done = subprocess.run(
            [*program.command, *words],
            cwd=program.cwd,
            stdin=theirs,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
    finally:
        os.close(ours)
        os.close(theirs)
    return Answered(done.returncode, done.stdout, done.stderr)
