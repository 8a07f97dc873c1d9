"""`up` and `down`: the service in the background without a service manager, and its end.

`service start|stop|restart` go through the manager where the service is installed (`daemon.install`).
"""

from __future__ import annotations

import enum
import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from agent_bridge import paths
from agent_bridge.daemon import client
from agent_bridge.daemon.lifecycle import recorded_pid
from agent_bridge.errors import AgentBridgeError

STOP_SECONDS = 8.0
"""How long a service may take to end before it is killed."""
_ANSWER_SECONDS = 0.5
_LOOK_SECONDS = 0.05


class Start(enum.Enum):
    """How `up` ended."""

    STARTED = "started"
    """The service runs and everything is up to date."""
    ALREADY_RUNNING = "already running"
    STARTING = "starting"
    """It runs, but its first pass over everything was not done in time."""
    FAILED = "failed"
    """It ended, or doesn't answer; the log says why."""


class Stop(enum.Enum):
    """How `down` ended."""

    STOPPED = "stopped"
    KILLED = "killed"
    """It didn't end in time and was killed."""
    NOT_RUNNING = "not running"
    FAILED = "failed"
    """It runs, but its process can't be told for certain, so nothing was sent."""


@dataclass(frozen=True, slots=True)
class Started:
    """The result of `up`: `pid` of the service where it is known, and where it logs."""

    result: Start
    pid: int | None
    log: Path


def log_file() -> Path:
    """Where a service that `up` started writes its log."""
    return paths.log_file()


def up(*, timeout: float = 30.0) -> Started:
    """Start the service detached and wait, `timeout` seconds at most, until it is ready."""
    if client.service_is_running():
        return Started(Start.ALREADY_RUNNING, client.serving_pid() or recorded_pid(), log_file())
    paths.ensure_private_dir(paths.state_dir())
    process = _spawn()
    deadline = time.monotonic() + timeout
    while time.monotonic() < deadline:
        if process.poll() is not None:
            # Another one may have been faster: then there is a service all the same.
            running = client.service_is_running()
            return Started(Start.ALREADY_RUNNING if running else Start.FAILED, recorded_pid(), log_file())
        if _is_ready():
            return Started(Start.STARTED, process.pid, log_file())
        time.sleep(_LOOK_SECONDS)
    answers = client.serving_pid() == process.pid
    return Started(Start.STARTING if answers else Start.FAILED, process.pid, log_file())


def notices() -> tuple[str, ...]:
    """What the service has found otherwise than set: sentences, none where it doesn't answer."""
    try:
        return tuple(client.read_status(_ANSWER_SECONDS)["registry"]["notices"])
    except (AgentBridgeError, KeyError, TypeError):
        return ()


def down(*, timeout: float = STOP_SECONDS) -> Stop:
    """End the service: SIGTERM, and SIGKILL when it still runs after `timeout` seconds.

    Nothing is sent unless the lock is held and the kernel names the process that listens on the status
    socket; a pid in a file may long be somebody else's.
    """
    if not client.service_is_running():
        return Stop.NOT_RUNNING
    pid = _certain_pid()
    if pid is None:
        return Stop.NOT_RUNNING if _gone(1.0) else Stop.FAILED
    _send(pid, signal.SIGTERM)
    if _gone(timeout):
        return Stop.STOPPED
    # A hung service listens still; one that is about to end may have closed its socket already.
    if _certain_pid() in (pid, None) and recorded_pid() == pid:
        _send(pid, signal.SIGKILL)
    return Stop.KILLED if _gone(2.0) else Stop.FAILED


def _spawn() -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "agent_bridge.cli.entry", "service", "run"]
    paths.ensure_private_dir(log_file().parent)
    log_file().touch(mode=0o600)
    with log_file().open("ab") as log:
        os.fchmod(log.fileno(), 0o600)
        return subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            cwd="/",
            start_new_session=True,
        )


def _is_ready() -> bool:
    try:
        return client.read_status(_ANSWER_SECONDS)["state"] in ("ok", "degraded")
    except AgentBridgeError:
        return False


def _certain_pid() -> int | None:
    """The service's process when lock, record and kernel agree; elsewhere than on Linux lock and record."""
    recorded = recorded_pid()
    if sys.platform != "linux":
        return recorded
    return recorded if recorded is not None and client.serving_pid() == recorded else None


def _send(pid: int, number: signal.Signals) -> None:
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return


def _gone(timeout: float) -> bool:
    deadline = time.monotonic() + timeout
    while client.service_is_running():
        if time.monotonic() >= deadline:
            return False
        time.sleep(_LOOK_SECONDS)
    return True
