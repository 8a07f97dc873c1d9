"""The main loop in this process, with watchers that fail in ways the system's can't be made to."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from agent_bridge.config import load_settings
from agent_bridge.daemon.jobs import Jobs
from agent_bridge.daemon.notify import Notifier
from agent_bridge.daemon.orders import Order
from agent_bridge.daemon.pulse import Pulse
from agent_bridge.daemon.reactor import DueJob, Inbox, Reactor
from agent_bridge.daemon.status import StatusBoard
from agent_bridge.daemon.supervisor import Supervisor
from agent_bridge.projects import Project
from agent_bridge.watch.events import Interest, Sink
from agent_bridge.watch.observer import Watcher, open_watcher
from agent_bridge.watch.watches import WatchSet
from integration.daemon.conftest import PATIENCE, wait_for_text
from integration.daemon.little_service import Engines


class Deaf:
    """A watcher to which nobody tells anything; `dead` ones say so."""

    name = "deaf"

    def __init__(self, *, dead: bool = False) -> None:
        self.dead = dead

    def watch(self, directory: Path, interest: Interest) -> None:
        pass

    def unwatch(self, directory: Path) -> None:
        pass

    def is_alive(self) -> bool:
        return not self.dead

    def close(self) -> None:
        pass


@contextmanager
def running(opener: Callable[[Sink], Watcher], **flags: float) -> Iterator[StatusBoard]:
    inbox: Inbox = queue.SimpleQueue()
    settings = load_settings(env=None, **flags)
    board = StatusBoard()
    watches = WatchSet(inbox.put, opener)
    jobs = Jobs(lambda name: inbox.put(DueJob(name)))
    reactor = Reactor(
        inbox=inbox,
        settings=settings,
        reload_settings=lambda: settings,
        supervisor=Supervisor(Engines(), settings),
        watches=watches,
        jobs=jobs,
        board=board,
        pulse=Pulse(board, Notifier({})),
    )
    thread = threading.Thread(target=reactor.run)
    thread.start()
    try:
        wait_until(board, lambda status: status["state"] != "starting")
        yield board
    finally:
        inbox.put(Order.STOP)
        thread.join(PATIENCE)
        jobs.stop()
        watches.close()
        assert not thread.is_alive()
        assert board.read()["state"] == "stopping"


def wait_until(board: StatusBoard, fits: Callable[[dict[str, Any]], object]) -> dict[str, Any]:
    deadline = time.monotonic() + PATIENCE
    while not fits(status := board.read()):
        assert time.monotonic() < deadline, status
        time.sleep(0.01)
    return status


def openers(first: Watcher) -> Callable[[Sink], Watcher]:
    """`first` once, the system's watcher afterwards."""
    left = [first]
    return lambda sink: left.pop() if left else open_watcher(sink)


def test_a_missed_change_is_found_counted_told_and_answered_with_a_new_watcher(
    make_project: Callable[..., Project],
) -> None:
    project = make_project()
    with running(openers(Deaf()), reconcile_interval_s=1.5) as board:
        (project.store / "entries" / "a.md").write_text("one")
        wait_for_text(project.root / "OUT.md", "one\n")
        status = wait_until(board, lambda status: status["watch"]["missed"])
        assert status["state"] == "degraded"
        assert "no event had announced" in status["reasons"][0]
        assert status["watch"]["rebuilt"] == 1
        assert status["watch"]["backend"] != "deaf"
        (project.store / "entries" / "b.md").write_text("two")
        assert wait_for_text(project.root / "OUT.md", "one\ntwo\n") < 1.0
        wait_until(board, lambda status: status["state"] == "ok")


def test_changes_that_events_announce_are_never_taken_for_missed(
    make_project: Callable[..., Project],
) -> None:
    project = make_project()
    with running(open_watcher, reconcile_interval_s=1) as board:
        end = time.monotonic() + 3.2
        number = 0
        while time.monotonic() < end:
            number += 1
            (project.store / "entries" / f"{number % 20}.md").write_text(str(number))
        status = wait_until(board, lambda status: status["queue"] == 0 and status["jobs"][0]["runs"] >= 3)
        assert status["watch"]["missed"] == 0
        assert status["state"] == "ok"


def test_a_watcher_that_died_is_replaced_and_what_it_slept_through_found(
    make_project: Callable[..., Project],
) -> None:
    project = make_project()
    first = Deaf()
    with running(openers(first)) as board:
        (project.store / "entries" / "a.md").write_text("one")
        first.dead = True
        wait_for_text(project.root / "OUT.md", "one\n")
        status = wait_until(board, lambda status: status["watch"]["rebuilt"] == 1)
        assert status["watch"]["missed"] == 0


def test_a_clock_that_jumps_makes_it_compare_everything(
    make_project: Callable[..., Project], monkeypatch: pytest.MonkeyPatch
) -> None:
    project = make_project()
    real = time.time
    with running(openers(Deaf())):
        (project.store / "entries" / "a.md").write_text("one")
        monkeypatch.setattr(time, "time", lambda: real() + 3600)
        wait_for_text(project.root / "OUT.md", "one\n")


def test_a_save_after_a_long_one_doesnt_wait(
    make_project: Callable[..., Project], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a pass took isn't waited for once more before the next."""
    project = make_project()
    with running(open_watcher, burst_ms=5_000):
        monkeypatch.setenv("LITTLE_SECONDS", "0.25")
        took = []
        for number in range(4):
            begun = time.monotonic()
            (project.store / "entries" / "one.md").write_text(f"save {number}")
            wait_for_text(project.root / "OUT.md", f"save {number}\n")
            took.append(time.monotonic() - begun)
        assert min(took[1:]) < 0.6
