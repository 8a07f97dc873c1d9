"""Starts the service with the little engine in the sealed home; talks to it as manager and users do."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from agent_bridge.daemon.client import read_status
from agent_bridge.projects import Project, add_project, id_for

PROGRAM = Path(__file__).with_name("little_service.py")
PATIENCE = 15.0


@dataclass
class Service:
    """One run of the service."""

    process: subprocess.Popen[bytes]
    manager: socket.socket
    log: Path
    told: list[str] = field(default_factory=list)

    def wait_told(self, message: str, timeout: float = PATIENCE) -> None:
        """Wait for a message to the service manager."""
        deadline = time.monotonic() + timeout
        while not any(message in told for told in self.told):
            left = deadline - time.monotonic()
            assert left > 0, f"{message} was not sent; told: {self.told}\n{self.log.read_text()[-4000:]}"
            self.manager.settimeout(left)
            try:
                self.told.append(self.manager.recv(4096).decode())
            except TimeoutError:
                continue

    def wait_status(
        self, fits: Callable[[dict[str, Any]], object], timeout: float = PATIENCE
    ) -> dict[str, Any]:
        """Wait until the status fits."""
        deadline = time.monotonic() + timeout
        while True:
            status = read_status(5.0)
            if fits(status):
                return status
            assert time.monotonic() < deadline, (
                f"the status never fitted: {status}\n{self.log.read_text()[-4000:]}"
            )
            time.sleep(0.01)

    def send(self, number: signal.Signals) -> None:
        self.process.send_signal(number)
        if number is signal.SIGSTOP:
            self._wait_stopped()

    def _wait_stopped(self) -> None:
        """Stopping takes a moment: each thread runs on until the kernel gets at it."""
        tasks = Path(f"/proc/{self.process.pid}/task")
        deadline = time.monotonic() + PATIENCE
        while any(
            (task / "stat").read_text().rpartition(")")[2].split()[0] != "T" for task in tasks.iterdir()
        ):
            assert time.monotonic() < deadline
            time.sleep(0.005)

    def end(self) -> int:
        """SIGTERM; the exit code."""
        self.process.terminate()
        return self.process.wait(10)


Starter = Callable[..., Service]


@pytest.fixture
def start_service(sealed_home: Path, short_tmp: Path) -> Iterator[Starter]:
    """Start the service; it is ready when the call returns, unless `ready=False`."""
    running: list[Service] = []

    def start(
        *words: str, ready: bool = True, prefix: tuple[str, ...] = (), env: dict[str, str] | None = None
    ) -> Service:
        address = short_tmp / f"notify{len(running)}"
        manager = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        manager.bind(str(address))
        log = short_tmp / f"log{len(running)}"
        with log.open("wb") as out:
            process = subprocess.Popen(
                [*prefix, sys.executable, str(PROGRAM), *words],
                env=os.environ | {"NOTIFY_SOCKET": str(address)} | (env or {}),
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                cwd="/",
            )
        running.append(Service(process, manager, log))
        if ready:
            running[-1].wait_told("READY=1")
        return running[-1]

    yield start
    for service in running:
        if service.process.poll() is None:
            service.process.send_signal(signal.SIGCONT)
            service.process.kill()
            service.process.wait()
        service.manager.close()


@pytest.fixture
def make_project(sealed_home: Path) -> Callable[..., Project]:
    """A listed project with an empty store."""

    def make(name: str = "project", *, listed: bool = True) -> Project:
        root = (sealed_home / name).resolve()
        (root / ".memory" / "entries").mkdir(parents=True)
        project = Project(id_for(root), root)
        if listed:
            add_project(project)
        return project

    return make


@pytest.fixture
def need_unshare() -> None:
    """Skip where the kernel refuses user namespaces."""
    if shutil.which("unshare") is None:
        pytest.skip("unshare is not installed")
    done = subprocess.run(["unshare", "-Ur", "true"], check=False, capture_output=True)
    if done.returncode:
        pytest.skip(f"the kernel refuses user namespaces: {done.stderr.decode().strip()}")


def wait_for_text(path: Path, text: str, timeout: float = PATIENCE) -> float:
    """Wait until a file holds exactly `text`; how long it took."""
    started = time.monotonic()
    while True:
        try:
            if path.read_text() == text:
                return time.monotonic() - started
        except FileNotFoundError:
            pass
        found = path.read_text() if path.exists() else None
        assert time.monotonic() - started < timeout, f"{path} holds {found!r}"[:2000]
        time.sleep(0.002)
