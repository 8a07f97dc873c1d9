"""Worktrees have the main store's facts; what is saved in one is adopted; directories come and go."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from .user import Served, tree, write, write_fact


@pytest.fixture
def main(shared: Served, names: Iterator[str]) -> Path:
    return shared.project(next(names))


@pytest.fixture
def side(shared: Served, main: Path, names: Iterator[str]) -> Path:
    """A worktree of `main` that was made while the service ran."""
    place = shared.user.home / next(names)
    shared.user.git(main, "worktree", "add", "-q", str(place), "-b", "side")
    return place


def test_its_instruction_files_get_the_block_of_the_main_store(
    shared: Served, main: Path, side: Path
) -> None:
    write_fact(main, "one.md", "The first fact.")
    for place in (main, side):
        shared.until_in(place / "AGENTS.md", "The first fact.", "Use tabs.")
        shared.until_in(place / "CLAUDE.md", "The first fact.", "Be brief.")
    assert not (side / ".memory").exists()
    (main / ".memory/one.md").unlink()
    for place in (main, side):
        for name in ("AGENTS.md", "CLAUDE.md"):
            shared.until_not_in(place / name, "The first fact.")
    assert not (side / ".memory").exists()
    assert shared.user.git(side, "status", "--porcelain") == ""


def test_a_worktree_on_another_branch_has_its_own_text_and_the_same_block(
    shared: Served, main: Path, side: Path
) -> None:
    write(side / "AGENTS.md", "# On the side\n")
    shared.user.commit(side)
    write_fact(main, "one.md", "The first fact.")
    shared.until_in(side / "AGENTS.md", "The first fact.", "# On the side")
    assert "# On the side" not in (main / "AGENTS.md").read_text()


def test_what_is_saved_in_its_own_memory_is_adopted_once(shared: Served, main: Path, side: Path) -> None:
    write(side / ".memory/learnt.md", "Learnt beside the main checkout.\n")
    write(side / ".memory/deep/er.md", "Learnt deep below it.\n")
    before = tree(side / ".memory")
    for place in (main, side):
        shared.until_in(place / "AGENTS.md", "Learnt beside the main checkout.", "Learnt deep below it.")
    facts = shared.user.run("list", cwd=main)["data"]["facts"]
    assert len(facts) == 2
    assert tree(side / ".memory") == before
    shared.user.run("rm", "--yes", facts[0]["id"], cwd=main)
    shared.user.run("rm", "--yes", facts[1]["id"], cwd=main)
    for text in ("Learnt beside the main checkout.", "Learnt deep below it."):
        shared.until_not_in(main / "AGENTS.md", text)
    shared.user.run("sync", cwd=main)
    shared.settle(main)
    assert shared.user.run("list", cwd=main)["data"]["facts"] == []
    # Forgetting takes the copies here too: nobody would know why they don't come back.
    assert [path for path in (side / ".memory").rglob("*.md") if path.is_file()] == []


def test_what_is_committed_in_it_comes_by_merge_and_not_twice(shared: Served, main: Path, side: Path) -> None:
    write_fact(main, "one.md", "The first fact.")
    shared.until_in(side / "AGENTS.md", "The first fact.")
    write(side / ".memory/theirs.md", "Committed on the side.\n")
    shared.user.git(side, "add", "-f", ".memory/theirs.md")
    shared.user.git(side, "commit", "-q", "-m", "A fact", "--", ".memory/theirs.md")
    shared.user.run("sync", cwd=main)
    shared.user.git(main, "merge", "-q", "side")
    assert (main / ".memory/theirs.md").read_text() == "Committed on the side.\n"
    shared.settle(main)
    shared.until_in(main / "AGENTS.md", "Committed on the side.")


def test_a_worktree_that_is_removed(shared: Served, main: Path, side: Path) -> None:
    write_fact(main, "one.md", "The first fact.")
    shared.until_in(side / "AGENTS.md", "The first fact.")
    shared.settle(main)  # Git itself leaves a directory into which somebody writes while it is removed
    shared.user.git(main, "worktree", "remove", "--force", str(side))
    write_fact(main, "two.md", "The second fact.")
    shared.until_in(main / "AGENTS.md", "The second fact.")
    shared.settle(main)
    assert not side.exists()
    state = shared.state(main)
    assert state["error"] is None
    assert [notice for notice in state["notices"] if str(side) in notice["text"]] == []


def test_a_project_that_is_moved_away_and_back(shared: Served, main: Path) -> None:
    write_fact(main, "one.md", "The first fact.")
    shared.until_in(main / "AGENTS.md", "The first fact.")
    shared.settle(main)
    away = main.with_name(f"{main.name}-away")
    main.rename(away)
    write_fact(away, "two.md", "Written while it was away.")
    shared.until(lambda: _watch(shared, main, ".") == "missing", lambda: shared.state(main))
    assert not main.exists()
    away.rename(main)
    shared.until_in(main / "AGENTS.md", "The first fact.", "Written while it was away.")
    write_fact(main, "three.md", "Written when it was back.")
    shared.until_in(main / "AGENTS.md", "Written when it was back.")


def _watch(served: Served, root: Path, name: str) -> object:
    watches = {watch["path"]: watch["state"] for watch in served.state(root)["watches"]}
    return watches.get(str(root / name))
