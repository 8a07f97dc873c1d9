"""Looking at real processes, and ending them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest

from agent_bridge.daemon import processes

SLEEP = [sys.executable, "-c", "import sys, time; print('up', flush=True); time.sleep(60)"]
STUBBORN = [
    sys.executable,
    "-c",
    "import signal, time\n"
    "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
    "print('up', flush=True); time.sleep(60)",
]


@pytest.fixture
def sleeper() -> Iterator[subprocess.Popen[bytes]]:
    """A process that does nothing."""
    yield from _started(SLEEP)


@pytest.fixture
def stubborn() -> Iterator[subprocess.Popen[bytes]]:
    """A process that doesn't end when it is asked to."""
    yield from _started(STUBBORN)


def _started(command: list[str]) -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen(command, stdout=subprocess.PIPE, start_new_session=True) as process:
        assert process.stdout is not None
        process.stdout.readline()
        yield process
        process.kill()


def test_a_process_without_a_terminal(sleeper: subprocess.Popen[bytes]) -> None:
    found = processes.look(sleeper.pid)
    assert found is not None
    assert (found.pid, found.parent, found.user) == (sleeper.pid, os.getpid(), os.getuid())
    assert not found.has_terminal
    assert not found.is_adopted
    assert "time.sleep(60)" in found.command
    assert abs(found.started_at - time.time() * 1000) < 60_000


def test_a_process_with_a_terminal() -> None:
    ours, theirs = os.openpty()
    code = (
        "import fcntl, sys, termios\n"
        "fcntl.ioctl(0, termios.TIOCSCTTY, 0)\n"
        "print('up', flush=True); sys.stdin.read()"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", code], stdin=theirs, stdout=subprocess.PIPE, start_new_session=True
    )
    try:
        assert process.stdout is not None
        process.stdout.readline()
        found = processes.look(process.pid)
        assert found is not None
        assert found.has_terminal
    finally:
        process.kill()
        process.communicate()
        os.close(ours)
        os.close(theirs)


def test_one_that_is_gone_and_one_whose_remains_are_left(sleeper: subprocess.Popen[bytes]) -> None:
    sleeper.kill()
    os.waitid(os.P_PID, sleeper.pid, os.WEXITED | os.WNOWAIT)
    assert processes.look(sleeper.pid) is None  # a zombie
    sleeper.wait()
    assert processes.look(sleeper.pid) is None
    assert [processes.look(number) for number in (0, -1, 1 << 40)] == [None, None, None]


def test_ps_says_the_same(sleeper: subprocess.Popen[bytes], monkeypatch: pytest.MonkeyPatch) -> None:
    """As on macOS."""
    told = processes.look(sleeper.pid)
    monkeypatch.setattr(sys, "platform", "darwin")
    by_ps = processes.look(sleeper.pid)
    assert told is not None
    assert by_ps is not None
    assert (by_ps.pid, by_ps.parent, by_ps.user, by_ps.has_terminal) == (
        told.pid,
        told.parent,
        told.user,
        told.has_terminal,
    )
    assert abs(by_ps.started_at - told.started_at) <= 2000
    assert by_ps.command.split() == told.command.split()


def test_one_that_cant_be_looked_at(
    sleeper: subprocess.Popen[bytes], monkeypatch: pytest.MonkeyPatch, tmp_path: object
) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    monkeypatch.setenv("PATH", str(tmp_path))  # no ps
    with pytest.raises(processes.NotInspectableError):
        processes.look(sleeper.pid)


def test_the_ancestors() -> None:
    found = processes.ancestors(os.getpid())
    assert {os.getpid(), os.getppid()} <= found


def test_ending_one(sleeper: subprocess.Popen[bytes]) -> None:
    process = processes.look(sleeper.pid)
    assert process is not None
    assert processes.end(process)
    assert sleeper.wait(5) == -signal.SIGTERM
    assert not processes.end(process)  # gone already


def test_a_number_that_another_process_has_now_is_left_alone(sleeper: subprocess.Popen[bytes]) -> None:
    process = processes.look(sleeper.pid)
    assert process is not None
    former = processes.Process(
        pid=process.pid, parent=1, user=process.user, started_at=1, has_terminal=False, command="another"
    )
    assert not processes.end(former)
    assert sleeper.poll() is None


def test_one_that_doesnt_end_is_told(stubborn: subprocess.Popen[bytes]) -> None:
    process = processes.look(stubborn.pid)
    assert process is not None
    with pytest.raises(processes.NotEndedError, match="still there"):
        processes.end(process, timeout=0.2)


@pytest.mark.skipif(os.getuid() != 0, reason="needs a process of another user")
def test_the_user_is_the_one_who_runs_it() -> None:
    anybody = ["sh", "-c", "echo up; exec sleep 60"]
    with subprocess.Popen(anybody, stdout=subprocess.PIPE, user=65534, group=65534, cwd="/") as process:
        assert process.stdout is not None
        process.stdout.readline()
        try:
            found = processes.look(process.pid)
            assert found is not None
            assert found.user == 65534
        finally:
            process.kill()


@pytest.mark.skipif(os.getuid() == 0, reason="root may end everything")
def test_one_that_may_not_be_told() -> None:
    process = processes.look(1)
    assert process is not None
    with pytest.raises(processes.NotEndedError, match="may not"):
        processes.end(process)
