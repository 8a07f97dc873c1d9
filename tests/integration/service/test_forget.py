"""`forget` takes a fact out of every file at once, with a service and without; nothing brings it back."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

from .user import User, serving, write, write_fact

SECRET_PLACE = "The lighthouse keeper counts ships by their lanterns."
REMOVED = "/removed/"
"""Where the copy that the command speaks of lies."""

KEPT = "/kept/"
"""Bytes of files from before our first write, which undo needs: a worktree may come with a block."""


@pytest.fixture(params=["with the service", "without"])
def maybe_served(user: User, request: pytest.FixtureRequest) -> Iterator[User]:
    """The user, with and without a running service."""
    with serving(user) if request.param == "with the service" else nullcontext():
        yield user


@pytest.fixture
def root(maybe_served: User) -> Path:
    """A set-up repository with files for both clients."""
    place = maybe_served.repository("project")
    maybe_served.init(place)
    return place


@pytest.fixture
def side(maybe_served: User, root: Path) -> Path:
    """A worktree of it."""
    place = maybe_served.home / "side"
    maybe_served.git(root, "worktree", "add", "-q", str(place), "-b", "side")
    maybe_served.run("sync", cwd=root)
    return place


def _holding(user: User, text: str = SECRET_PLACE) -> list[str]:
    """Every file below the home (Git's objects apart) whose bytes have a text."""
    found = []
    for path in sorted(user.home.rglob("*")):
        elsewhere = any(part in str(path) for part in (REMOVED, KEPT, "/.git/objects/"))
        if not elsewhere and path.is_file() and not path.is_symlink() and text.encode() in path.read_bytes():
            found.append(str(path.relative_to(user.home)))
    return found


def _forget(user: User, cwd: Path, fact: str, *, code: int = 0) -> Mapping[str, Any]:
    envelope = user.run("forget", fact, "--yes", cwd=cwd, exit_codes=(code,))
    data: Mapping[str, Any] = envelope["data"]
    return {**data, "told": str(envelope["messages"])}


def _nothing_comes_back(user: User, root: Path, *, held: tuple[str, ...] = ()) -> None:
    user.run("sync", cwd=root)
    assert _holding(user) == list(held)
    assert user.run("review", cwd=root)["data"]["count"] == 0


def test_out_of_blocks_index_caches_and_worktrees_at_once(maybe_served: User, root: Path, side: Path) -> None:
    fact = maybe_served.add(root, SECRET_PLACE)["id"]
    maybe_served.run("sync", cwd=root)
    maybe_served.run("search", "lighthouse", cwd=root)
    expected = [place / name for place in (root, side) for name in ("AGENTS.md", "CLAUDE.md")]
    expected += [root / ".memory/MEMORY.md", root / ".memory/index.json", root / f".memory/entries/{fact}.md"]
    assert {str(path.relative_to(maybe_served.home)) for path in expected} <= set(_holding(maybe_served))
    listed = maybe_served.run("forget", fact, "--dry-run", cwd=root)["data"]["stands_in"]
    assert {str(path) for path in expected} <= set(listed)

    done = _forget(maybe_served, side, fact)

    assert _holding(maybe_served) == []
    assert {str(path) for path in expected} <= set(done["gone_from"])
    assert (done["still_in"], done["said_by_others"], done["in_git"]) == ([], [], [])
    assert SECRET_PLACE in Path(done["kept"]).read_text()
    _nothing_comes_back(maybe_served, root)
    assert "Use tabs." in (root / "AGENTS.md").read_text()


def test_a_copy_in_a_worktrees_own_memory_goes_too_and_isnt_adopted_again(
    maybe_served: User, root: Path, side: Path
) -> None:
    copy = write(side / ".memory/learnt.md", f"{SECRET_PLACE}\n")
    maybe_served.run("sync", cwd=root)
    [fact] = maybe_served.run("list", cwd=root)["data"]["facts"]

    done = _forget(maybe_served, root, fact["id"])

    assert str(copy) in done["gone_from"]
    assert _holding(maybe_served) == []
    write(copy, f"{SECRET_PLACE}\n\n")  # as a stash that is popped brings it, in other bytes
    maybe_served.run("sync", cwd=root)
    assert maybe_served.run("list", cwd=root)["data"]["facts"] == []
    assert _holding(maybe_served) == [str(copy.relative_to(maybe_served.home))]
    maybe_served.add(root, SECRET_PLACE)  # a person may think again
    assert f"{SECRET_PLACE}" in (root / "AGENTS.md").read_text()


def test_a_committed_fact_goes_and_the_command_says_what_git_keeps(maybe_served: User, root: Path) -> None:
    path = write_fact(root, "shared.md", SECRET_PLACE)
    maybe_served.run("sync", cwd=root)
    maybe_served.git(root, "add", "-f", ".memory/shared.md", "AGENTS.md", "CLAUDE.md")
    maybe_served.git(root, "commit", "-q", "-m", "Share")
    side = maybe_served.home / "side"
    maybe_served.git(root, "worktree", "add", "-q", str(side), "-b", "side")
    assert (side / ".memory/shared.md").exists()

    done = _forget(maybe_served, root, "shared")

    assert done["in_git"] == [str(path), str(side / ".memory/shared.md")]
    assert "history" in done["told"]
    # What another branch has checked out is that branch's: it is told, and left as it is.
    held = str((side / ".memory/shared.md").relative_to(maybe_served.home))
    assert _holding(maybe_served) == [held]
    assert maybe_served.git(side, "status", "--porcelain", "--", ".memory") == ""
    maybe_served.git(root, "commit", "-qam", "Forget")
    _nothing_comes_back(maybe_served, root, held=(held,))


def test_a_fact_that_claude_wrote_with_a_line_of_its_own(maybe_served: User, root: Path) -> None:
    head = "---\nname: lights\ndescription: what the keeper does\nmetadata:\n  node_type: memory\n---\n\n"
    write(root / ".memory/lights.md", f"{head}{SECRET_PLACE}\n")
    index = root / ".memory/MEMORY.md"
    index.write_text(index.read_text() + f"- [Lanterns](lights.md) — {SECRET_PLACE}\n")
    maybe_served.run("sync", cwd=root)
    assert f"(lights.md) — {SECRET_PLACE}" in index.read_text()

    done = _forget(maybe_served, root, "lights")

    assert str(index) in done["gone_from"]
    assert "lights.md" not in index.read_text()
    _nothing_comes_back(maybe_served, root)


def test_a_private_fact_stays_remembered_as_private(maybe_served: User, root: Path) -> None:
    fact = maybe_served.add(root, SECRET_PLACE, "--private")["id"]
    maybe_served.run("sync", cwd=root)

    done = _forget(maybe_served, root, fact)

    assert "remembered as private" in done["told"]
    _nothing_comes_back(maybe_served, root)
    assert maybe_served.add(root, SECRET_PLACE)["private"]


def test_a_global_fact_leaves_the_users_own_files(maybe_served: User, root: Path) -> None:
    fact = maybe_served.add(root, SECRET_PLACE, "--scope", "global")["id"]
    maybe_served.run("sync", cwd=root)
    users = [maybe_served.home / ".claude/CLAUDE.md", maybe_served.home / ".codex/AGENTS.md"]
    assert all(SECRET_PLACE in path.read_text() for path in users)

    done = _forget(maybe_served, root, fact)

    assert {str(path) for path in users} <= set(done["gone_from"])
    _nothing_comes_back(maybe_served, root)


def test_words_of_the_users_own_stay_and_are_told(maybe_served: User, root: Path) -> None:
    agents = root / "AGENTS.md"
    write(agents, f"# Rules\n\n- {SECRET_PLACE}\n")
    fact = maybe_served.add(root, SECRET_PLACE)["id"]
    maybe_served.run("sync", cwd=root)

    done = _forget(maybe_served, root, fact)

    assert done["said_by_others"] == [str(agents)]
    assert "words of its own" in done["told"]
    assert agents.read_text().startswith(f"# Rules\n\n- {SECRET_PLACE}\n")


def test_a_stash_that_is_popped_brings_nothing_back(maybe_served: User, root: Path) -> None:
    fact = maybe_served.add(root, SECRET_PLACE)["id"]
    maybe_served.run("sync", cwd=root)
    agents = root / "AGENTS.md"
    write(agents, agents.read_text().replace("Use tabs.", "Use tabs, please."))
    maybe_served.git(root, "stash", "-q")
    _forget(maybe_served, root, fact)
    maybe_served.git(root, "checkout", "-q", "--", "AGENTS.md", "CLAUDE.md")
    maybe_served.git(root, "stash", "pop", "-q")
    assert "please" in agents.read_text()

    _nothing_comes_back(maybe_served, root)
    assert "please" in agents.read_text()


def test_a_block_that_was_merged_by_hand_offers_it_no_more(maybe_served: User, root: Path) -> None:
    other = maybe_served.add(root, "Something else altogether is kept.")["id"]
    fact = maybe_served.add(root, SECRET_PLACE)["id"]
    maybe_served.run("sync", cwd=root)
    block = (root / "AGENTS.md").read_text()
    _forget(maybe_served, root, fact)

    write(root / "AGENTS.md", block.replace("Something else", "Something  other"))

    maybe_served.run("sync", cwd=root)
    assert SECRET_PLACE not in (root / "AGENTS.md").read_text()
    assert not any(
        SECRET_PLACE in one["text"] for one in maybe_served.run("review", cwd=root)["data"]["candidates"]
    )
    assert other in (root / "AGENTS.md").read_text()


def test_while_git_is_at_work_the_files_that_wait_are_told(user: User) -> None:
    root = user.repository("project")
    user.init(root)
    fact = user.add(root, SECRET_PLACE)["id"]
    user.run("sync", cwd=root)
    (root / ".git/rebase-merge").mkdir()

    done = _forget(user, root, fact, code=4)

    assert set(done["still_in"]) == {str(root / "AGENTS.md"), str(root / "CLAUDE.md")}
    (root / ".git/rebase-merge").rmdir()
    _nothing_comes_back(user, root)


def test_without_a_set_up_only_the_fact_goes(user: User) -> None:
    root = user.repository("project")
    write_fact(root, "here.md", SECRET_PLACE)

    done = _forget(user, root, "here")

    assert done["gone_from"] == [str(root / ".memory/here.md")]
    assert "agent-bridge init" in done["told"]
