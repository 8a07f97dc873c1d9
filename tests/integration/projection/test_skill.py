"""The skill in the homes of agent programs: put there once a reader, kept, and taken out exactly."""

from __future__ import annotations

import dataclasses
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from agent_bridge import paths
from agent_bridge.config import Settings
from agent_bridge.errors import RefusedError
from agent_bridge.projection import opencode_plugin, preview, setup, skill
from agent_bridge.projection.engine import global_engine
from agent_bridge.projection.ledger import Ledger
from agent_bridge.projects import Project

from .conftest import git

Tree = Callable[[Path], dict[str, tuple[str, int, bytes]]]
CLAUDE, CODEX = ".claude/skills/agent-bridge", ".codex/skills/agent-bridge"
OPENCODE, GEMINI = ".config/opencode/skills/agent-bridge", ".gemini/skills/agent-bridge"
HOMES = (".codex", ".config/opencode", ".gemini/antigravity-cli")


@pytest.fixture
def homes(sealed_home: Path, repository: Path) -> Path:
    """The home of a user of all five programs."""
    for name in HOMES:
        (sealed_home / name).mkdir(parents=True)
    return sealed_home


def set_up(root: Path, settings: Settings, *, mcp: bool | None = None) -> Project:
    found = setup.describe(root, mcp=mcp)
    setup.init(found, settings)
    return found


def installed(home: Path) -> set[str]:
    return {path.parent.relative_to(home).as_posix() for path in home.rglob("SKILL.md")}


def told(settings: Settings) -> dict[str, str]:
    """Notices about the skill after a pass of the user's engine."""
    notices = global_engine(settings).reconcile().notices
    return {one.code: one.text for one in notices if one.code.startswith("skill-")}


def test_each_reader_has_one_copy_and_eject_leaves_no_trace(
    homes: Path, repository: Path, settings: Settings, tree: Tree
) -> None:
    (homes / ".codex/skills/mine").mkdir(parents=True)
    (homes / ".codex/skills/mine/SKILL.md").write_text("---\nname: mine\ndescription: x\n---\n")
    before = {name: tree(homes / name) for name in (".claude", *HOMES, ".gemini")}

    steps = {
        step.path: step.text for step in preview.preview_project(setup.describe(repository), settings).steps
    }
    project = set_up(repository, settings)

    assert installed(homes) == {CLAUDE, CODEX, GEMINI, ".codex/skills/mine"}
    assert "Claude Code, OpenCode " in steps[homes / CLAUDE]
    assert "Gemini CLI, Antigravity " in steps[homes / GEMINI]
    for name in (CLAUDE, CODEX, GEMINI):
        found = {path.relative_to(homes / name).as_posix() for path in (homes / name).rglob("*.md")}
        assert found == set(skill.shipped())
        assert all((homes / name / one).read_bytes() == skill.shipped()[one] for one in found)
    again = preview.preview_project(setup.describe(repository), settings)
    assert not [step for step in again.steps if step.what == "skill"]

    setup.eject(project, settings)

    assert {name: tree(homes / name) for name in before} == before


def test_opencode_gets_its_own_where_claude_code_is_not_used(
    sealed_home: Path, repository: Path, settings: Settings
) -> None:
    (sealed_home / ".claude").rmdir()
    (sealed_home / ".config/opencode").mkdir(parents=True)
    set_up(repository, settings)
    assert installed(sealed_home) == {OPENCODE}


@pytest.mark.parametrize("name", ["OPENCODE_DISABLE_CLAUDE_CODE_SKILLS", "OPENCODE_DISABLE_EXTERNAL_SKILLS"])
def test_opencode_that_reads_no_skills_of_claude_code(
    homes: Path, repository: Path, settings: Settings, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    found = setup.describe(repository)
    setup.init(dataclasses.replace(found, environment={**found.environment, name: "1"}), settings)
    assert OPENCODE in installed(homes)


def test_a_skill_of_the_users_own_stays(
    homes: Path, repository: Path, settings: Settings, tree: Tree
) -> None:
    for place in (homes / GEMINI, homes / ".agents/skills/agent-bridge"):
        place.mkdir(parents=True)
        (place / "SKILL.md").write_text("---\nname: agent-bridge\ndescription: mine\n---\n")
    before = tree(homes / ".gemini"), tree(homes / ".agents")

    notices = preview.preview_project(setup.describe(repository), settings).notices
    project = set_up(repository, settings)

    assert (tree(homes / ".gemini"), tree(homes / ".agents")) == before
    assert installed(homes) == {CLAUDE, GEMINI, ".agents/skills/agent-bridge"}, "Codex would show it twice"
    assert sum(one.code == "skill-closed" and "isn't ours" in one.text for one in notices) == 3
    setup.eject(project, settings)
    assert (tree(homes / ".gemini"), tree(homes / ".agents")) == before


def test_a_linked_skill_is_somebodys_own(homes: Path, repository: Path, settings: Settings) -> None:
    elsewhere = homes / "dotfiles"
    elsewhere.mkdir()
    (homes / ".codex/skills").mkdir()
    (homes / CODEX).symlink_to(elsewhere)
    set_up(repository, settings)
    assert not list(elsewhere.iterdir())
    assert (homes / CLAUDE / "SKILL.md").is_file()


def test_two_programs_with_one_folder_of_skills_get_one_copy(
    homes: Path, repository: Path, settings: Settings
) -> None:
    (homes / "skills").mkdir()
    (homes / ".claude/skills").symlink_to("../skills")
    (homes / ".codex/skills").symlink_to("../skills")
    project = set_up(repository, settings)
    assert len(skill.copies(Ledger(paths.user_state()))) == 2, "with Gemini's"
    assert (homes / CODEX / "SKILL.md").is_file()
    setup.eject(project, settings)
    assert not list((homes / "skills").iterdir())


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_cannot_be_written_is_told(homes: Path, repository: Path, settings: Settings) -> None:
    (homes / ".codex").chmod(0o500)
    try:
        notices = preview.preview_project(setup.describe(repository), settings).notices
    finally:
        (homes / ".codex").chmod(0o700)
    assert any(one.code == "skill-closed" and str(homes / ".codex") in one.text for one in notices)


def test_a_file_that_its_user_changed_stays_and_is_told(
    homes: Path, repository: Path, settings: Settings
) -> None:
    project = set_up(repository, settings)
    mine = homes / CLAUDE / "SKILL.md"
    assert not told(settings)
    mine.write_text(mine.read_text() + "\nMine.\n")

    assert str(mine) in told(settings)["skill-changed"]
    set_up(repository, settings)
    assert mine.read_text().endswith("Mine.\n")
    setup.eject(project, settings)
    assert [path.name for path in (homes / CLAUDE).rglob("*")] == ["SKILL.md"]
    assert not (homes / CODEX).exists()


@pytest.mark.parametrize("kind", ["file for the directory", "file for references", "link", "fifo"])
def test_what_its_user_put_in_its_place_keeps_nothing_else_from_being_set_up(
    homes: Path, repository: Path, settings: Settings, kind: str
) -> None:
    set_up(repository, settings)
    ours = homes / CLAUDE
    if kind == "file for the directory":
        shutil.rmtree(ours)
        ours.write_text("mine")
    elif kind == "file for references":
        shutil.rmtree(ours / "references")
        (ours / "references").write_text("mine")
    else:
        (ours / "SKILL.md").unlink()
        (ours / "SKILL.md").symlink_to(repository / "mine") if kind == "link" else os.mkfifo(
            ours / "SKILL.md"
        )
    shutil.rmtree(homes / CODEX)

    told = [one.text for one in preview.preview_project(setup.describe(repository), settings).notices]
    assert any(text.startswith("Claude Code") and "our skill" in text for text in told), told
    set_up(repository, settings)
    assert (homes / CODEX / "SKILL.md").is_file()
    if kind.startswith("file"):
        assert "mine" in {path.read_text() for path in (ours, ours / "references") if path.is_file()}


def test_what_cannot_be_taken_out_is_told(homes: Path, repository: Path, settings: Settings) -> None:
    set_up(repository, settings)
    place = homes / CLAUDE / "SKILL.md"
    data = place.read_bytes()
    place.unlink()
    os.mkfifo(place)
    with pytest.raises(RefusedError, match=r"SKILL\.md"):
        set_up(repository, settings, mcp=False)

    place.unlink()
    place.write_bytes(data)
    set_up(repository, settings, mcp=False)
    assert installed(homes) == set()


def test_what_its_user_removed_comes_back_by_init_alone(
    homes: Path, repository: Path, settings: Settings
) -> None:
    set_up(repository, settings)
    reference = next((homes / CLAUDE / "references").iterdir())
    reference.unlink()
    global_engine(settings).reconcile()
    assert not reference.exists()
    set_up(repository, settings)
    assert reference.exists()


def test_another_version_comes_with_the_product(
    homes: Path, repository: Path, settings: Settings, monkeypatch: pytest.MonkeyPatch, tree: Tree
) -> None:
    before = tree(homes / ".claude")
    project = set_up(repository, settings)
    newer = {"SKILL.md": b"---\nname: agent-bridge\ndescription: new\n---\n", "references/new.md": b"New.\n"}
    monkeypatch.setattr(skill, "shipped", lambda: newer)

    assert "brought to this version" in told(settings)["skill-updated"]

    for name in (CLAUDE, CODEX, GEMINI):
        there = [path for path in (homes / name).rglob("*") if path.is_file()]
        assert {path.relative_to(homes / name).as_posix(): path.read_bytes() for path in there} == newer
    assert not told(settings)
    setup.eject(project, settings)
    assert tree(homes / ".claude") == before


def test_without_mcp_there_is_none_and_it_goes_again(
    homes: Path, repository: Path, settings: Settings, tree: Tree
) -> None:
    before = tree(homes / ".codex")
    set_up(repository, settings, mcp=False)
    assert not installed(homes)
    set_up(repository, settings, mcp=True)
    assert installed(homes)
    steps = preview.preview_project(setup.describe(repository, mcp=False), settings).steps
    assert {step.path for step in steps if step.what == "skill"} == {
        homes / CLAUDE,
        homes / CODEX,
        homes / GEMINI,
    }
    set_up(repository, settings, mcp=False)
    assert not installed(homes)
    assert tree(homes / ".codex") == before


def test_it_stays_as_long_as_another_project_needs_it(
    homes: Path, repository: Path, settings: Settings
) -> None:
    other = homes / "other"
    other.mkdir()
    git(other, "init", "-q")
    first, second = set_up(repository, settings), set_up(other, settings)
    setup.eject(first, settings)
    assert (homes / CLAUDE / "SKILL.md").is_file()
    setup.eject(second, settings)
    assert not installed(homes)


def test_another_file_of_ours_is_no_part_of_it(sealed_home: Path) -> None:
    ledger = Ledger(paths.user_state())
    opencode_plugin.install(ledger, sealed_home / "skills/agent-bridge/opencode", None)
    assert ledger.entries()
    assert not skill.copies(ledger)
