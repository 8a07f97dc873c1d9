"""Reading a store: what is a fact, what is reported, what is never opened, and what a second look costs."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from agent_bridge.memory import scan
from agent_bridge.memory.store import Snapshot, Store


@pytest.fixture
def root(tmp_path: Path) -> Path:
    path = tmp_path / "project" / ".memory"
    (path / "entries").mkdir(parents=True)
    return path


@pytest.fixture
def store(root: Path, tmp_path: Path) -> Store:
    (tmp_path / "state").mkdir()
    return Store(root, state=tmp_path / "state")


def _paths(found: Snapshot) -> list[str]:
    return sorted(fact.path for fact in found.facts)


def _reasons(found: Snapshot) -> dict[str, str]:
    return {problem.path: problem.reason for problem in found.problems}


def test_no_store_is_an_empty_one_and_reading_creates_nothing(tmp_path: Path) -> None:
    store = Store(tmp_path / "none" / ".memory", state=tmp_path / "state")
    assert store.scan().facts == ()
    assert list(tmp_path.iterdir()) == []


def test_what_is_a_fact_and_what_is_not(root: Path, store: Store) -> None:
    (root / "deep" / "er.md").mkdir(parents=True)
    (root / ".hidden").mkdir()
    (root / "decisions").mkdir()
    facts = ["a.md", "entries/b.md", "deep/c.md", "deep/er.md/d.md", "decisions/1.md", "deep/context.md"]
    others = [
        "MEMORY.md",
        "deep/MEMORY.md",
        ".x.md",
        "y.md~",
        "z.md.tmp",
        "4913",
        "w.md.swp",
        ".hidden/h.md",
        "t.txt",
    ]
    for name in [*facts, *others]:
        (root / name).write_text(f"The text of {name}.")
    (root / "empty.md").touch()
    (root / "blank.md").write_text("\n\n")
    found = store.scan()
    assert _paths(found) == sorted(facts)
    assert {path: reason[:17] for path, reason in _reasons(found).items()} == {
        "deep/er.md": "it is a directory"
    }
    assert {fact.path for fact in found.facts if fact.type == "decision"} == {"decisions/1.md"}


def test_documents_stand_in_their_order(root: Path, store: Store) -> None:
    (root / "preferences.md").write_text("# Preferences\n\nShort answers.\n")
    (root / "conventions.md").write_text("# Conventions\r\n\r\nTabs.\r\n")
    (root / "context.md").write_text("# Context\n")
    found = store.scan()
    assert [(document.name, document.text) for document in found.documents] == [
        ("conventions.md", "# Conventions\n\nTabs."),
        ("preferences.md", "# Preferences\n\nShort answers."),
    ]
    assert found.facts == ()


def _fifo(path: Path) -> None:
    os.mkfifo(path)


def _socket(path: Path) -> None:
    here = Path.cwd()
    os.chdir(path.parent)  # a socket's path must be short
    try:
        with socket.socket(socket.AF_UNIX) as server:
            server.bind(path.name)
    finally:
        os.chdir(here)


def _link_out(path: Path) -> None:
    outside = path.parents[2] / "outside.md"
    outside.write_text("Not yours.")
    path.symlink_to(outside)


def _directory_link_out(path: Path) -> None:
    outside = path.parents[2] / "elsewhere"
    outside.mkdir()
    (outside / "x.md").write_text("Not yours.")
    path.symlink_to(outside)


BAD: dict[str, tuple[Callable[[Path], object], str]] = {
    "fifo": (_fifo, "a FIFO"),
    "socket": (_socket, "a socket"),
    "link out": (_link_out, "leads out of the store"),
    "directory link out": (_directory_link_out, "leads out of the store"),
    "link to a device": (lambda path: path.symlink_to("/dev/zero"), "leads out of the store"),
    "dangling": (lambda path: path.symlink_to("nowhere.md"), "leads nowhere"),
    "loop": (lambda path: path.symlink_to(path.name), "leads nowhere"),
    "latin-1": (lambda path: path.write_bytes("Füße".encode("latin-1")), "not UTF-8"),
    "utf-16": (lambda path: path.write_bytes("text".encode("utf-16")), "UTF-16"),
    "ten megabytes": (lambda path: path.write_bytes(b"x" * 10_000_000), "larger than 1 MiB"),
    "broken yaml": (lambda path: path.write_text("---\na: [\n---\nx"), "not valid YAML"),
    "alias bomb": (lambda path: path.write_text("---\na: &a [x]\nb: [*a, *a]\n---\nx"), "anchors"),
}


@pytest.mark.parametrize("kind", BAD)
def test_bad_files_are_named_and_the_others_go_on(root: Path, store: Store, kind: str) -> None:
    make, reason = BAD[kind]
    make(root / "bad.md")
    (root / "good.md").write_text("Good.")
    for _ in range(2):
        found = store.scan()
        assert _paths(found) == ["good.md"]
        assert reason in _reasons(found)["bad.md"]
        assert all(problem.remedy for problem in found.problems)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_what_may_not_be_read_is_named_until_it_may(root: Path, store: Store) -> None:
    (root / "bad.md").write_text("Hidden.")
    (root / "bad.md").chmod(0)
    (root / "closed").mkdir(mode=0)
    assert set(_reasons(store.scan())) == {"bad.md", "closed"}
    (root / "bad.md").chmod(0o644)
    (root / "closed").chmod(0o755)
    found = store.scan()
    assert (_paths(found), found.problems) == (["bad.md"], ())


def test_names_that_cannot_be_shown_are_named(root: Path, store: Store) -> None:
    Path(os.fsdecode(os.fsencode(root) + b"/b\xffd.md")).write_text("x")
    (root / "a\nb.md").write_text("x")
    found = store.scan()
    assert set(_reasons(found)) == {"b\\udcffd.md", "a\\u000ab.md"}
    assert found.facts == ()


def test_directories_are_entered_to_a_depth(root: Path, store: Store) -> None:
    deep = root
    for _ in range(scan.MAX_DEPTH + 1):
        deep = deep / "d"
    deep.mkdir(parents=True)
    (deep / "x.md").write_text("x")
    (deep.parent / "y.md").write_text("y")
    found = store.scan()
    assert [fact.title for fact in found.facts] == ["y"]
    assert "deeper" in found.problems[0].reason


def test_links_within_the_store(root: Path, store: Store) -> None:
    (root / "a.md").write_text("One text.")
    (root / "twin.md").symlink_to("a.md")  # the fact has its own place already
    (root / ".kept").write_text("Another text.")
    (root / "entries" / "link.md").symlink_to("../.kept")
    (root / "loop").symlink_to(".")
    found = store.scan()
    assert (_paths(found), found.problems) == (["a.md", "entries/link.md"], ())


def test_the_store_itself_may_be_a_link(root: Path, tmp_path: Path) -> None:
    (root / "a.md").write_text("x")
    (tmp_path / "link").symlink_to(root)
    assert _paths(Store(tmp_path / "link", state=tmp_path / "state").scan()) == ["a.md"]


def test_nothing_changed_is_the_same_object(root: Path, store: Store) -> None:
    (root / "a.md").write_text("x")
    first = store.scan()
    assert store.scan() is first
    (root / "a.md").write_text("y")
    second = store.scan()
    assert second.digest != first.digest
    (root / "a.md").unlink()
    assert store.scan().facts == ()


def test_a_change_of_the_same_size_in_the_same_tick_is_seen(root: Path, store: Store) -> None:
    path = root / "a.md"
    for text in ("one", "two", "six"):
        with path.open("r+" if path.exists() else "w") as file:
            file.write(text)
        assert store.scan().facts[0].body == text


def test_a_file_at_rest_is_not_opened_again(
    root: Path, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    (root / "a.md").write_text("x")
    now = (root / "a.md").stat().st_ctime_ns
    monkeypatch.setattr("agent_bridge.memory.scan.time.time_ns", lambda: now + 10 * scan.RACY_NS)
    store.scan()
    opened: list[str] = []
    real_open = os.open

    def open_and_tell(path: str, flags: int) -> int:
        opened.append(path)
        return real_open(path, flags)

    monkeypatch.setattr("agent_bridge.memory.scan.os.open", open_and_tell)
    store.scan()
    assert opened == []
    (root / "b.md").write_text("y")
    store.scan()
    assert len(opened) == 1


def test_refresh_reads_one_file_and_a_scan_the_rest(root: Path, store: Store) -> None:
    (root / "a.md").write_text("a")
    store.scan()
    (root / "a.md").write_text("changed")
    (root / "entries" / "b.md").write_text("b")
    assert {fact.body for fact in store.refresh(root / "entries" / "b.md").facts} == {"a", "b"}
    assert {fact.body for fact in store.refresh(root / "a.md").facts} == {"changed", "b"}
    (root / "a.md").unlink()
    assert {fact.body for fact in store.refresh(root / "a.md").facts} == {"b"}
    assert _paths(store.scan()) == ["entries/b.md"]


def test_refresh_of_a_file_that_says_the_same_is_the_same_object(root: Path, store: Store) -> None:
    (root / "a.md").write_text("a")
    first = store.scan()
    (root / "a.md").touch()
    assert store.refresh(root / "a.md") is first
    assert store.refresh(root / "none.md") is first


def test_refresh_opens_no_fifo(root: Path, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    store.scan()
    os.mkfifo(root / "x.md")
    monkeypatch.delattr("agent_bridge.memory.scan.os.open")
    assert "a FIFO" in store.refresh(root / "x.md").problems[0].reason


@pytest.mark.parametrize("name", ["../outside.md", ".hidden/x.md", "MEMORY.md", "link.md"])
def test_refresh_reads_nothing_that_a_scan_would_not(root: Path, store: Store, name: str) -> None:
    store.scan()
    (root / ".hidden").mkdir()
    (root / name).resolve().parent.mkdir(exist_ok=True)
    if name == "link.md":
        _link_out(root / name)
    else:
        (root / name).write_text("Not a fact.")
    assert store.refresh(root / name).facts == ()
