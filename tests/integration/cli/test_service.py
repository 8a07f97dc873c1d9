"""up, down, status, logs: by the real program with the real service."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from .conftest import Program


@pytest.fixture
def serving(program: Program) -> Iterator[Program]:
    """A project that is set up, with the service running."""
    assert program("init", "--yes").code == 0
    started = program("up", "--json")
    assert started.code == 0, started.out
    assert started.json["data"]["result"] == "started"
    yield program
    program("down")


def test_up_status_down(serving: Program) -> None:
    assert serving("up", "--json").json["data"]["result"] == "already running"
    status = serving("status", "--json")
    assert status.code == 0
    assert status.json["data"]["state"] == "ok"
    assert [project["root"] for project in status.json["data"]["projects"]] == [str(serving.cwd)]
    assert str(serving.cwd) in serving("status").out
    assert serving("service", "status", "--json").json["data"]["pid"] == status.json["data"]["pid"]
    assert serving("down", "--json").json["data"]["result"] == "stopped"
    assert serving("status").code == 3
    assert serving("down", "--json").json["data"]["result"] == "not running"


def test_without_the_service_a_command_brings_its_fact_to_the_agents(serving: Program) -> None:
    assert serving("add", "The harbour is north").err == ""
    serving("down")
    assert serving("add", "The airport is south").err == ""
    assert "The airport is south" in (serving.cwd / "AGENTS.md").read_text()


def test_a_stopped_service_is_running_but_not_answering(serving: Program) -> None:
    pid = serving("status", "--json").json["data"]["pid"]
    os.kill(pid, signal.SIGSTOP)
    try:
        begun = time.monotonic()
        status = serving("status", "--json")
        assert time.monotonic() - begun < 5
        assert status.code == 1
        assert status.json["data"]["state"] == "not answering"
    finally:
        os.kill(pid, signal.SIGCONT)


def test_logs(serving: Program) -> None:
    told = serving("logs", "--json").json["data"]
    assert Path(told["file"]).is_file()
    assert any("ready" in line for line in told["lines"])
    assert len(serving("service", "logs", "-n", "1").out.splitlines()) == 1


def test_logs_without_one(program: Program) -> None:
    assert program("logs").code == 0
    assert program("logs", "--json").json["data"] == {"file": None, "lines": []}
    assert program("logs", "--follow", "--json").code == 2


@pytest.mark.parametrize(
    ("flag", "value"),
    [("--quiet-ms", "-1"), ("--quiet-ms", "soon"), ("--log-level", "loud"), ("--similarity", "2")],
)
def test_a_bad_setting_is_wrong_usage(program: Program, flag: str, value: str) -> None:
    ran = program("service", "run", flag, value)
    assert ran.code == 2
    assert flag in ran.err


def test_start_restart_stop_without_a_service_manager(program: Program) -> None:
    """Where nothing is installed they do what `up` and `down` do."""
    started = program("service", "start", "--json").json["data"]
    try:
        assert started["result"] == "started"
        restarted = program("service", "restart", "--json").json["data"]
        assert restarted["result"] == "started"
        assert restarted["pid"] != started["pid"]
    finally:
        assert program("service", "stop", "--json").json["data"]["result"] == "stopped"
