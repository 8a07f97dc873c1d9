"""Nothing of a private fact is in Git's index, whatever was missed, re-included or tracked before."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from .user import Served, User, serving, write, write_fact

# Words that stand nowhere else: one each for the text, the title, the hook and the file's name.
TEXT, TITLE, HOOK, NAME = "quokka", "Wombat", "numbat", "bilby"
WORDS = [word.encode() for word in (TEXT, TITLE, HOOK, NAME)]
PRIVATE = f"""---
name: {NAME}
description: All about the {HOOK}.
metadata:
  node_type: memory
  type: user
---

# {TITLE}

The {TEXT} earns little.
"""
BODY = f"The {TEXT} earns little."


def _in_index(user: User, root: Path) -> list[bytes]:
    user.git(root, "add", "-A")
    found = user.index_texts(root)
    assert b"Use tabs." in found or b"hello" in found
    return [word for word in WORDS if word in found]


def _claude_has_it(user: User, root: Path, name: str = f"{NAME}.md") -> bool:
    memory = user.claude_memory(root)
    return TITLE in (memory / "MEMORY.md").read_text() and BODY in (memory / name).read_text()


def test_a_private_fact_reaches_claude_and_nothing_of_git(shared: Served, names: Iterator[str]) -> None:
    root = shared.project(next(names))
    write(root / f".memory/{NAME}.md", PRIVATE)
    write_fact(root, "open.md", "The open one.")
    shared.until_in(root / "AGENTS.md", "The open one.")
    shared.until_in(root / ".memory/MEMORY.md", TITLE)
    shared.settle(root)
    assert _in_index(shared.user, root) == []
    assert b".memory/open.md" in shared.user.index_texts(root)
    assert _claude_has_it(shared.user, root)


def test_a_file_written_while_the_service_was_stopped(user: User) -> None:
    root = user.repository("project")
    user.init(root)
    write(root / f".memory/{NAME}.md", PRIVATE)
    write(root / ".memory/deep/er" / f"{NAME}.md", PRIVATE.replace("type: user", "private: true"))
    write(root / f".memory/{NAME}.md.tmp", PRIVATE)
    assert _in_index(user, root) == []
    with serving(user) as served:
        served.until_in(root / ".memory/MEMORY.md", f"]({NAME}.md)")
        assert _in_index(user, root) == []
        assert _claude_has_it(user, root)


def test_unshare_of_a_tracked_fact(shared: Served, names: Iterator[str]) -> None:
    user, root = shared.user, shared.project(next(names))
    fact = user.add(root, f"# {TITLE}\n\n{BODY}")
    shared.until_in(root / "AGENTS.md", BODY)
    shared.commit(root)
    assert BODY.encode() in user.index_texts(root)
    refused = user.run("unshare", fact["id"], cwd=root, exit_codes=(2, 4))
    assert refused["errors"]
    user.run("unshare", "--yes", fact["id"], cwd=root)
    shared.settle(root)
    for path in ("AGENTS.md", "CLAUDE.md"):
        assert BODY not in (root / path).read_text()
    assert _in_index(user, root) == []
    assert fact["path"] not in user.index_texts(root).decode()
    assert _claude_has_it(user, root, fact["path"])
    # Private is sticky: not even a rewrite without any mark shares it again.
    write(root / ".memory" / fact["path"], f"# {TITLE}\n\n{BODY}\n")
    shared.settle(root)
    assert _in_index(user, root) == []


def test_in_a_worktree(shared: Served, names: Iterator[str]) -> None:
    user, root = shared.user, shared.project(next(names))
    write(root / f".memory/{NAME}.md", PRIVATE)
    write_fact(root, "open.md", "The open one.")
    tree = user.home / next(names)
    user.git(root, "worktree", "add", "-q", str(tree), "-b", "side")
    shared.until_in(tree / "AGENTS.md", "The open one.")
    write(tree / f".memory/{NAME}.md", PRIVATE.replace("earns little", "earns nothing"))
    shared.until_in(root / ".memory/MEMORY.md", f"]({NAME}.md)", f"]({NAME}-")
    for place in (tree, root):
        assert _in_index(user, place) == []
    shared.settle(root)
    for place in (tree, root):
        assert _in_index(user, place) == []


def test_a_local_project_puts_nothing_into_git(shared: Served, names: Iterator[str]) -> None:
    user = shared.user
    root = shared.project(next(names), "--local")
    before = user.index_texts(root)
    write(root / f".memory/{NAME}.md", PRIVATE)
    write_fact(root, "open.md", f"An open {TEXT}.")
    shared.until_in(root / ".memory/MEMORY.md", TITLE, TEXT)
    assert _in_index(user, root) == []
    assert user.index_texts(root) == before
    assert _claude_has_it(user, root)


@pytest.mark.parametrize(
    ("rule", "options"),
    [("!*.md", ()), ("!.memory/**", ("--local",)), ("!/.memory/\n!/.memory/**/*.md\n!MEMORY.md", ())],
)
def test_a_gitignore_that_takes_markdown_in_again(user: User, rule: str, options: tuple[str, ...]) -> None:
    files = {"AGENTS.md": "Use tabs.\n", ".gitignore": f"*.log\n{rule}\n", ".memory/old.md": "The old one.\n"}
    root = user.repository("project", files)
    user.init(root, *options)
    write(root / f".memory/{NAME}.md", PRIVATE)
    write(root / f".memory/entries/{NAME}.md", PRIVATE.replace("type: user", "private: true"))
    write_fact(root, "open.md", "The open one.")
    assert _in_index(user, root) == []
    user.git(root, "reset", "-q")
    with serving(user) as served:
        served.until_in(root / ".memory/MEMORY.md", "](open.md)")
        served.settle(root)
        assert _in_index(user, root) == []
        assert (b".memory/open.md" in user.index_texts(root)) == (not options)
        assert _claude_has_it(user, root)
    user.commit(root)
    user.run("eject", "--yes", cwd=root)
    assert _in_index(user, root) == []
    assert "agent-bridge:start" not in (root / ".memory/.gitignore").read_text()


def test_a_gitignore_that_comes_to_take_markdown_in_again(shared: Served, names: Iterator[str]) -> None:
    user, root = shared.user, shared.project(next(names))
    write(root / f".memory/{NAME}.md", PRIVATE)
    shared.until_in(root / ".memory/MEMORY.md", TITLE)
    write(root / ".gitignore", "!*.md\n")
    user.run("sync", cwd=root)
    assert _in_index(user, root) == []


def test_derived_files_that_a_teammate_tracks(shared: Served, names: Iterator[str]) -> None:
    user = shared.user
    files = {
        "AGENTS.md": "Use tabs.\n",
        ".memory/old.md": "The old one.\n",
        ".memory/MEMORY.md": "- [The old one.](old.md)\n",
        ".memory/index.json": "{}\n",
    }
    root = shared.project(next(names), files=files)
    write(root / f".memory/{NAME}.md", PRIVATE)
    write_fact(root, "open.md", "The open one.")
    shared.until_in(root / ".memory/MEMORY.md", "](open.md)")
    shared.settle(root)
    assert _in_index(user, root) == []
    assert b"open.md" in user.index_texts(root)
    notice = shared.until_told(root, "derived-tracked")
    assert "git rm --cached" in notice["text"]
    user.git(root, "rm", "-q", "--cached", ".memory/MEMORY.md", ".memory/index.json")
    shared.settle(root)
    shared.until_in(root / ".memory/MEMORY.md", TITLE)
    assert _in_index(user, root) == []
    assert _claude_has_it(user, root)


def test_share_is_a_persons_word_and_brings_it_into_git(shared: Served, names: Iterator[str]) -> None:
    user, root = shared.user, shared.project(next(names))
    write(root / f".memory/{NAME}.md", PRIVATE)
    shared.until_in(root / ".memory/MEMORY.md", TITLE)
    user.run("share", f"{NAME}.md", cwd=root)
    shared.until_in(root / "AGENTS.md", BODY)
    shared.settle(root)
    assert set(_in_index(user, root)) == set(WORDS)


def test_after_eject_what_was_private_stays_out(user: User) -> None:
    root = user.repository("project")
    user.init(root)
    write(root / f".memory/{NAME}.md", PRIVATE)
    user.run("sync", cwd=root)
    user.run("eject", "--yes", cwd=root)
    assert _in_index(user, root) == []
