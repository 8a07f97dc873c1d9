"""Git overwrites ignored files without asking: the text isn't lost."""

from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path

import pytest

from agent_bridge import git
from agent_bridge.projection.excludes import exclude_lines
from agent_bridge.projection.keepsakes import Overwritten, look_after

pytestmark = pytest.mark.usefixtures("sealed_home")


def run(where: Path, *words: str) -> None:
    subprocess.run(["git", *words], cwd=where, capture_output=True, check=True)


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    """A branch `side` tracks `.memory/ports.md`; on `main` it is a private, ignored file."""
    path = tmp_path.resolve() / "repo"
    (path / ".memory").mkdir(parents=True)
    run(path, "init", "-q", "-b", "main")
    run(path, "commit", "-q", "--allow-empty", "-m", "first")
    run(path, "checkout", "-qb", "side")
    (path / ".memory" / "ports.md").write_text("theirs")
    run(path, "add", "-A")
    run(path, "commit", "-qm", "theirs")
    run(path, "checkout", "-q", "main")
    (path / ".memory").mkdir(exist_ok=True)
    (path / ".memory" / "ports.md").write_text("mine")
    (path / ".git" / "info").mkdir(exist_ok=True)
    (path / ".git" / "info" / "exclude").write_text("\n".join(exclude_lines()) + "\n")
    return path


def passed(repo: Path) -> list[Overwritten]:
    checkout = git.find_checkout(repo)
    assert checkout is not None
    store = repo / ".memory"
    found: list[Overwritten] = []
    count = look_after(store, git.tracked_below(checkout, store), repo.parent / "keepsakes", found.append)
    assert count == len(found)
    return found


@pytest.mark.parametrize("command", [("merge", "-q", "side"), ("checkout", "-q", "side")])
def test_what_git_replaced_is_given_back_once(repo: Path, command: tuple[str, ...]) -> None:
    assert passed(repo) == []
    run(repo, *command)
    fact = repo / ".memory" / "ports.md"
    assert fact.read_text() == "theirs"  # without a word from Git
    assert passed(repo) == [Overwritten(fact, b"mine")]
    assert passed(repo) == []


def test_what_git_replaced_and_then_took_away_is_given_back(repo: Path) -> None:
    (repo / ".memory" / "own.md").write_text("deleted by its owner")
    passed(repo)
    run(repo, "checkout", "-q", "side")
    run(repo, "checkout", "-q", "main")
    fact = repo / ".memory" / "ports.md"
    assert not fact.exists()
    (repo / ".memory" / "own.md").unlink()
    assert passed(repo) == [Overwritten(fact, b"mine")]
    assert passed(repo) == []


def test_the_copy_stays_until_it_is_kept_elsewhere(repo: Path) -> None:
    passed(repo)
    run(repo, "merge", "-q", "side")

    def killed(_: Overwritten) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        look_after(repo / ".memory", {repo / ".memory" / "ports.md"}, repo.parent / "keepsakes", killed)
    assert [lost.data for lost in passed(repo)] == [b"mine"]


def test_a_fact_that_its_owner_commits_or_deletes_is_no_loss(repo: Path) -> None:
    other = repo / ".memory" / "other.md"
    other.write_text("x")
    passed(repo)
    run(repo, "add", "-f", ".memory/ports.md")
    other.unlink()
    assert passed(repo) == []
    assert not [*(repo.parent / "keepsakes").rglob("*.md")]


@pytest.mark.parametrize("again", [(), ("commit", "-q", "--amend", "-m", "better said")])
def test_a_fact_that_its_owner_edits_and_commits_between_two_passes_is_no_loss(
    repo: Path, again: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    passed(repo)
    (repo / ".memory" / "ports.md").write_text("mine, better")
    run(repo, "add", "-f", ".memory/ports.md")
    # A reflog counts in seconds: what happens in that of the last pass may have been before it.
    later = int(time.time()) + 1
    os.utime(repo.parent / "keepsakes" / ".looked", (later, later))
    monkeypatch.setenv("GIT_COMMITTER_DATE", f"@{later + 1} +0000")
    run(repo, "commit", "-qm", "mine")
    if again:
        run(repo, *again)
    assert passed(repo) == []


def test_what_a_merge_replaced_is_a_loss_though_the_other_side_was_committed_here(repo: Path) -> None:
    passed(repo)
    run(repo, "commit", "-q", "--allow-empty", "-m", "so that the merge is one")
    run(repo, "merge", "-q", "--no-edit", "side")
    (repo / ".memory" / "ports.md").write_text("theirs, edited since")
    run(repo, "commit", "-qam", "edited")
    assert [lost.data for lost in passed(repo)] == [b"mine"]


def test_what_comes_by_a_rebase_or_a_restored_file_is_a_loss(repo: Path) -> None:
    passed(repo)
    run(repo, "commit", "-q", "--allow-empty", "-m", "mine")
    run(repo, "rebase", "-q", "side")
    assert [lost.data for lost in passed(repo)] == [b"mine"]
    (repo / ".memory" / "other.md").write_text("my other")
    passed(repo)
    run(repo, "checkout", "-q", "--orphan", "alone")
    (repo / ".memory" / "other.md").write_text("their other")  # as `git restore --source` does
    run(repo, "add", "-f", ".memory/other.md")
    assert [lost.data for lost in passed(repo)] == [b"my other"]


def test_the_last_version_is_kept_and_an_unchanged_one_isnt_copied_again(repo: Path) -> None:
    fact = repo / ".memory" / "ports.md"
    copy = repo.parent / "keepsakes" / "ports.md"
    passed(repo)
    first = copy.stat().st_ino
    passed(repo)
    assert copy.stat().st_ino == first
    assert copy.stat().st_mode & 0o777 == 0o600
    fact.write_text("mine, newer")
    passed(repo)
    assert copy.read_text() == "mine, newer"


def test_links_and_what_is_no_fact_are_not_followed(repo: Path) -> None:
    store = repo / ".memory"
    (repo / "secret").write_text("x")
    (store / "link.md").symlink_to(repo / "secret")
    (store / "MEMORY.md").write_text("x")
    (store / "x.txt").write_text("x")
    passed(repo)
    kept = {path.name for path in (repo.parent / "keepsakes").rglob("*") if path.is_file()}
    assert kept == {"ports.md", ".looked"}
