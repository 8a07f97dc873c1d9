"""Runs agent-bridge as a user does: its command in the same sealed home as the clients, and its service."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sysconfig
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import warm
from clients.rig.sealed import base_environment

READY_S = 30.0
SETTLED_S = 15.0
_POLL_S = 0.02


class ProductError(Exception):
    """agent-bridge did something else than the test takes for granted."""


@dataclass(frozen=True, slots=True)
class Product:
    """agent-bridge for the user whose home is `home`. `env` is added to its environment."""

    home: Path
    env: Mapping[str, str] = field(default_factory=dict)

    def run(self, *words: str, cwd: Path, exit_codes: Sequence[int] = (0,)) -> Mapping[str, Any]:
        """Run a command with --json; its envelope. ProductError for any other exit code."""
        code, out, err = warm.run(
            *words, "--json", cwd=cwd, env=self.environment(), program=_program(), timeout=READY_S
        )
        if code not in exit_codes:
            told = f"{out.decode()[-3000:]}\n{err.decode()[-3000:]}"
            raise ProductError(f"agent-bridge {' '.join(words)}: exit code {code}\n{told}")
        envelope: Mapping[str, Any] = json.loads(out)
        return envelope

    def init(self, root: Path, *, mcp: bool = False) -> Mapping[str, Any]:
        """Set the project up without being asked.

        `mcp`: with our MCP server in the clients' settings. Each session of a client would start it, and that
        the service: for tests that are about neither, it is left out.
        """
        return self.run("init", "--yes", *(() if mcp else ("--no-mcp",)), cwd=root)

    @contextmanager
    def service(self) -> Iterator[Service]:
        """Run the service until the block ends; it is ready (all projects compared) when the block starts."""
        log = self.home.parent / "service.log"
        notify = self.home.parent / "notify"
        with log.open("wb") as out, socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as ready:
            notify.unlink(missing_ok=True)
            ready.bind(str(notify))
            process = subprocess.Popen(
                [_program(), "service", "run"],
                cwd="/",
                env=self.environment() | {"NOTIFY_SOCKET": str(notify)},
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
            service = Service(self, process, log)
            try:
                service.wait_until_ready(ready)
                yield service
            finally:
                service.stop()

    def environment(self) -> dict[str, str]:
        """What agent-bridge is started with."""
        runtime = self.home.parent / "run"
        runtime.mkdir(mode=0o700, exist_ok=True)
        return base_environment(self.home) | {"XDG_RUNTIME_DIR": str(runtime)} | dict(self.env)


@dataclass(frozen=True, slots=True)
class Service:
    """The running service."""

    product: Product
    process: subprocess.Popen[bytes]
    log: Path

    def status(self) -> Mapping[str, Any]:
        """What `agent-bridge status --json` answers, degraded or not."""
        data: Mapping[str, Any] = self.product.run("status", cwd=Path("/"), exit_codes=(0, 1))["data"]
        return data

    def project(self, root: Path) -> Mapping[str, Any]:
        """One project's part of the status."""
        return _project(self.status(), root)

    @contextmanager
    def change(self, root: Path) -> Iterator[None]:
        """Change something of a project inside the block; at its end the service has acted on it."""
        before = self.project(root)["generation"]
        yield
        deadline = time.monotonic() + SETTLED_S
        while True:
            status = self.status()
            if _project(status, root)["generation"] > before and status["queue"] == 0:
                return
            self._still(deadline, f"no pass since generation {before}: {status}")

    def until_in(self, path: Path, text: str, *, count: int = 1) -> None:
        """Wait until a text stands in a file so many times."""
        deadline = time.monotonic() + SETTLED_S
        while path.read_text("utf-8").count(text) != count:
            self._still(deadline, f"{path} doesn't hold {text!r} {count} times:\n{path.read_text('utf-8')}")

    def wait_until_ready(self, ready: socket.socket) -> None:
        """Wait for READY=1, as systemd does."""
        ready.settimeout(0.5)
        deadline = time.monotonic() + READY_S
        while True:
            try:
                if b"READY=1" in ready.recv(4096).split(b"\n"):
                    return
            except TimeoutError:
                self._still(deadline, "the service doesn't get ready")

    def stop(self) -> None:
        """End it as systemd does; ProductError when it doesn't go."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise ProductError(f"SIGTERM doesn't end the service\n{self._logged()}") from None

    def _still(self, deadline: float, complaint: str) -> None:
        if self.process.poll() is not None:
            raise ProductError(f"the service ended by itself ({self.process.returncode})\n{self._logged()}")
        if time.monotonic() > deadline:
            raise ProductError(f"{complaint}\n{self._logged()}")
        time.sleep(_POLL_S)

    def _logged(self) -> str:
        return self.log.read_text("utf-8", "replace")[-4000:]


def _project(status: Mapping[str, Any], root: Path) -> Mapping[str, Any]:
    found = [project for project in status["projects"] if project["root"] == str(root)]
    if not found:
        raise ProductError(f"{root} is not among the service's projects: {status}")
    project: Mapping[str, Any] = found[0]
    return project


def _program() -> str:
    return str(Path(sysconfig.get_path("scripts")) / "agent-bridge")
