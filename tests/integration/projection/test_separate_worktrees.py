"""`worktrees = "separate"`: a worktree is a project of its own, and nothing is lost when it goes."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from agent_bridge import projects
from agent_bridge.config import Settings
from agent_bridge.projection import preview, setup
from agent_bridge.projection.engine import Engine
from agent_bridge.projects import Project

from .conftest import git

HERE = "The harbour is north."
THERE = "The quay is south."


@pytest.fixture
def main(repository: Path, settings: Settings) -> Project:
    found = setup.describe(repository, worktrees="separate")
    setup.init(found, settings)
    return found


@pytest.fixture
def side(main: Project, settings: Settings) -> Project:
    root = main.root.parent / "side"
    git(main.root, "worktree", "add", "-q", str(root))
    found = setup.describe(root / ".", worktrees="separate")
    setup.init(found, settings)
    return found


def test_each_has_its_own_facts_and_blocks(main: Project, side: Project, settings: Settings) -> None:
    assert (main.main, side.main) == (None, main.root)
    engines = {one.id: Engine(one, settings) for one in (main, side)}
    engines[main.id].store.add(HERE)
    engines[side.id].store.add(THERE)
    for engine in engines.values():
        engine.reconcile()
    for name in ("AGENTS.md", "CLAUDE.md"):
        for project, own, other in ((main, HERE, THERE), (side, THERE, HERE)):
            text = (project.root / name).read_text()
            assert (text.count(own), text.count(other)) == (1, 0)
    (side.root / "deep").mkdir()
    assert projects.find_project(side.root / "deep") == side
    assert projects.find_project(main.root) == main


def test_the_plan_for_a_worktree_takes_nothing_out_that_stays(main: Project, settings: Settings) -> None:
    Engine(main, settings).store.add(HERE)
    Engine(main, settings).reconcile()
    root = main.root.parent / "side"
    git(main.root, "worktree", "add", "-q", str(root))
    exclude = main.root / ".git" / "info" / "exclude"
    before = exclude.read_text()
    assert "/.claude/settings.local.json\n" in before

    side = setup.describe(root, worktrees="separate")
    (step,) = [one for one in preview.preview_project(side, settings).steps if one.path == exclude]
    setup.init(side, settings)

    told, put = ({line[1:] for line in step.diff.splitlines()[2:] if line[:1] == sign} for sign in "-+")
    assert told - put == set(before.splitlines()) - set(exclude.read_text().splitlines())
    assert "/.claude/settings.local.json" not in told - put


def test_a_worktree_that_nobody_set_up_belongs_to_nobody(main: Project) -> None:
    root = main.root.parent / "other"
    git(main.root, "worktree", "add", "-q", str(root))
    assert projects.find_project(root) is None


def test_with_shared_worktrees_it_belongs_to_the_main_checkout(main: Project, settings: Settings) -> None:
    root = main.root.parent / "other"
    git(main.root, "worktree", "add", "-q", str(root))
    again = setup.describe(main.root, worktrees="shared")
    setup.init(again, settings)
    assert projects.find_project(root) == again


def test_private_facts_of_both_stay_out_of_git(main: Project, side: Project, settings: Settings) -> None:
    for project, private in ((main, "notes.md"), (side, "plans.md")):
        other = "plans.md" if private == "notes.md" else "notes.md"
        (project.store / private).write_text("---\nprivate: true\n---\n\nNobody's business.\n")
        (project.store / other).write_text(f"Everybody's business in {project.root.name}.\n")
    for _ in range(2):
        for project in (main, side):
            Engine(project, settings).reconcile()
    for project, private in ((main, "notes.md"), (side, "plans.md")):
        other = "plans.md" if private == "notes.md" else "notes.md"
        added = git(project.root, "add", "-An", ".memory")
        assert private not in added
        assert other in added


def test_facts_of_a_removed_worktree_come_home(main: Project, side: Project, settings: Settings) -> None:
    (side.store / "quay.md").write_text(THERE + "\n")
    (side.store / "mine.md").write_text("---\nprivate: true\n---\n\nOnly for me.\n")
    Engine(side, settings).reconcile()
    git(main.root, "worktree", "remove", "--force", str(side.root))
    engine = Engine(main, settings)
    engine.reconcile()
    facts = {fact.body.strip(): fact for fact in engine.store.scan().facts}
    assert facts.keys() == {THERE, "Only for me."}
    assert not facts[THERE].private
    assert facts["Only for me."].private
    assert THERE in (main.root / "AGENTS.md").read_text()
    assert "Only for me." not in (main.root / "AGENTS.md").read_text()
    engine.store.remove(facts[THERE].id)
    engine.reconcile()
    assert [fact.body.strip() for fact in engine.store.scan().facts] == ["Only for me."]


def test_a_worktree_that_may_come_back_keeps_its_facts(
    main: Project, side: Project, settings: Settings
) -> None:
    (side.store / "quay.md").write_text(THERE + "\n")
    Engine(side, settings).reconcile()
    away = shutil.move(side.root, side.root.parent / "away")
    engine = Engine(main, settings)
    engine.reconcile()
    assert engine.store.scan().facts == ()
    shutil.rmtree(away)
    git(main.root, "worktree", "prune", "--expire=now")
    engine.reconcile()
    assert [fact.body.strip() for fact in engine.store.scan().facts] == [THERE]


def test_purging_what_is_gone_keeps_the_last_copies(main: Project, side: Project, settings: Settings) -> None:
    (side.store / "quay.md").write_text(THERE + "\n")
    Engine(side, settings).reconcile()
    git(main.root, "worktree", "remove", "--force", str(side.root))
    done = setup.eject(side, settings, purge=True)
    assert any("quay.md" in path.name for path in (side.state / "keepsakes").iterdir())
    assert any(str(side.state / "keepsakes") in note for note in done.notes)
