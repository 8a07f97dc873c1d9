"""Forgetting removes what it has kept a copy of, and nothing else that lies in a worktree."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from agent_bridge.config import Settings
from agent_bridge.memory.fact import Fact
from agent_bridge.projection.engine import Engine
from agent_bridge.projection.forget import Forgotten, Place, forget
from agent_bridge.projects import Project

from .conftest import git

TEXT = "The harbour is north of the old mill."
EDITED = TEXT + "\n\nSince spring it is south of it.\n"


def _forget(project: Project, settings: Settings, fact: Fact) -> Forgotten:
    store = Engine(project, settings).store
    place = Place(store, project, project.state / "search.sqlite")
    return forget(place, fact, settings, now=datetime.now(UTC))


def _worktree(repository: Path) -> Path:
    side = repository.parent / "side"
    git(repository, "worktree", "add", "-q", str(side))
    return side


def test_what_a_branch_holds_and_what_says_something_else_stays(
    project: Project, settings: Settings, engine: Engine, repository: Path
) -> None:
    fact = engine.store.add(TEXT).fact
    engine.reconcile()
    git(repository, "add", "-f", f".memory/{fact.path}")
    git(repository, "commit", "-qm", "a fact")
    side = _worktree(repository)
    held = side / ".memory" / fact.path
    same, edited = side / ".memory/same.md", side / ".memory/entries/edited.md"
    same.write_text(TEXT + "\n")
    edited.write_text(f"---\nid: {fact.id}\n---\n\n{EDITED}")

    done = _forget(project, settings, fact)

    assert not (repository / ".memory" / fact.path).exists()
    assert held.is_file()
    assert git(side, "status", "--porcelain", "--", f".memory/{fact.path}") == ""
    assert edited.read_text().endswith(EDITED)
    assert not same.exists()
    assert same in done.gone_from
    assert done.kept is not None
    assert TEXT in done.kept.read_text()


def test_another_text_under_the_facts_own_name_stays(
    project: Project, settings: Settings, engine: Engine, repository: Path
) -> None:
    side = _worktree(repository)
    fact = engine.store.add(TEXT).fact
    other = side / ".memory" / fact.path
    other.parent.mkdir(parents=True)
    other.write_text(f"---\nid: {fact.id}\n---\n\n{EDITED}")
    before = other.read_bytes()

    _forget(project, settings, fact)

    assert other.read_bytes() == before


def test_the_copy_has_the_bytes_that_went(
    project: Project, settings: Settings, engine: Engine, repository: Path
) -> None:
    fact = engine.store.add(TEXT).fact
    file = repository / ".memory" / fact.path
    file.write_text(file.read_text() + "\nSaved after it was listed.\n")
    last = file.read_bytes()

    done = _forget(project, settings, fact)

    assert done.kept is not None
    assert done.kept.read_bytes() == last
    assert not file.exists()
