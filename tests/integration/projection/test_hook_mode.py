"""HOOK mode from `init --hooks` to `eject`: what is set, what stays untouched, what comes back."""

from __future__ import annotations

import json
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agent_bridge.config import Settings
from agent_bridge.harnesses import codex_hooks, hook_command
from agent_bridge.harnesses.base import Scope
from agent_bridge.projection import hook_context, preview, setup
from agent_bridge.projection.engine import Engine, global_engine
from agent_bridge.projects import Project

from .conftest import AGENTS, CLAUDE, git

Tree = Callable[[Path], dict[str, tuple[str, int, bytes]]]
FACT = "The build lies in build/."


@pytest.fixture
def codex_home(sealed_home: Path) -> Path:
    home = sealed_home / ".codex"
    home.mkdir()
    return home


@pytest.fixture
def hooked(codex_home: Path, repository: Path, settings: Settings) -> Project:
    """The repository in HOOK mode, with a fact."""
    return in_hook_mode(repository, settings)


def in_hook_mode(root: Path, settings: Settings) -> Project:
    project = setup.describe(root, delivery="hooks")
    setup.init(project, settings)
    engine = Engine(project, settings)
    engine.store.add(FACT)
    engine.reconcile()
    return project


def claude_groups(root: Path) -> list[dict[str, Any]]:
    found = json.loads((root / ".claude/settings.local.json").read_bytes()).get("hooks", {})
    return list(found.get("SessionStart", []))


def codex_groups(codex_home: Path) -> list[dict[str, Any]]:
    place = codex_home / "hooks.json"
    return list(json.loads(place.read_bytes())["hooks"]["SessionStart"]) if place.exists() else []


def trusted(codex_home: Path) -> dict[str, str]:
    place = codex_home / "config.toml"
    state = tomllib.loads(place.read_text()).get("hooks", {}).get("state", {}) if place.exists() else {}
    return {key: value["trusted_hash"] for key, value in state.items()}


def assert_trusted(codex_home: Path) -> None:
    """Ours is in hooks.json once, and trusted just there."""
    groups = codex_groups(codex_home)
    (index,) = [number for number, group in enumerate(groups) if hook_command.program_in(group)]
    key = f"{codex_home}/hooks.json:session_start:{index}:0"
    assert trusted(codex_home) == {key: codex_hooks.trusted_hash(groups[index])}


def test_no_file_of_the_users_has_a_block_and_both_have_a_hook(
    hooked: Project, codex_home: Path, settings: Settings
) -> None:
    assert (hooked.root / "AGENTS.md").read_bytes() == AGENTS
    assert (hooked.root / "CLAUDE.md").read_bytes() == CLAUDE
    assert git(hooked.root, "status", "--porcelain", "--", ":!.memory") == ""
    (group,) = claude_groups(hooked.root)
    assert hook_command.program_in(group) == sys.executable
    assert_trusted(codex_home)
    survey = Engine(hooked, settings).survey()
    assert [one.name for one in survey.hooked] == ["claude-code", "codex"]
    assert survey.unserved == ()
    assert not [one for one in survey.layout.targets if one.scope is Scope.PROJECT]
    for one in survey.hooked:
        assert FACT in hook_context.place(hooked.state, one.name).read_text()


def test_the_first_init_sets_no_hook_again(codex_home: Path, repository: Path, settings: Settings) -> None:
    done = setup.init(setup.describe(repository, delivery="hooks"), settings)
    assert "hooks-set" not in {notice.code for notice in done.report.notices}
    assert_trusted(codex_home)
    assert claude_groups(repository)


def test_a_second_init_changes_nothing(
    hooked: Project, codex_home: Path, settings: Settings, tree: Tree
) -> None:
    before = tree(hooked.root), tree(codex_home)
    again = setup.describe(hooked.root)
    assert again.delivery == "hooks"
    assert preview.preview_project(again, settings).empty
    setup.init(again, settings)
    assert (tree(hooked.root), tree(codex_home)) == before


def test_from_blocks_to_hooks_and_back(
    codex_home: Path, project: Project, settings: Settings, tree: Tree
) -> None:
    engine = Engine(project, settings)
    engine.store.add(FACT)
    engine.reconcile()
    with_blocks = tree(project.root)
    assert FACT.encode() in (project.root / "AGENTS.md").read_bytes()

    there = setup.describe(project.root, delivery="hooks")
    steps = {(step.what, step.path.name) for step in preview.preview_project(there, settings).steps}
    assert {("block", "AGENTS.md"), ("key", "settings.local.json"), ("key", "hooks.json")} <= steps
    setup.init(there, settings)
    assert (project.root / "AGENTS.md").read_bytes() == AGENTS
    assert (project.root / "CLAUDE.md").read_bytes() == CLAUDE
    assert_trusted(codex_home)

    back = setup.describe(project.root, delivery="blocks")
    steps = {(step.what, step.path.name) for step in preview.preview_project(back, settings).steps}
    assert {("block", "AGENTS.md"), ("key", "settings.local.json"), ("key", "hooks.json")} <= steps
    setup.init(back, settings)
    assert tree(project.root) == with_blocks
    assert codex_groups(codex_home) == []
    assert trusted(codex_home) == {}
    assert not (project.state / "hook").exists()


@pytest.mark.parametrize("theirs", [True, False])
def test_eject_leaves_everything_as_it_was(
    codex_home: Path, repository: Path, settings: Settings, tree: Tree, *, theirs: bool
) -> None:
    if theirs:
        (repository / ".claude").mkdir()
        mine = {"hooks": {"SessionStart": [{"hooks": [{"type": "command", "command": "echo mine"}]}]}}
        (repository / ".claude/settings.local.json").write_text(json.dumps(mine, indent=4))
        (codex_home / "hooks.json").write_text(json.dumps(mine))
        (codex_home / "config.toml").write_text("# mine\nmodel = 'm'\n\n[hooks.state.x]\nenabled = true\n")
    before = tree(repository), tree(codex_home)
    project = in_hook_mode(repository, settings)
    assert len(codex_groups(codex_home)) == len(claude_groups(repository)) == (2 if theirs else 1)
    (codex_home / "config.toml").open("ab").write(b"\n[tui]\nseen = 1\n")  # as Codex does

    assert not setup.eject(project, settings).refused

    after = tree(repository)
    assert {name: what for name, what in after.items() if not name.startswith((".memory", ".git/"))} == {
        name: what for name, what in before[0].items() if not name.startswith(".git/")
    }
    config = codex_home / "config.toml"
    if theirs:
        config.write_bytes(config.read_bytes().replace(b"\n[tui]\nseen = 1\n", b""))
    else:
        assert config.read_bytes() == b"[tui]\nseen = 1\n"
        config.unlink()
    assert tree(codex_home) == before[1]


def test_the_users_hook_stays_while_another_project_has_hooks(
    hooked: Project, codex_home: Path, sealed_home: Path, settings: Settings
) -> None:
    other_root = sealed_home / "other"
    subprocess.run(["git", "init", "-q", str(other_root)], check=True)
    other = in_hook_mode(other_root, settings)
    third_root = sealed_home / "third"
    subprocess.run(["git", "init", "-q", str(third_root)], check=True)
    setup.init(setup.describe(third_root), settings)
    assert_trusted(codex_home)
    setup.eject(hooked, settings)
    assert_trusted(codex_home)
    assert not (hooked.state / "hook").exists()
    setup.eject(other, settings)
    assert codex_groups(codex_home) == []
    assert trusted(codex_home) == {}


def test_a_hook_that_comes_before_ours_moves_the_trust(
    hooked: Project, codex_home: Path, settings: Settings
) -> None:
    place = codex_home / "hooks.json"
    document = json.loads(place.read_bytes())
    document["hooks"]["SessionStart"].insert(0, {"hooks": []})
    place.write_text(json.dumps(document))
    report = Engine(hooked, settings).reconcile()
    assert "hooks-set" in {notice.code for notice in report.notices}
    assert_trusted(codex_home)


def test_a_hook_whose_program_is_gone_is_set_anew(
    codex_home: Path, repository: Path, settings: Settings, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    old = tmp_path / "python"
    old.symlink_to(sys.executable)
    with monkeypatch.context() as patch:
        patch.setattr(sys, "executable", str(old))
        project = in_hook_mode(repository, settings)
    Engine(project, settings).reconcile()
    assert hook_command.program_in(claude_groups(repository)[0]) == str(old), "it still works"
    old.unlink()
    Engine(project, settings).reconcile()
    for groups in (claude_groups(repository), codex_groups(codex_home)):
        assert [hook_command.program_in(group) for group in groups] == [sys.executable]
    assert_trusted(codex_home)


def test_a_hook_that_a_person_takes_out_twice_stays_out(
    hooked: Project, codex_home: Path, settings: Settings
) -> None:
    local, users = hooked.root / ".claude/settings.local.json", codex_home / "hooks.json"
    for expected in (1, 0):
        for place in (local, users):
            place.write_text("{}")
        Engine(hooked, settings).reconcile()
        global_engine(settings).reconcile()
        Engine(hooked, settings).reconcile()
        assert (len(claude_groups(hooked.root)), len(json.loads(users.read_bytes()))) == (expected, expected)


def test_private_facts_are_told_and_secrets_are_not(hooked: Project, settings: Settings) -> None:
    engine = Engine(hooked, settings)
    engine.store.add("Mine alone.", private=True)
    engine.store.add("The key is AKIAIOSFODNN7EXAMPLQ.")
    assert engine.reconcile().withheld == 1
    for name in ("claude-code", "codex"):
        text = hook_context.place(hooked.state, name).read_text()
        assert "Mine alone." in text
        assert "AKIA" not in text


def test_an_untrusted_project_is_told_to_nobody(
    codex_home: Path, repository: Path, settings: Settings
) -> None:
    (codex_home / "config.toml").write_text(f'[projects."{repository}"]\ntrust_level = "untrusted"\n')
    project = in_hook_mode(repository, settings)
    assert [path.name for path in hook_context.present(project.state)] == ["claude-code.md"]
    assert codex_groups(codex_home) == []
    report = Engine(project, settings).reconcile()
    assert "codex-untrusted" in {notice.code for notice in report.notices}
    assert "Codex" in report.left_out
