"""What a directory holds, and what changed in it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from agent_bridge.watch.events import Interest
from agent_bridge.watch.listing import changed_names, identity, list_directory, may_be_silent

EVERYTHING = Interest.EVERYTHING


def changes(directory: Path, act: object) -> frozenset[str]:
    before = list_directory(directory, EVERYTHING)
    act()  # type: ignore[operator]
    return changed_names(before, list_directory(directory, EVERYTHING))


def test_new_changed_replaced_and_removed_files_differ(tmp_path: Path) -> None:
    for name in ("same", "changed", "replaced", "removed"):
        (tmp_path / name).write_text("one")

    def act() -> None:
        (tmp_path / "changed").write_text("another")
        (tmp_path / "other.tmp").write_text("two")
        (tmp_path / "other.tmp").replace(tmp_path / "replaced")
        (tmp_path / "removed").unlink()
        (tmp_path / "new").write_text("")

    assert changes(tmp_path, act) == {"changed", "replaced", "removed", "new"}


def test_a_save_that_puts_size_and_time_back_differs(tmp_path: Path) -> None:
    fact = tmp_path / "a.md"
    fact.write_text("one")
    old = fact.stat()

    def act() -> None:
        while fact.stat().st_ctime_ns == old.st_ctime_ns:
            fact.write_text("two")
            os.utime(fact, ns=(old.st_atime_ns, old.st_mtime_ns))

    assert changes(tmp_path, act) == {"a.md"}


def test_a_link_counts_as_what_it_leads_to(tmp_path: Path) -> None:
    outside = tmp_path / "outside.md"
    outside.write_text("one")
    store = tmp_path / "store"
    store.mkdir()
    (store / "link.md").symlink_to(outside)
    (store / "dangling.md").symlink_to(tmp_path / "nowhere")
    before = list_directory(store, EVERYTHING)
    outside.write_text("longer")
    after = list_directory(store, EVERYTHING)
    assert changed_names(before, after) == {"link.md"}
    assert may_be_silent("link.md", before, after)


def test_one_of_several_names_may_change_silently(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("one")
    before = list_directory(tmp_path, EVERYTHING)
    assert not may_be_silent("a.md", before, before)
    os.link(tmp_path / "a.md", tmp_path / "b.md")
    assert may_be_silent("a.md", before, list_directory(tmp_path, EVERYTHING))


def test_a_change_inside_a_directory_is_no_change_of_its_parent(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    assert changes(tmp_path, (tmp_path / "sub" / "x").touch) == frozenset()


def test_a_directory_that_is_gone_holds_nothing(tmp_path: Path) -> None:
    assert list_directory(tmp_path / "gone", EVERYTHING) is None
    assert changed_names(list_directory(tmp_path, EVERYTHING), None) == frozenset()
    assert identity(tmp_path / "gone") is None


def test_a_file_is_no_directory(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert identity(tmp_path / "file") is None


def test_a_swapped_link_leads_elsewhere(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
    link = tmp_path / "link"
    link.symlink_to(tmp_path / "one")
    first = identity(link)
    link.unlink()
    link.symlink_to(tmp_path / "two")
    assert first != identity(link)


def test_a_fifo_is_listed_without_being_opened(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.md")
    listing = list_directory(tmp_path, EVERYTHING)
    assert listing is not None
    assert "pipe.md" in listing


@pytest.mark.parametrize("name", ["x~", ".x.md.swp"])
def test_noise_is_not_listed(tmp_path: Path, name: str) -> None:
    (tmp_path / name).touch()
    assert list_directory(tmp_path, EVERYTHING) == {}
