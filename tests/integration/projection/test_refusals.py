"""A refusal is told for as long as its reason lasts, and no longer."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest

from agent_bridge.config import Settings
from agent_bridge.errors import RefusedError
from agent_bridge.projection import setup
from agent_bridge.projection.engine import Engine


def test_a_file_that_is_as_we_wrote_it_again_is_no_echo(engine: Engine, repository: Path) -> None:
    (engine.store.root / "way.md").write_text("The harbour is north.\n")
    engine.reconcile()
    agents = repository / "AGENTS.md"
    ours = agents.read_bytes()
    agents.write_bytes(b"<!-- agent-bridge:memory:start (managed, do not edit) -->\n" + ours)
    (refused,) = [notice for notice in engine.reconcile().notices if notice.code == "markers"]
    assert refused.path == agents
    assert "\n" not in refused.text

    agents.write_bytes(ours)

    assert not engine.is_echo(agents)
    assert [
        notice for notice in engine.reconcile(frozenset({agents})).notices if notice.code == "markers"
    ] == []


def test_a_link_into_gits_own_files_gets_no_block(engine: Engine, repository: Path) -> None:
    engine.reconcile()
    config = (repository / ".git/config").read_bytes()
    (repository / "AGENTS.md").unlink()
    (repository / "AGENTS.md").symlink_to(".git/config")
    (engine.store.root / "way.md").write_text("The harbour is north.\n")
    for hint in (
        frozenset({engine.store.root / "way.md"}),
        frozenset[Path](),
    ):  # a survey of before, a new one
        told = engine.reconcile(hint).notices
        assert "carrier-misled" in [notice.code for notice in told]
    assert (repository / ".git/config").read_bytes() == config
    assert b"harbour" in (repository / "CLAUDE.md").read_bytes()


@pytest.mark.parametrize("name", ["index.json", "MEMORY.md", ".gitignore"])
def test_a_derived_file_that_is_a_link_to_a_fact_is_not_written(engine: Engine, name: str) -> None:
    store = engine.store.root
    engine.reconcile()
    (store / "way.md").write_text("The harbour is north.\n")
    (store / name).unlink()
    (store / name).symlink_to("way.md")
    for work in (engine.reconcile, engine.settle, engine.store.create):
        with contextlib.suppress(RefusedError):
            work()
    assert (store / "way.md").read_text() == "The harbour is north.\n"


@pytest.mark.parametrize("place", [".git", ".memory"])
def test_no_setting_goes_into_gits_own_directory_or_the_memory(
    place: str, repository: Path, settings: Settings
) -> None:
    (repository / ".memory").mkdir()
    (repository / ".claude").symlink_to(place)
    report = setup.init(setup.describe(repository), settings).report
    assert not (repository / place / "settings.local.json").exists()
    assert "which is Git's own or the memory itself" in " ".join(notice.text for notice in report.notices)
