"""The real program, run as a user runs it: in a process of its own, in a sealed home."""

from __future__ import annotations

import io
import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import warm
from agent_bridge import log

if TYPE_CHECKING:
    from .channel_rig import Channel


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
    command: tuple[str, ...] = warm.PROGRAM

    def __call__(self, *words: str, stdin: str | bytes = "", env: Mapping[str, str] | None = None) -> Ran:
        code, out, err = self._run(
            words, {**os.environ, **(env or {})}, stdin.encode() if isinstance(stdin, str) else stdin
        )
        assert b"Traceback" not in err, err.decode()
        return Ran(code, out.decode(), err.decode())

    def _run(self, words: Sequence[str], env: Mapping[str, str], stdin: bytes) -> tuple[int, bytes, bytes]:
        if self.command == warm.PROGRAM:
            return warm.run(*words, cwd=self.cwd, env=env, stdin=stdin)
        done = subprocess.run(
            [*self.command, *words],
            cwd=self.cwd,
            input=stdin,
            capture_output=True,
            env=env,
            timeout=60,
            check=False,
        )
        return done.returncode, done.stdout, done.stderr

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


@pytest.fixture(scope="module")
def channel() -> Iterator[Channel]:
    """A service in a home of its own, for all tests of a module."""
    from .channel_rig import Channel, run, sealed

    base = Path(tempfile.mkdtemp(prefix="ab", dir="/tmp")).resolve()
    (base / "home").mkdir()
    (base / "run").mkdir(mode=0o700)
    with pytest.MonkeyPatch.context() as patch:
        for name, value in sealed(base / "home", base / "run").items():
            if value is None:
                patch.delenv(name)
            else:
                patch.setenv(name, value)
        patch.chdir(base / "home")
        # Sessions of the tests run in this process; what they log is no command's output.
        log.configure("error", to_terminal=False, stream=io.StringIO())
        started = run("up", "--json")
        assert started.code == 0, started.out + run("logs").out
        running = Channel(base / "home")
        yield running
        running.end()
        run("down")
        log.reset()
    shutil.rmtree(base, ignore_errors=True)
