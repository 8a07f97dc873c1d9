"""A user in a sealed home with the real program: commands, and the service as its own process."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import warm
from agent_bridge.daemon.client import read_status
from integration.daemon.conftest import PATIENCE, Service

AGENTS = b"# Rules\n\nUse tabs.\n"
CLAUDE = b"# For Claude\n\nBe brief.\n"
PROGRAM = warm.PROGRAM


@dataclass
class Bridge:
    """agent-bridge of the user whose home is `home`; `top` holds home and runtime directory."""

    home: Path
    top: Path
    running: list[Service] = field(default_factory=list)

    def run(
        self, *words: str, cwd: Path | None = None, codes: Sequence[int] = (0,), prefix: Sequence[str] = ()
    ) -> dict[str, Any]:
        """Run a command to its end; its envelope."""
        code, out, err = _run((*words, "--json"), cwd or self.home, prefix)
        assert code in codes, f"{words}: {code}\n{out.decode()}{err.decode()}"
        envelope: dict[str, Any] = json.loads(out)
        return envelope

    def repository(self, name: str = "project") -> Path:
        """A repository with a hand-written AGENTS.md and CLAUDE.md, committed."""
        root = self.home / name
        root.mkdir()
        git(root, "init", "-q", "-b", "main")
        (root / "AGENTS.md").write_bytes(AGENTS)
        (root / "CLAUDE.md").write_bytes(CLAUDE)
        git(root, "add", "-A")
        git(root, "commit", "-q", "-m", "Start")
        return root

    def project(self, name: str = "project") -> Path:
        """A repository that is set up."""
        root = self.repository(name)
        self.run("init", "--yes", cwd=root)
        return root

    def start(
        self,
        *words: str,
        ready: bool = True,
        prefix: Sequence[str] = (),
        env: Mapping[str, str] | None = None,
        program: Sequence[str] = (*PROGRAM, "service", "run"),
    ) -> Service:
        """Start the service; it is ready when the call returns, unless `ready` is False."""
        address = self.top / f"notify{len(self.running)}"
        manager = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        manager.bind(str(address))
        log = self.top / f"log{len(self.running)}"
        with log.open("wb") as out:
            process = subprocess.Popen(
                [*prefix, *program, *words],
                env=os.environ | {"NOTIFY_SOCKET": str(address)} | dict(env or {}),
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                cwd="/",
            )
        self.running.append(Service(process, manager, log))
        if ready:
            self.running[-1].wait_told("READY=1", 60)
        return self.running[-1]

    @classmethod
    def made(cls, home: Path, top: Path) -> Iterator[Bridge]:
        """For a fixture: a user of Claude Code and Codex, whose processes end with the test."""
        for name in (".claude", ".codex"):
            (home / name).mkdir()
        made = cls(home, top)
        yield made
        made.close()

    def close(self) -> None:
        """End what still runs."""
        for service in self.running:
            if service.process.poll() is None:
                service.process.send_signal(signal.SIGCONT)
                service.process.kill()
                service.process.wait()
            service.manager.close()


def _run(words: Sequence[str], cwd: Path, prefix: Sequence[str]) -> tuple[int, bytes, bytes]:
    if not prefix:
        return warm.run(*words, cwd=cwd)
    done = subprocess.run(
        [*prefix, *PROGRAM, *words],
        cwd=cwd,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=60,
        check=False,
    )
    return done.returncode, done.stdout, done.stderr


def git(root: Path, *words: str) -> None:
    """Run Git; it has to succeed."""
    subprocess.run(["git", "-C", str(root), *words], check=True, stdin=subprocess.DEVNULL)


def save(root: Path, name: str, text: str) -> Path:
    """Put a fact in place as a careful editor does."""
    place = root / ".memory/entries" / f"{name}.md"
    aside = place.with_name(f".{name}.tmp")
    aside.write_text(text + "\n")
    aside.replace(place)
    return place


def of(status: Mapping[str, Any], root: Path) -> dict[str, Any]:
    """A project's part of the status; {} where it isn't listed."""
    return next((one for one in status["projects"] if one["root"] == str(root)), {})


def until(reached: Callable[[], object], complaint: Callable[[], object], timeout: float = PATIENCE) -> None:
    """Wait until something holds that another process brings about."""
    deadline = time.monotonic() + timeout
    while not reached():
        assert time.monotonic() < deadline, complaint()
        time.sleep(0.01)


def until_said(path: Path, *texts: str, timeout: float = PATIENCE) -> None:
    """Wait until a file says each text exactly once."""

    def said() -> bool:
        found = path.read_text() if path.exists() else ""
        return all(found.count(text) == 1 for text in texts)

    until(said, lambda: f"{path} doesn't say once each {texts}:\n{path.read_text()[-3000:]}", timeout)


def until_silent(path: Path, text: str, timeout: float = PATIENCE) -> None:
    """Wait until a file doesn't say a text."""
    until(lambda: text not in path.read_text(), lambda: f"{path} still says {text!r}", timeout)


def until_quiet(root: Path, timeout: float = 30.0) -> dict[str, Any]:
    """Wait until the service has acted on everything; the status then."""
    seen: dict[str, Any] = {}

    def quiet() -> bool:
        seen.update(read_status(10.0))
        return seen["queue"] == 0 and of(seen, root).get("state") == "ok"

    until(quiet, lambda: seen, timeout)
    return seen


def leftovers(top: Path) -> list[str]:
    """Temporary files, journals and locks' notes below a directory."""
    names = ("*.agent-bridge.tmp", "*.tmp", "*.journal", "*.moved", "*agent-bridge-old", "*.kept", "*.holder")
    return sorted(str(path) for name in names for path in top.rglob(name))


def tree(top: Path, *without: str) -> dict[str, tuple[str, int, bytes]]:
    """Everything below a directory: kind, mode, and bytes or where a link leads; `without` some parts."""
    found: dict[str, tuple[str, int, bytes]] = {}
    for path in sorted(top.rglob("*")):
        name = path.relative_to(top).as_posix()
        if any(name == part or name.startswith(part + "/") for part in without):
            continue
        mode = path.lstat().st_mode & 0o7777
        if path.is_symlink():
            found[name] = ("link", 0, str(path.readlink()).encode())
        elif path.is_dir():
            found[name] = ("directory", mode, b"")
        else:
            found[name] = ("file", mode, path.read_bytes())
    return found
