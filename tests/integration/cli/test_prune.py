"""`prune`: real processes, and rows that say they are theirs."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator

import pytest

from agent_bridge.client.requests import Registration

from .channel_rig import Channel, run
from .conftest import Program
from .terminal import at_terminal

SLEEP = "print('up', flush=True); import time; time.sleep(60)"
AT_TERMINAL = "import fcntl, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0); " + SLEEP
STUBBORN = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); " + SLEEP

Start = Callable[..., "subprocess.Popen[bytes]"]
Enter = Callable[..., str]


@pytest.fixture
def start() -> Iterator[Start]:
    """Starts a process in a session of its own, so without a terminal; they end with the test."""
    started: list[subprocess.Popen[bytes]] = []
    ours, theirs = os.openpty()

    def start(code: str = SLEEP) -> subprocess.Popen[bytes]:
        process = subprocess.Popen(
            [sys.executable, "-c", code], stdin=theirs, stdout=subprocess.PIPE, start_new_session=True
        )
        started.append(process)
        assert process.stdout is not None
        process.stdout.readline()
        return process

    yield start
    for process in started:
        process.kill()
        process.communicate()
    os.close(ours)
    os.close(theirs)


@pytest.fixture
def enter(channel: Channel) -> Iterator[Enter]:
    """Enters a row for a process of this machine; the rows go with the test."""
    entered: list[str] = []

    def enter(name: str, pid: int | None, **more: object) -> str:
        registration = Registration(
            agent_id=f"client-{name}-1",
            name=name,
            project_path=f"/src/{name}",
            client_name=name,
            more={"pid": pid, **more},
        )
        wire = {key: value for key, value in registration.as_wire().items() if value is not None}
        with channel.registry() as registry:
            registry._ask("POST", "/agents", body=wire)
        entered.append(registration.agent_id)
        return registration.agent_id

    yield enter
    with channel.registry() as registry:
        for agent_id in entered:
            registry.deregister(agent_id)


@pytest.fixture
def gone() -> int:
    """The number of a process that has ended."""
    process = subprocess.Popen(["true"])
    process.wait()
    return process.pid


def _sessions(*words: str) -> dict[str, dict[str, object]]:
    ran = run("prune", "--json", *words)
    assert ran.code == 0, ran.out
    return {one["agentId"]: one for one in ran.json["data"]["sessions"]}


def _listed() -> set[str]:
    return {row["agentId"] for row in run("agents", "--all", "--json").json["data"]["agents"]}


def test_the_classes(start: Start, enter: Enter, gone: int) -> None:
    ids = {
        "dead": enter("dead", gone),
        "orphaned": enter("orphaned", start().pid),
        "live": enter("live", start(AT_TERMINAL).pid),
        "remote": enter("remote", start().pid, host="elsewhere"),
    }
    for words in (("--dry-run",), ("--dry-run", "--all"), ("--dry-run", "--orphans")):
        found = _sessions(*words)
        assert {name: found[agent_id]["class"] for name, agent_id in ids.items()} == {
            name: name for name in ids
        }
        assert found[ids["remote"]]["action"] == "keep"
    assert set(ids.values()) <= _listed()  # a dry run does nothing
    rows = [line.split(" | ")[:2] for line in run("prune", "--dry-run").out.splitlines()]
    assert [ids["dead"], "dead"] in rows


def test_only_dead_ones_go_unless_more_is_said(start: Start, enter: Enter, gone: int) -> None:
    orphan, live = start(), start(AT_TERMINAL)
    dead_row, orphan_row, live_row = enter("dead", gone), enter("orphan", orphan.pid), enter("live", live.pid)
    found = _sessions()
    assert found[dead_row]["outcome"] == "taken out of the list"
    assert _listed() & {dead_row, orphan_row, live_row} == {orphan_row, live_row}
    assert (orphan.poll(), live.poll()) == (None, None)
    assert "prune --orphans" in run("prune").err

    assert _sessions("--orphans", "--yes")[orphan_row]["outcome"] == "ended and taken out of the list"
    assert orphan.wait(5) == -signal.SIGTERM
    assert _listed() & {orphan_row, live_row} == {live_row}
    assert live.poll() is None

    assert _sessions("--all", "--yes")[live_row]["action"] == "end"
    assert live.wait(5) == -signal.SIGTERM
    assert not _listed() & {live_row}


def test_one_that_is_named(start: Start, enter: Enter) -> None:
    named, other = start(AT_TERMINAL), start()
    named_row, other_row = enter("named", named.pid), enter("other", other.pid)
    assert list(_sessions("named", "--yes")) == [named_row]
    assert named.wait(5) == -signal.SIGTERM
    assert other.poll() is None
    assert other_row in _listed()


def test_killing_needs_a_word(start: Start, enter: Enter, gone: int) -> None:
    process = start()
    row, dead = enter("orphan", process.pid), enter("dead", gone)
    for words in (
        ("prune", "--orphans"),
        ("prune", "--all"),
        ("prune", row),
        ("prune", "--orphans", "--json"),
    ):
        ran = run(*words)
        assert ran.code == 2, words
        assert "--yes" in ran.out + ran.err, words
    assert process.poll() is None
    assert {row, dead} <= _listed()  # nothing at all was done
    assert run("prune", row, "--orphans", "--yes").code == 2


@pytest.mark.parametrize(("answer", "code"), [("y", 0), ("n", 4)])
def test_at_a_terminal_it_asks(channel: Channel, start: Start, enter: Enter, answer: str, code: int) -> None:
    process = start()
    enter("orphan", process.pid)
    answered = at_terminal(Program(channel.home), ["prune", "--orphans"], answer)
    assert answered.code == code, answered.err
    assert f"{process.pid}  " in answered.err
    assert "End this process?" in answered.err
    if code:
        assert process.poll() is None
        return
    assert process.wait(5) == -signal.SIGTERM


def test_a_row_that_was_taken_again_while_it_asked_stays(
    start: Start, enter: Enter, monkeypatch: pytest.MonkeyPatch
) -> None:
    former, later = start(), start()
    row = enter("again", former.pid)

    def meanwhile(_question: str, *, yes: bool) -> None:
        enter("again", later.pid)

    monkeypatch.setattr("agent_bridge.cli.prune_verb.consent", meanwhile)
    ran = run("prune", "--orphans")
    assert "another process has registered meanwhile" in ran.out
    assert former.wait(5) == -signal.SIGTERM
    assert later.poll() is None
    assert row in _listed()


def test_json_at_a_terminal_is_no_consent(channel: Channel, start: Start, enter: Enter) -> None:
    process = start()
    enter("orphan", process.pid)
    assert at_terminal(Program(channel.home), ["prune", "--orphans", "--json"], "y").code == 2
    assert process.poll() is None


def test_one_that_doesnt_end_keeps_its_row(
    start: Start, enter: Enter, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agent_bridge.daemon.processes.END_SECONDS", 0.3)
    process = start(STUBBORN)
    row = enter("stubborn", process.pid)
    ran = run("prune", row, "--yes", "--json")
    assert ran.code == 1
    (told,) = ran.json["data"]["sessions"]
    assert str(told["outcome"]).startswith("failed: ")
    assert row in _listed()
    assert process.poll() is None


def test_what_is_never_ended(channel: Channel, enter: Enter, start: Start) -> None:
    status = run("status", "--json").json["data"]
    victim = start()
    never = {
        "itself": enter("itself", os.getpid()),
        "parent": enter("parent", os.getppid()),
        "first": enter("first", 1),
        "service": enter("service", status["pid"]),
        "elsewhere": enter("elsewhere", victim.pid, host=f"not-{socket.gethostname()}"),
        "nameless": enter("nameless", None),
    }
    found = _sessions("--all", "--yes")
    assert {found[agent_id]["action"] for agent_id in never.values()} == {"keep"}
    for agent_id in never.values():
        assert run("prune", agent_id, "--yes").code == 4, agent_id
    assert run("status", "--json").json["data"]["pid"] == status["pid"]
    assert victim.poll() is None


@pytest.mark.skipif(os.getuid() != 0, reason="needs a process of another user")
def test_another_users_process_is_left_alone(enter: Enter) -> None:
    with subprocess.Popen(
        ["sh", "-c", "echo up; exec sleep 60"], stdout=subprocess.PIPE, user=65534, group=65534, cwd="/"
    ) as process:
        assert process.stdout is not None
        process.stdout.readline()
        try:
            row = enter("theirs", process.pid)
            assert _sessions("--all", "--yes")[row]["action"] == "keep"
            assert process.poll() is None
        finally:
            process.kill()


def test_another_identitys_rows_are_not_touched(channel: Channel, enter: Enter, gone: int) -> None:
    row = enter("mine", gone)
    assert run("prune", "--identity", "work", "--json").json["data"]["sessions"] == []
    assert run("prune", row, "--identity", "work").code == 1
    assert row in _listed()
