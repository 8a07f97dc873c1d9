"""`up` and `down` with the real command, and against what they must not touch."""

from __future__ import annotations

import fcntl
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from agent_bridge import paths
from agent_bridge.daemon import client, control
from integration.daemon.conftest import Starter


@pytest.fixture
def slow_to_end(tmp_path: Path) -> list[str]:
    """A program that takes lock and socket as the service does, and ignores SIGTERM."""
    text = (
        "import signal, time\n"
        "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        "from agent_bridge.daemon.lifecycle import single_instance\n"
        "from agent_bridge.daemon.status_server import StatusServer\n"
        "with single_instance():\n"
        "    StatusServer(lambda: {'state': 'ok', 'reasons': []}).start()\n"
        "    time.sleep(60)\n"
    )
    return [sys.executable, "-c", text]


def test_up_starts_it_ready_and_down_ends_it(sealed_home: Path) -> None:
    started = control.up()
    try:
        assert started.result is control.Start.STARTED, started.log.read_text()
        assert client.read_status()["pid"] == started.pid
        assert control.up().result is control.Start.ALREADY_RUNNING
        assert control.up().pid == started.pid
    finally:
        assert control.down() is control.Stop.STOPPED
    assert not client.service_is_running()
    assert control.down() is control.Stop.NOT_RUNNING


def test_up_says_when_it_cannot_start(sealed_home: Path) -> None:
    paths.config_file().parent.mkdir(parents=True)
    paths.config_file().write_text("quiet_ms = 'soon'\n")
    started = control.up()
    assert started.result is control.Start.FAILED
    assert "quiet_ms" in started.log.read_text()


def test_one_that_does_not_end_is_killed(sealed_home: Path, slow_to_end: list[str]) -> None:
    process = subprocess.Popen(slow_to_end)
    deadline = time.monotonic() + 10
    while client.serving_pid() != process.pid:
        assert time.monotonic() < deadline
        time.sleep(0.02)
    assert control.down(timeout=0.3) is control.Stop.KILLED
    assert process.wait(5) == -signal.SIGKILL


def test_a_stopped_one_is_killed(start_service: Starter) -> None:
    service = start_service()
    service.send(signal.SIGSTOP)
    assert control.down(timeout=0.3) is control.Stop.KILLED
    assert service.process.wait(5) == -signal.SIGKILL


def test_a_stranger_that_holds_only_the_pid_is_left_alone(sealed_home: Path) -> None:
    paths.ensure_private_dir(paths.state_dir())
    with subprocess.Popen(["sleep", "60"]) as stranger:
        try:
            paths.service_lock().with_suffix(".json").write_text(json.dumps({"pid": stranger.pid}))
            paths.service_lock().touch()
            assert control.down() is control.Stop.NOT_RUNNING
            with paths.service_lock().open() as held:
                fcntl.flock(held, fcntl.LOCK_EX)
                assert control.down() is control.Stop.FAILED
            assert stranger.poll() is None
        finally:
            stranger.kill()


def test_asking_whether_it_runs_makes_nothing(sealed_home: Path) -> None:
    assert not client.service_is_running()
    assert not paths.state_dir().exists()


def test_asking_all_the_time_keeps_nobody_from_starting(start_service: Starter) -> None:
    paths.ensure_private_dir(paths.state_dir())
    paths.service_lock().touch()
    text = "from agent_bridge.daemon import client\nwhile not client.service_is_running(): pass\n"
    with subprocess.Popen([sys.executable, "-c", text], env=dict(os.environ)) as asking:
        try:
            start_service()
            assert client.read_status()["state"] == "ok"
        finally:
            asking.kill()
