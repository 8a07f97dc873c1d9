"""The real program, run as a user runs it: in a process of its own, in a sealed home."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest


@dataclass(frozen=True)
class Ran:
    """How a run ended."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> dict[str, Any]:
        """The envelope; fails when stdout holds anything else."""
        document = json.loads(self.out)
        assert isinstance(document, dict)
        assert set(document) == {"schema", "command", "data", "messages", "errors"}
        assert document["schema"] == 1
        assert self.err == ""
        return document


@dataclass(frozen=True)
class Program:
    """`agent-bridge`, started in `cwd`."""

    cwd: Path
    command: tuple[str, ...] = (sys.executable, "-m", "agent_bridge.cli.entry")

    def __call__(self, *words: str, stdin: str | bytes = "", env: Mapping[str, str] | None = None) -> Ran:
        done = subprocess.run(
            [*self.command, *words],
            cwd=self.cwd,
            input=stdin.encode() if isinstance(stdin, str) else stdin,
            capture_output=True,
            env={**os.environ, **(env or {})},
            timeout=60,
            check=False,
        )
        assert b"Traceback" not in done.stderr, done.stderr.decode()
        return Ran(done.returncode, done.stdout.decode(), done.stderr.decode())

    def id_of(self, *words: str) -> str:
        """Add a fact and return its id."""
        added = self("add", "--json", *words)
        assert added.code == 0, added.out
        return str(added.json["data"]["fact"]["id"])


@pytest.fixture
def project(short_tmp: Path, sealed_home: Path) -> Path:
    """An empty Git repository."""
    root = short_tmp / "project"
    root.mkdir()
    subprocess.run(["git", "init", "-q", str(root)], check=True)
    return root


@pytest.fixture
def program(project: Path) -> Program:
    """The program in a project without a memory."""
    return Program(project)


@pytest.fixture
def remembering(program: Program) -> Program:
    """The program in a project with an empty memory."""
    (program.cwd / ".memory").mkdir()
    return program
