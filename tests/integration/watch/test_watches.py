"""Real directories under a real watcher."""

from __future__ import annotations

import errno
import os
import queue
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from agent_bridge.watch.events import FileEvent, Interest, Kind, Sink
from agent_bridge.watch.native import NativeWatcher
from agent_bridge.watch.observer import Watcher, open_watcher
from agent_bridge.watch.watches import TREE_LIMIT, Place, WatchSet, WatchState

Makers = Callable[[Sink], Watcher]


class Inbox:
    """Collects events, and waits for one that fits."""

    def __init__(self) -> None:
        self.queue: queue.SimpleQueue[FileEvent] = queue.SimpleQueue()

    def wait_for(self, fits: Callable[[FileEvent], bool], timeout: float = 5.0) -> FileEvent:
        seen = []
        deadline = time.monotonic() + timeout
        while (left := deadline - time.monotonic()) > 0:
            try:
                event = self.queue.get(timeout=left)
            except queue.Empty:
                break
            if fits(event):
                return event
            seen.append(event)
        raise AssertionError(f"no such event; seen: {seen}")

    def wait_for_path(self, path: Path, *kinds: Kind) -> FileEvent:
        return self.wait_for(lambda event: event.path == path and (not kinds or event.kind in kinds))


@pytest.fixture
def inbox() -> Inbox:
    return Inbox()


@pytest.fixture
def make_set(inbox: Inbox) -> Iterator[Callable[..., WatchSet]]:
    made: list[WatchSet] = []

    def make(opener: Makers = open_watcher, *, polling: bool = False) -> WatchSet:
        made.append(WatchSet(inbox.queue.put, opener, polling=polling))
        return made[-1]

    yield make
    for watches in made:
        watches.close()


@pytest.fixture
def store(tmp_path: Path) -> Path:
    path = tmp_path.resolve() / "store"
    (path / "entries").mkdir(parents=True)
    (path / "entries" / "old.md").write_text("old")
    return path


def tree(store: Path) -> Place:
    return Place(store, Interest.EVERYTHING, tree=True)


def truncate_and_write(path: Path) -> None:
    path.write_text("new text")


def append(path: Path) -> None:
    with path.open("a") as out:
        out.write("more")


def rename_over(path: Path) -> None:
    temporary = path.with_name(path.name + ".tmp")
    temporary.write_text("new text")
    temporary.replace(path)


def remove(path: Path) -> None:
    path.unlink()


def move_out(path: Path) -> None:
    path.rename(path.parents[2] / "outside")


@pytest.mark.parametrize("opener", [open_watcher, NativeWatcher])
@pytest.mark.parametrize("save", [truncate_and_write, append, rename_over, remove, move_out])
def test_every_way_of_saving_is_announced(
    opener: Makers, save: Callable[[Path], None], store: Path, inbox: Inbox, make_set: Callable[..., WatchSet]
) -> None:
    watches = make_set(opener)
    watches.want([tree(store)])
    fact = store / "entries" / "old.md"
    save(fact)
    event = inbox.wait_for_path(fact, Kind.CLOSED, Kind.MOVED, Kind.REMOVED)
    found = watches.compare([event.directory])
    assert found.paths == {fact}


@pytest.mark.parametrize("opener", [open_watcher, NativeWatcher])
def test_a_file_that_leaves_does_not_hold_up_the_next(
    opener: Makers, store: Path, inbox: Inbox, make_set: Callable[..., WatchSet]
) -> None:
    make_set(opener).want([tree(store)])
    move_out(store / "entries" / "old.md")
    started = time.monotonic()
    (store / "entries" / "new.md").write_text("new")
    inbox.wait_for_path(store / "entries" / "new.md", Kind.CLOSED)
    assert time.monotonic() - started < 0.3


def test_reading_is_no_event(store: Path, inbox: Inbox, make_set: Callable[..., WatchSet]) -> None:
    make_set().want([tree(store)])
    (store / "entries" / "old.md").read_text()
    list(store.rglob("*"))
    (store / "entries" / "mark.md").touch()
    first = inbox.wait_for(lambda _event: True)
    assert first.path == store / "entries" / "mark.md"


def test_a_filled_directory_that_appears_is_found_with_what_it_holds(
    store: Path, inbox: Inbox, make_set: Callable[..., WatchSet]
) -> None:
    watches = make_set()
    watches.want([tree(store)])
    deep = store / "decisions" / "2026"
    deep.mkdir(parents=True)
    (deep / "one.md").write_text("one")
    inbox.wait_for_path(store / "decisions")
    assert deep / "one.md" in watches.compare([store]).paths
    (deep / "two.md").write_text("two")
    inbox.wait_for_path(deep / "two.md", Kind.CLOSED)


def test_a_directory_that_goes_takes_its_files_with_it(
    store: Path, make_set: Callable[..., WatchSet]
) -> None:
    watches = make_set()
    watches.want([tree(store)])
    shutil.rmtree(store / "entries")
    assert store / "entries" / "old.md" in watches.compare([store]).paths
    assert watches.place_of(store / "entries") is None


def replaced(store: Path) -> None:
    shutil.rmtree(store)
    (store / "entries").mkdir(parents=True)


def moved_away_and_another_made(store: Path) -> None:
    store.rename(store.with_name("away"))
    (store / "entries").mkdir(parents=True)


def link_swapped(store: Path) -> None:
    other = store.with_name("other")
    (other / "entries").mkdir(parents=True)
    store.rename(store.with_name("away"))
    store.symlink_to(other)


@pytest.mark.parametrize("swap", [replaced, moved_away_and_another_made, link_swapped])
def test_a_root_that_leads_elsewhere_is_armed_again(
    swap: Callable[[Path], None], store: Path, inbox: Inbox, make_set: Callable[..., WatchSet]
) -> None:
    watches = make_set()
    watches.want([tree(store)])
    swap(store)
    if swap is not link_swapped:
        watches.distrust(
            inbox.wait_for(lambda event: event.kind is Kind.SELF and event.directory == store).directory
        )
    assert store / "entries" / "old.md" in watches.check_roots().paths
    (store / "entries" / "new.md").write_text("new")
    inbox.wait_for_path(store / "entries" / "new.md", Kind.CLOSED)
    assert watches.compare([store / "entries"]).paths == {store / "entries" / "new.md"}


def test_a_root_moved_away_and_back_is_still_watched(
    store: Path, inbox: Inbox, make_set: Callable[..., WatchSet]
) -> None:
    watches = make_set()
    watches.want([tree(store)])
    store.rename(store.with_name("away"))
    assert watches.check_roots().paths
    store.with_name("away").rename(store)
    assert store / "entries" / "old.md" in watches.check_roots().paths
    append(store / "entries" / "old.md")
    inbox.wait_for_path(store / "entries" / "old.md", Kind.CLOSED)


def test_a_root_behind_a_link_whose_target_is_swapped(
    store: Path, inbox: Inbox, make_set: Callable[..., WatchSet]
) -> None:
    other = store.with_name("other")
    other.mkdir()
    link = store.with_name("link")
    link.symlink_to(store)
    watches = make_set()
    watches.want([tree(link)])
    link.unlink()
    link.symlink_to(other)
    assert link / "entries" / "old.md" in watches.check_roots().paths
    (other / "new.md").write_text("new")
    inbox.wait_for_path(link / "new.md", Kind.CLOSED)


def test_a_missing_place_is_watched_once_it_comes(
    tmp_path: Path, inbox: Inbox, make_set: Callable[..., WatchSet]
) -> None:
    place = tmp_path / "later"
    watches = make_set()
    watches.want([Place(place)])
    assert watches.reports()[0].state is WatchState.MISSING
    place.mkdir()
    (place / "AGENTS.md").write_text("text")
    assert place / "AGENTS.md" in watches.check_roots().paths
    append(place / "AGENTS.md")
    inbox.wait_for_path(place / "AGENTS.md", Kind.CLOSED)


def test_a_missing_place_below_a_watched_one_is_announced_by_it(
    tmp_path: Path, inbox: Inbox, make_set: Callable[..., WatchSet]
) -> None:
    watches = make_set()
    watches.want([Place(tmp_path), Place(tmp_path / ".claude"), Place(tmp_path / ".claude" / "rules")])
    (tmp_path / ".claude" / "rules").mkdir(parents=True)
    (tmp_path / ".claude" / "rules" / "a.md").write_text("text")
    event = inbox.wait_for_path(tmp_path / ".claude")
    found = watches.compare([event.directory]).paths | watches.check_roots().paths
    assert tmp_path / ".claude" / "rules" / "a.md" in found
    append(tmp_path / ".claude" / "rules" / "a.md")
    inbox.wait_for_path(tmp_path / ".claude" / "rules" / "a.md", Kind.CLOSED)


def test_an_unwanted_place_is_silent(store: Path, inbox: Inbox, make_set: Callable[..., WatchSet]) -> None:
    other = store.with_name("other")
    other.mkdir()
    watches = make_set()
    watches.want([tree(store), Place(other)])
    watches.want([Place(other)])
    (store / "entries" / "new.md").write_text("new")
    (other / "mark.md").touch()
    assert inbox.wait_for(lambda _event: True).directory == other
    assert [report.path for report in watches.reports()] == [other]


def test_two_ways_to_one_directory_are_both_told(
    store: Path, inbox: Inbox, make_set: Callable[..., WatchSet]
) -> None:
    link = store.with_name("link")
    link.symlink_to(store)
    watches = make_set()
    watches.want([tree(store), Place(link, Interest.EVERYTHING)])
    (store / "new.md").write_text("new")
    inbox.wait_for_path(store / "new.md", Kind.CLOSED)
    watches.want([Place(link, Interest.EVERYTHING)])
    (store / "newer.md").write_text("new")
    inbox.wait_for_path(link / "newer.md", Kind.CLOSED)


def test_polling_finds_what_nobody_announces(store: Path, make_set: Callable[..., WatchSet]) -> None:
    watches = make_set(polling=True)
    watches.want([tree(store)])
    append(store / "entries" / "old.md")
    assert watches.compare_polled().paths == {store / "entries" / "old.md"}
    assert watches.backend == "polling"
    assert {report.state for report in watches.reports()} == {WatchState.POLLED}


def test_without_an_instance_it_polls_and_says_so(store: Path, make_set: Callable[..., WatchSet]) -> None:
    left = [0, 1]

    def exhausted(sink: Sink) -> Watcher:
        if not left.pop(0):
            raise OSError(errno.EMFILE, "inotify instance limit reached")
        return open_watcher(sink)

    watches = make_set(exhausted)
    watches.want([tree(store)])
    assert "instance limit" in watches.problem
    append(store / "entries" / "old.md")
    found = watches.compare_polled()
    assert found.paths == {store / "entries" / "old.md"}
    assert not found.unannounced
    watches.retry()
    assert not watches.problem
    assert {report.state for report in watches.reports()} == {WatchState.WATCHED}


def test_a_rebuilt_watcher_knows_what_was_known(
    store: Path, inbox: Inbox, make_set: Callable[..., WatchSet]
) -> None:
    watches = make_set()
    watches.want([tree(store)])
    watches.rebuild()
    assert watches.rebuilt == 1
    assert not watches.compare_all().paths
    append(store / "entries" / "old.md")
    inbox.wait_for_path(store / "entries" / "old.md", Kind.CLOSED)


def test_a_dead_watcher_is_noticed(store: Path, make_set: Callable[..., WatchSet]) -> None:
    made: list[Watcher] = []

    def remember(sink: Sink) -> Watcher:
        made.append(open_watcher(sink))
        return made[-1]

    watches = make_set(remember)
    watches.want([tree(store)])
    assert watches.is_alive()
    made[0].close()
    assert not watches.is_alive()
    watches.rebuild()
    assert watches.is_alive()


def test_a_tree_that_grows_too_large_is_polled_beyond_the_limit(
    tmp_path: Path, make_set: Callable[..., WatchSet]
) -> None:
    for number in range(TREE_LIMIT + 5):
        (tmp_path / "store" / f"d{number}").mkdir(parents=True)
    watches = make_set()
    watches.want([tree(tmp_path / "store")])
    polled = [report for report in watches.reports() if report.state is WatchState.POLLED]
    assert len(polled) == 6
    (polled[0].path / "new.md").write_text("new")
    assert polled[0].path / "new.md" in watches.compare_polled().paths


def test_one_thread_however_many_directories(tmp_path: Path, make_set: Callable[..., WatchSet]) -> None:
    if sys.platform != "linux":
        pytest.skip("the native observer of other systems takes a thread a watch")
    import threading

    before = threading.active_count()
    for number in range(50):
        (tmp_path / "store" / f"d{number}").mkdir(parents=True)
    make_set().want([tree(tmp_path / "store")])
    assert threading.active_count() == before + 1


@pytest.mark.skipif(os.getuid() == 0, reason="root may read everything")
def test_an_unreadable_directory_is_named(store: Path, make_set: Callable[..., WatchSet]) -> None:
    (store / "entries").chmod(0)
    try:
        watches = make_set()
        watches.want([tree(store)])
        report = next(report for report in watches.reports() if report.path == store / "entries")
        assert report.state is WatchState.POLLED
        assert "can't be watched" in report.reason
    finally:
        (store / "entries").chmod(0o700)
