"""When to act on events."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_bridge.watch.events import FileEvent, Kind
from agent_bridge.watch.settle import Settler

DIRECTORY = Path("/store")


def event(kind: Kind, name: str = "a.md", *, is_directory: bool = False) -> FileEvent:
    return FileEvent(kind, DIRECTORY, name, is_directory)


def settler() -> Settler:
    return Settler(quiet=0.020, burst=0.250, patience=2.0)


def full(_path: Path) -> bool:
    return False


def empty(_path: Path) -> bool:
    return True


@pytest.mark.parametrize("kind", [Kind.CLOSED, Kind.MOVED, Kind.REMOVED])
def test_a_complete_change_is_acted_on_at_once(kind: Kind) -> None:
    pending = settler()
    pending.add(event(kind), 10.0)
    assert pending.due() == 10.0
    assert pending.take(10.0, is_empty=empty) == {DIRECTORY / "a.md"}
    assert pending.due() is None


def test_a_directory_is_acted_on_at_once() -> None:
    pending = settler()
    pending.add(event(Kind.CREATED, "sub", is_directory=True), 10.0)
    assert pending.take(10.0, is_empty=full) == {DIRECTORY / "sub"}


def test_a_file_being_written_waits_for_the_quiet_time() -> None:
    pending = settler()
    pending.add(event(Kind.MODIFIED), 10.0)
    assert pending.take(10.019, is_empty=full) == frozenset()
    assert pending.due() == pytest.approx(10.020)
    assert pending.take(10.021, is_empty=full) == {DIRECTORY / "a.md"}


def test_closing_ends_the_wait() -> None:
    pending = settler()
    pending.add(event(Kind.CREATED), 10.0)
    pending.add(event(Kind.MODIFIED), 10.001)
    pending.add(event(Kind.CLOSED), 10.002)
    assert pending.take(10.002, is_empty=full) == {DIRECTORY / "a.md"}


def test_writing_on_after_closing_waits_again() -> None:
    pending = settler()
    pending.add(event(Kind.CLOSED), 10.0)
    pending.add(event(Kind.MODIFIED), 10.001)
    assert pending.take(10.001, is_empty=full) == frozenset()


def test_a_change_of_mode_does_not_make_a_closed_file_wait() -> None:
    pending = settler()
    pending.add(event(Kind.CLOSED), 10.0)
    pending.add(event(Kind.ATTRIBUTES), 10.001)
    assert pending.take(10.001, is_empty=full) == {DIRECTORY / "a.md"}


def test_an_endless_writer_is_held_up_for_the_burst_time_only() -> None:
    pending = settler()
    now = 10.0
    while now < 10.250:
        pending.add(event(Kind.MODIFIED), now)
        assert pending.take(now, is_empty=full) == frozenset()
        now += 0.010
    assert pending.take(10.251, is_empty=full) == {DIRECTORY / "a.md"}


def test_an_empty_open_file_is_waited_for_without_spinning() -> None:
    pending = settler()
    pending.add(event(Kind.MODIFIED), 10.0)
    assert pending.take(10.3, is_empty=empty) == frozenset()
    due = pending.due()
    assert due is not None
    assert due >= 10.3 + 0.019
    pending.add(event(Kind.CLOSED), 10.5)
    assert pending.take(due + 1, is_empty=empty) == {DIRECTORY / "a.md"}


def test_patience_with_an_empty_open_file_ends() -> None:
    pending = settler()
    pending.add(event(Kind.CREATED), 10.0)
    assert pending.take(11.9, is_empty=empty) == frozenset()
    assert pending.take(12.1, is_empty=empty) == {DIRECTORY / "a.md"}


def test_many_files_at_once_coalesce() -> None:
    pending = settler()
    for number in range(10):
        pending.add(event(Kind.CLOSED, f"{number}.md"), 10.0 + number / 1000)
    assert pending.take(10.010, is_empty=full) == frozenset()
    assert len(pending.take(10.030, is_empty=full)) == 10


def test_a_few_files_in_each_of_some_directories_are_no_stream() -> None:
    pending = settler()
    for name in ("one", "two", "three"):
        for number in range(2):
            pending.add(FileEvent(Kind.CLOSED, DIRECTORY / name, f"{number}.md"), 10.0)
    assert len(pending.take(10.0, is_empty=full)) == 6


def test_a_save_is_not_held_up_by_a_stream_in_another_directory() -> None:
    pending = settler()
    for number in range(10):
        pending.add(event(Kind.CLOSED, f"{number}.md"), 10.0)
    pending.add(FileEvent(Kind.CLOSED, DIRECTORY / "elsewhere", "a.md"), 10.0)
    assert pending.take(10.0, is_empty=full) == {DIRECTORY / "elsewhere" / "a.md"}


def test_a_stream_that_does_not_end_is_acted_on_after_the_burst_time() -> None:
    pending = settler()
    taken: set[Path] = set()
    for number in range(60):
        now = 10.0 + number / 100
        pending.add(event(Kind.CLOSED, f"{number}.md"), now)
        taken |= pending.take(now, is_empty=full)
    assert DIRECTORY / "5.md" in taken


kinds = st.sampled_from([Kind.CREATED, Kind.MODIFIED, Kind.ATTRIBUTES, Kind.CLOSED, Kind.MOVED, Kind.REMOVED])


@given(st.lists(st.tuples(kinds, st.sampled_from("abcdef"), st.floats(0, 0.1)), max_size=60), st.booleans())
def test_nothing_is_lost_or_held_for_longer_than_promised(
    steps: list[tuple[Kind, str, float]], is_empty: bool
) -> None:
    pending = settler()
    now = 0.0
    waiting: dict[Path, float] = {}
    for kind, name, pause in steps:
        now += pause
        pending.add(event(kind, name), now)
        waiting.setdefault(DIRECTORY / name, now)
        for path in pending.take(now, is_empty=lambda _path: is_empty):
            del waiting[path]
    while (due := pending.due()) is not None:
        assert due <= max(now, min(waiting.values())) + 2.3
        now = max(now, due) + 1e-6
        for path in pending.take(now, is_empty=lambda _path: is_empty):
            assert now - waiting.pop(path) <= 2.0 + 0.5 + 6.1
    assert not waiting
