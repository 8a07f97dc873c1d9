"""What a pass over everything puts right, and what it only tells."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

import pytest

from agent_bridge.config import Settings
from agent_bridge.harnesses.claude_places import slug
from agent_bridge.projection import setup
from agent_bridge.projection.engine import Engine, Report, global_engine

from .conftest import git


def codes(report: Report) -> set[str]:
    return {notice.code for notice in report.notices}


def test_a_link_that_went_missing_is_made_again(engine: Engine, repository: Path, sealed_home: Path) -> None:
    link = sealed_home / ".claude/projects" / slug(str(repository)) / "memory"
    link.unlink()
    assert "link-restored" in codes(engine.reconcile())
    assert link.readlink() == repository / ".memory"


def test_a_link_that_somebody_replaced_is_told_and_left(
    engine: Engine, repository: Path, sealed_home: Path
) -> None:
    link = sealed_home / ".claude/projects" / slug(str(repository)) / "memory"
    link.unlink()
    link.mkdir()
    (link / "mine.md").write_text("Mine.")
    assert "link-replaced" in codes(engine.reconcile())
    assert not link.is_symlink()
    assert (link / "mine.md").read_text() == "Mine."


def test_a_key_that_went_missing_is_put_back_once(engine: Engine, repository: Path) -> None:
    place = repository / ".claude/settings.local.json"
    ours = place.read_bytes()
    place.write_text("{}")
    assert "key-restored" in codes(engine.reconcile())
    assert json.loads(place.read_bytes()) == json.loads(ours)
    place.write_text("{}")
    assert "key-respected" in codes(engine.reconcile())
    assert place.read_text() == "{}"


def test_another_value_of_a_key_is_its_users_word(engine: Engine, repository: Path) -> None:
    place = repository / ".claude/settings.local.json"
    text = place.read_text().replace(str(repository / ".memory"), "/elsewhere")
    place.write_text(text)
    assert "key-respected" in codes(engine.reconcile())
    assert place.read_text() == text


def test_a_lock_that_a_killed_git_left_is_told(engine: Engine, repository: Path) -> None:
    lock = repository / ".git/index.lock"
    lock.touch()
    long_ago = time.time() - 3600
    os.utime(lock, (long_ago, long_ago))
    report = engine.reconcile()
    assert report.waiting
    assert "index-lock" in codes(report)
    assert lock.exists()


def test_an_index_that_is_no_text_is_kept_before_it_is_made_anew(engine: Engine, repository: Path) -> None:
    place = repository / ".memory/MEMORY.md"
    place.write_bytes(b"caf\xe9 notes of mine\n")
    engine.store.add("A fact for the index.")
    report = engine.reconcile()
    assert "index-undecodable" in codes(report)
    assert "A fact for the index." in place.read_text(encoding="utf-8")
    assert b"caf\xe9 notes of mine\n" in {path.read_bytes() for path in engine.ledger.kept.iterdir()}


def test_a_private_fact_that_git_tracks_is_told(engine: Engine, repository: Path) -> None:
    fact = engine.store.add("The salary is a hundred.").fact
    git(repository, "add", "-f", f".memory/{fact.path}")
    engine.store.unshare(fact.id)
    assert "private-tracked" in codes(engine.reconcile())


@pytest.mark.parametrize("in_git", [True, False])
def test_private_facts_of_the_user_stand_in_no_file_that_git_holds(
    engine: Engine, sealed_home: Path, settings: Settings, in_git: bool
) -> None:
    if in_git:
        git(sealed_home, "init", "-q")
    (sealed_home / ".codex").mkdir()
    user = global_engine(settings)
    user.store.add("The salary is a hundred.", private=True)
    user.store.add("Answer in short sentences.")
    user.reconcile()
    for name in (".codex/AGENTS.md", ".claude/CLAUDE.md"):
        text = (sealed_home / name).read_text()
        assert "Answer in short sentences." in text
        assert ("salary" in text) is not in_git


def test_a_file_of_ours_stays_out_of_git_whoever_reads_it_later(
    repository: Path, sealed_home: Path, settings: Settings
) -> None:
    (repository / ".claude").symlink_to(sealed_home / ".claude")  # no rules file can be made there
    git(repository, "rm", "-q", "AGENTS.md")
    git(repository, "commit", "-qm", "without")
    (sealed_home / ".config" / "opencode").mkdir(parents=True)
    project = setup.describe(repository)
    setup.init(project, settings)
    engine = Engine(project, settings)
    engine.store.add("Staging is reset every Monday.")
    for _ in range(3):
        engine.reconcile()
        made = {"AGENTS.md", "CLAUDE.local.md"}
        assert all(b"Monday" in (repository / name).read_bytes() for name in made)
        assert not made & set(git(repository, "ls-files", "-o", "--exclude-standard").splitlines())
    git(repository, "add", "-f", "AGENTS.md")
    engine.reconcile()
    assert "/AGENTS.md" not in (repository / ".git/info/exclude").read_text().splitlines()
