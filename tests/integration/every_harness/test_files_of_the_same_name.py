"""A user's file of the same name as one of ours: its bytes stay, it is reported, and eject leaves it."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent_bridge.config import Settings
from agent_bridge.projection import preview, setup
from agent_bridge.projection.engine import Engine, global_engine

from .conftest import MOMENT, NO_AGENTS_MD, MakeRepository, git, global_store, set_up, tree, write

FACT = "Staging is reset every Monday."
THEIRS = "---\nmine: true\n---\n\nMy own words, which no program may touch.\n"
PROJECT = (
    ".claude/rules/agent-bridge.md",
    ".opencode/memory-bridge.md",
    ".gemini/memory-bridge.md",
    ".agents/rules/agent-bridge.md",
    ".amazonq/rules/agent-bridge.md",
    ".augment/rules/agent-bridge.md",
    ".clinerules/agent-bridge.md",
    ".continue/rules/agent-bridge.md",
    ".cursor/rules/agent-bridge.mdc",
    ".github/instructions/agent-bridge.instructions.md",
    ".kiro/steering/agent-bridge.md",
    ".roo/rules/agent-bridge.md",
    ".trae/rules/agent-bridge.md",
    ".windsurf/rules/agent-bridge.md",
)
USER = (".kiro/steering/agent-bridge.md",)


@pytest.fixture
def root(repository: MakeRepository) -> Path:
    """Nobody can be reached by AGENTS.md or CLAUDE.md, so that everybody gets a file of its own."""
    files = {name: text for name, text in NO_AGENTS_MD.items() if name != "CLAUDE.md"}
    return repository(files | {"CLAUDE.md/keep.md": "A directory.\n"})


def test_each_of_them_is_made_where_nothing_is(root: Path, settings: Settings, sealed_home: Path) -> None:
    remember(root, settings)
    assert [name for name in PROJECT if FACT not in (root / name).read_text("utf-8")] == []
    assert [name for name in USER if FACT not in (sealed_home / name).read_text("utf-8")] == []


@pytest.mark.parametrize("tracked", [True, False])
def test_each_of_them_is_kept_and_reported(
    root: Path, settings: Settings, sealed_home: Path, tracked: bool
) -> None:
    write(root, dict.fromkeys(PROJECT, THEIRS))
    write(sealed_home, dict.fromkeys(USER, THEIRS))
    if tracked:
        git(root, "add", "-A")
        git(root, "commit", "-q", "-m", "mine")
    before = {name: one for name, one in tree(root).items() if name in PROJECT}
    assert len(before) == len(PROJECT)

    told, refused = remember(root, settings)

    assert {root / name for name in PROJECT} - told == set()
    assert {sealed_home / name for name in USER} - told == set()
    assert {root / name for name in PROJECT} - refused == set()
    assert {name: one for name, one in tree(root).items() if name in PROJECT} == before
    assert all((sealed_home / name).read_text("utf-8") == THEIRS for name in USER)
    assert setup.eject(setup.describe(root), settings).refused == []
    assert {name: one for name, one in tree(root).items() if name in PROJECT} == before
    assert all((sealed_home / name).read_text("utf-8") == THEIRS for name in USER)


def remember(root: Path, settings: Settings) -> tuple[set[Path | None], set[Path]]:
    """Set up and remember a fact in both scopes: which paths are told of, and which the plan refuses."""
    project, engine = set_up(root, settings, asked="all")
    engine.store.add(FACT, now=MOMENT)
    global_store().add(FACT, now=MOMENT)
    notices = [*Engine(project, settings).reconcile().notices, *global_engine(settings).reconcile().notices]
    plan = preview.preview_project(setup.describe(root), settings)
    told = {notice.path for notice in notices if notice.code == "name-taken"}
    return told, {step.path for step in plan.steps if step.what == "refused"}
