"""A service in a process of its own, with one project, for as long as a test needs it."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from agent_bridge.daemon.client import NotAnsweringError, read_status
from agent_bridge.errors import NotRunningError
from integration.mcp.brain.conftest import listed_project

PATIENCE = 60.0


def running_service(home: Path) -> Iterator[subprocess.Popen[bytes]]:
    """The process, ready; it has to end well when it is told to. The project is `home`/project."""
    listed_project(home / "project")
    running = subprocess.Popen(
        [sys.executable, "-m", "agent_bridge.cli.entry", "service", "run"], stderr=subprocess.DEVNULL
    )
    try:
        deadline = time.monotonic() + PATIENCE
        while _state() not in ("ok", "degraded"):
            assert time.monotonic() < deadline
            assert running.poll() is None
            time.sleep(0.02)
        yield running
        running.terminate()
        assert running.wait(15) == 0
    finally:
        running.kill()
        running.wait()


def _state() -> str | None:
    try:
        return str(read_status(5.0)["state"])
    except (NotAnsweringError, NotRunningError):
        return None
