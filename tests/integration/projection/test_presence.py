"""A store that leads elsewhere is served by nobody: a repository can bring any symlink along."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent_bridge.config import Settings
from agent_bridge.errors import RefusedError
from agent_bridge.memory.snapshot import Snapshot
from agent_bridge.projection import setup
from agent_bridge.projection.engine import Engine

from .conftest import AGENTS


@pytest.fixture
def notes(sealed_home: Path) -> Path:
    """The user's own notes, outside of any project."""
    place = sealed_home / "notes"
    place.mkdir()
    (place / "diary.md").write_text("Dear diary.\n")
    return place


@pytest.mark.parametrize("target", ["../notes", "inner"])
def test_init_refuses_a_store_that_is_a_symlink(repository: Path, notes: Path, target: str) -> None:
    (repository / "inner").mkdir()  # the rules that keep private facts out of Git name .memory alone
    (repository / ".memory").symlink_to(target)
    with pytest.raises(RefusedError, match="symlink") as refused:
        setup.describe(repository)
    assert refused.value.path == str(repository / ".memory")
    assert [path.name for path in notes.iterdir()] == ["diary.md"]


def test_a_store_that_becomes_a_symlink_is_neither_read_nor_written(
    engine: Engine, repository: Path, notes: Path, settings: Settings
) -> None:
    engine.reconcile()
    engine.store.root.rename(repository / "aside")
    engine.store.root.symlink_to(notes)
    for one in (engine, Engine(engine.project, settings)):
        with pytest.raises(RefusedError, match="symlink"):
            one.reconcile()
    assert (repository / "AGENTS.md").read_bytes() == AGENTS
    assert [path.name for path in notes.iterdir()] == ["diary.md"]

    engine.store.root.unlink()
    (repository / "aside").rename(engine.store.root)
    assert engine.reconcile().problems == ()


def test_a_store_that_becomes_a_link_while_it_is_read_is_not_published(
    engine: Engine, repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    notes = repository.parent / "notes"
    notes.mkdir()
    (notes / "diary.md").write_text("Nobody's business.\n")
    scan = engine.store.scan

    def swapped() -> Snapshot:
        if not (repository / ".memory").is_symlink():
            (repository / ".memory").rename(repository / "away")
            (repository / ".memory").symlink_to(notes)
        return scan()

    monkeypatch.setattr(engine.store, "scan", swapped)
    with pytest.raises(RefusedError, match="symlink"):
        engine.reconcile()
    assert b"business" not in (repository / "AGENTS.md").read_bytes()
