"""Both plists run, by the real program, in the environment that launchd gives an agent."""

from __future__ import annotations

import os
import plistlib
import pwd
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from agent_bridge import paths
from agent_bridge.daemon.client import read_status
from agent_bridge.daemon.install import carried, shipped
from agent_bridge.daemon.install_launchd import LABEL, PATH, render
from agent_bridge.errors import AgentBridgeError

PROGRAM = Path(sys.prefix) / "bin/agent-bridge"


@pytest.fixture
def home(sealed_home: Path, short_tmp: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home with the program where a tool installer puts it."""
    # On a Mac the socket's place follows from HOME; elsewhere from what launchd doesn't hand down.
    monkeypatch.setenv("AGENT_BRIDGE_RUNTIME_DIR", str(short_tmp / "run/own"))
    (sealed_home / ".local/bin").mkdir(parents=True)
    (sealed_home / ".local/bin/agent-bridge").symlink_to(PROGRAM)
    return sealed_home


def test_the_shipped_one_runs_and_logs_to_our_own_file(home: Path) -> None:
    agent = plistlib.loads(shipped(f"{LABEL}.plist"))
    socket_place = {"AGENT_BRIDGE_RUNTIME_DIR": os.environ["AGENT_BRIDGE_RUNTIME_DIR"]}
    with _started(agent, home, socket_place) as process:
        assert _answer(process)["pid"] == process.pid  # the shell has given way to the program
        _end(process, agent)
    log = paths.log_file()
    assert '"ready"' in log.read_text()
    assert log.stat().st_mode & 0o777 == 0o600


def test_the_installed_one_runs_and_launchd_keeps_its_log(home: Path) -> None:
    log = home / "Library/Logs/agent-bridge/agent-bridge.log"
    log.parent.mkdir(parents=True)
    agent = plistlib.loads(render(PROGRAM, home, log, carried(os.environ, {"PATH": PATH})))
    assert os.access(agent["ProgramArguments"][0], os.X_OK)
    with _started(agent, home, {}) as process:
        assert _answer(process)["pid"] == process.pid
        _end(process, agent)
    assert '"ready"' in log.read_text()
    assert not paths.log_file().exists()


def test_a_start_that_fails_is_in_our_own_file_too(home: Path) -> None:
    agent = plistlib.loads(shipped(f"{LABEL}.plist"))
    with _started(agent, home, {"AGENT_BRIDGE_QUIET_MS": "soon"}) as process:
        assert process.wait(20) == 2
    assert "AGENT_BRIDGE_QUIET_MS" in paths.log_file().read_text()


@contextmanager
def _started(agent: dict[str, Any], home: Path, env: dict[str, str]) -> Iterator[subprocess.Popen[bytes]]:
    """What launchd does with a plist: nothing is inherited, nothing expanded."""
    user = pwd.getpwuid(os.getuid()).pw_name
    given = {
        "HOME": str(home),
        "USER": user,
        "LOGNAME": user,
        "SHELL": "/bin/sh",
        "TMPDIR": "/tmp",
        "PATH": PATH,
    }
    with Path(agent.get("StandardErrorPath", os.devnull)).open("ab") as out:
        process = subprocess.Popen(
            agent["ProgramArguments"],
            cwd=agent.get("WorkingDirectory", "/"),
            env=given | agent.get("EnvironmentVariables", {}) | env,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=out,
            umask=agent["Umask"],
            start_new_session=True,
        )
    try:
        yield process
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()


def _answer(process: subprocess.Popen[bytes]) -> dict[str, Any]:
    deadline = time.monotonic() + 20
    while True:
        try:
            status = read_status()
        except AgentBridgeError:
            status = {"state": "none"}
        if status["state"] == "ok":
            return status
        assert process.poll() is None, f"ended with {process.returncode}"
        assert time.monotonic() < deadline, status
        time.sleep(0.02)


def _end(process: subprocess.Popen[bytes], agent: dict[str, Any]) -> None:
    process.terminate()
    assert process.wait(agent["ExitTimeOut"]) == 0
