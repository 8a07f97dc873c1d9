"""A source may hold anything: what can't be read is told, and nothing is followed or opened."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from agent_bridge.memory.fact import FactProblem
from agent_bridge.projection.importing.tree import MAX_DEPTH, walk


def test_links_fifos_and_hidden_directories(tmp_path: Path) -> None:
    root = tmp_path / "notes"
    (root / "deep").mkdir(parents=True)
    (root / ".obsidian").mkdir()
    (tmp_path / "outside.md").write_text("secret\n")
    for name in ("a.md", "deep/b.md", ".obsidian/c.md"):
        (root / name).write_text("text\n")
    (root / "out.md").symlink_to(tmp_path / "outside.md")
    (root / "up").symlink_to(tmp_path)
    (root / "twice.md").symlink_to("a.md")
    (root / "round").symlink_to("deep")
    (root / "nowhere.md").symlink_to("gone.md")
    os.mkfifo(root / "pipe.md")
    tree = walk(root)
    assert tree.names == ("a.md", "deep/b.md")
    assert {one.origin: one.why.split(" of ")[0] for one in tree.left} == {
        "nowhere.md": "it is a symlink that leads nowhere",
        "out.md": f"it is a symlink that leads out of {root}".split(" of ")[0],
        "pipe.md": "it is no regular file",
        "up": f"it is a symlink that leads out of {root}".split(" of ")[0],
    }
    assert all(one.refused for one in tree.left)


@pytest.mark.parametrize(
    ("data", "why"),
    [(b"x" * (1024 * 1024 + 1), "larger than 1 MiB"), (b"\xff\xfea\0", "UTF-16"), (b"\x80", "not UTF-8")],
)
def test_what_is_no_text(tmp_path: Path, data: bytes, why: str) -> None:
    (tmp_path / "a.md").write_bytes(data)
    with pytest.raises(FactProblem, match=why):
        walk(tmp_path).text("a.md")
    (tmp_path / "a.md").write_bytes(b"\xef\xbb\xbfText.\r\n")
    assert walk(tmp_path).text("a.md") == "Text.\r\n"


def test_a_file_that_becomes_a_link_or_a_fifo_after_it_was_listed(tmp_path: Path) -> None:
    root = tmp_path / "notes"
    root.mkdir()
    (tmp_path / "outside.md").write_text("secret\n")
    for name in ("a.md", "b.md", "c.md"):
        (root / name).write_text("text\n")
    tree = walk(root)
    for name in tree.names:
        (root / name).unlink()
    (root / "a.md").symlink_to(tmp_path / "outside.md")
    os.mkfifo(root / "b.md")
    for name in tree.names:
        with pytest.raises(FactProblem):
            tree.data(name)


def test_a_bottomless_directory_ends(tmp_path: Path) -> None:
    deep = tmp_path
    for _ in range(MAX_DEPTH + 1):
        deep /= "d"
    deep.mkdir(parents=True)
    (deep / "a.md").write_text("text\n")
    tree = walk(tmp_path)
    assert tree.names == ()
    assert [one.why for one in tree.left] == [f"it lies deeper than {MAX_DEPTH} directories"]


def test_a_name_that_cant_be_shown(tmp_path: Path) -> None:
    (tmp_path / "a\nb.md").write_text("text\n")
    assert [(one.origin, one.refused) for one in walk(tmp_path).left] == [("a\\u000ab.md", True)]
