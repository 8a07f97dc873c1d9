"""A pass over everything is spared where nothing can have changed, and only there."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from agent_bridge.config import Settings
from agent_bridge.projection.engine import Engine
from agent_bridge.projects import Project

from .conftest import git

FACT = b"The deploy key lives in the vault."


@pytest.fixture
def clock() -> list[float]:
    """The wall clock, which a test moves on; beyond the time that files get."""
    return [4e9]


@pytest.fixture
def resting(project: Project, settings: Settings, clock: list[float]) -> Engine:
    """An engine whose last pass left nothing to do."""
    engine = Engine(project, settings, wall=lambda: clock[0])
    engine.store.add(FACT.decode())
    engine.reconcile()
    engine.reconcile()
    return engine


def looks_afresh(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Whether the next pass asks Git, which it can't find: then it sees no repository."""
    with monkeypatch.context() as without_git:
        without_git.setenv("PATH", "")
        return any(notice.code == "no-git" for notice in engine.reconcile().notices)


def test_nothing_is_looked_at_where_nothing_has_changed(
    resting: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = resting.reconcile()
    assert not looks_afresh(resting, monkeypatch)
    again = resting.reconcile()
    assert again.generation == before.generation + 2
    assert (again.facts, again.notices, again.wrote) == (before.facts, before.notices, ())


@pytest.mark.parametrize("seconds", [1800.0, -1.0])
def test_after_half_an_hour_or_when_the_clock_went_back_all_is_looked_at(
    resting: Engine, clock: list[float], monkeypatch: pytest.MonkeyPatch, seconds: float
) -> None:
    clock[0] += seconds
    assert looks_afresh(resting, monkeypatch)


def add_worktree_fact(root: Path) -> None:
    place = root.parent / "tree" / ".memory"
    place.mkdir(parents=True)
    (place / "new.md").write_text("Found in a worktree.\n")


CHANGES: dict[str, Callable[[Path], object]] = {
    "an instruction file": lambda root: (root / "AGENTS.md").write_text("Use blanks.\n"),
    "another instruction file": lambda root: (root / "AGENTS.override.md").write_text("Use blanks.\n"),
    "one above": lambda root: (root.parent / "CLAUDE.md").write_text("Be kind.\n"),
    "a fact": lambda root: (root / ".memory" / "new.md").write_text("A new one.\n"),
    "the index": lambda root: (root / ".memory" / "MEMORY.md").unlink(),
    "a setting": lambda root: (root / ".claude" / "settings.local.json").write_text("{}"),
    "a rule": lambda root: (root / ".gitignore").write_text("*.log\n"),
    "our lines": lambda root: (root / ".git" / "info" / "exclude").write_text(""),
    "what Git tracks": lambda root: git(root, "rm", "-q", "--cached", "CLAUDE.md"),
    "Git's settings": lambda root: git(root, "config", "core.filemode", "false"),
    "a new worktree": lambda root: git(root, "worktree", "add", "-q", str(root.parent / "other")),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_a_change_is_seen_without_a_hint(
    resting: Engine, repository: Path, monkeypatch: pytest.MonkeyPatch, change: Callable[[Path], object]
) -> None:
    change(repository)
    assert looks_afresh(resting, monkeypatch)


def test_a_fact_in_a_worktree_is_seen(
    project: Project, settings: Settings, repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    git(repository, "worktree", "add", "-q", str(repository.parent / "tree"))
    engine = Engine(project, settings)
    engine.reconcile()
    engine.reconcile()
    assert not looks_afresh(engine, monkeypatch)
    add_worktree_fact(repository)
    assert engine.reconcile().facts == 1


def test_what_failed_is_tried_again(
    project: Project, settings: Settings, repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = Engine(project, settings)
    engine.store.add(FACT.decode())
    (repository / "AGENTS.md").chmod(0o444)
    assert any(notice.path == repository / "AGENTS.md" for notice in engine.reconcile().notices)
    assert looks_afresh(engine, monkeypatch)
