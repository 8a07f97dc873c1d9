"""OpenCode in a project: what is set and written, that it stays the same, and that all of it comes back."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from agent_bridge.config import Settings
from agent_bridge.projection import preview, requests, setup
from agent_bridge.projection.engine import Engine

from .conftest import CLAUDE, git

Tree = Callable[[Path], dict[str, tuple[str, int, bytes]]]
FACT = "The deploy key lives in the vault."
SERVER = {"agent-bridge": {"type": "local", "command": ["agent-bridge-mcp"], "enabled": True}}
RULES, ROOT_FILE, FOLDER_FILE = ".claude/rules/agent-bridge.md", "opencode.json", ".opencode/opencode.json"


@pytest.fixture
def claude_only(repository: Path) -> Path:
    """The repository with CLAUDE.md alone."""
    git(repository, "rm", "-q", "AGENTS.md")
    git(repository, "commit", "-qm", "less")
    return repository


@pytest.fixture
def used(sealed_home: Path) -> Path:
    place = sealed_home / ".config" / "opencode"
    place.mkdir(parents=True)
    return place


def set_up(root: Path, settings: Settings) -> Engine:
    found = setup.describe(root)
    setup.init(found, settings)
    engine = Engine(found, settings)
    engine.store.create()
    if FACT not in str([fact.body for fact in engine.store.scan().facts]):
        engine.store.add(FACT)
    engine.reconcile()
    return engine


def holders(root: Path) -> set[str]:
    """The files outside of the store that hold the fact."""
    found = (path for path in root.rglob("*") if path.is_file() and ".git" not in path.parts)
    return {
        path.relative_to(root).as_posix()
        for path in found
        if FACT.encode() in path.read_bytes() and ".memory" not in path.parts
    }


def test_claude_md_is_listed_and_stays_without_a_block(
    used: Path, claude_only: Path, settings: Settings
) -> None:
    engine = set_up(claude_only, settings)
    set_by_us = {"instructions": ["CLAUDE.md"], "mcp": SERVER}
    assert json.loads((claude_only / ROOT_FILE).read_bytes()) == set_by_us
    assert (claude_only / "CLAUDE.md").read_bytes() == CLAUDE
    assert holders(claude_only) == {"AGENTS.md", RULES}
    assert git(claude_only, "status", "--porcelain", "--", ":!.memory") == ""
    assert not [one for one in engine.reconcile().notices if one.code.startswith("opencode")]


def test_twenty_passes_and_a_second_init_change_nothing(
    used: Path, claude_only: Path, settings: Settings, tree: Tree
) -> None:
    set_up(claude_only, settings)
    before = tree(claude_only)
    for _ in range(20):
        assert Engine(setup.describe(claude_only), settings).reconcile().wrote == ()
    setup.init(setup.describe(claude_only), settings)
    assert preview.preview_project(setup.describe(claude_only), settings).empty
    after = tree(claude_only)
    assert {name: found for name, found in after.items() if not name.startswith(".git/")} == {
        name: found for name, found in before.items() if not name.startswith(".git/")
    }


def test_the_plan_shows_the_setting_before_it_is_made(
    used: Path, claude_only: Path, settings: Settings
) -> None:
    plan = preview.preview_project(setup.describe(claude_only), settings)
    [step] = [step for step in plan.steps if step.path == claude_only / ROOT_FILE]
    assert '"CLAUDE.md"' in step.diff
    assert "hide" in step.text
    assert "/opencode.json" in "".join(step.diff for step in plan.steps if step.what == "lines")
    assert not (claude_only / ROOT_FILE).exists()


def test_first_used_after_init_it_is_told_to_run_it_again(
    claude_only: Path, settings: Settings, sealed_home: Path
) -> None:
    set_up(claude_only, settings)
    assert holders(claude_only) == {"AGENTS.md", "CLAUDE.md"}
    (sealed_home / ".config" / "opencode").mkdir(parents=True)
    engine = Engine(setup.describe(claude_only), settings)
    told = [one.code for one in engine.reconcile().notices]
    assert "opencode-init-again" in told
    assert holders(claude_only) == {"AGENTS.md", RULES}
    assert (claude_only / "CLAUDE.md").read_bytes() == CLAUDE
    set_up(claude_only, settings)
    told = [one.code for one in engine.reconcile().notices]
    assert "opencode-init-again" not in told
    assert holders(claude_only) == {"AGENTS.md", RULES}


@pytest.mark.parametrize(
    "theirs", ["", '{"username": "me"}', '// mine\n{\n  "instructions": ["docs/*.md"],\n}\n']
)
def test_eject_brings_every_byte_back(
    used: Path, claude_only: Path, settings: Settings, tree: Tree, theirs: str
) -> None:
    if theirs:
        (claude_only / ROOT_FILE).write_text(theirs, "utf-8")
    before = tree(claude_only)
    engine = set_up(claude_only, settings)
    assert engine.project is not None
    requests.request(engine.project, requests.named("opencode"), settings)
    Engine(setup.describe(claude_only), settings).reconcile()
    assert (claude_only / ".opencode/memory-bridge.md").exists()
    done = setup.eject(setup.describe(claude_only), settings)
    assert done.refused == []
    after = tree(claude_only)
    ours = (".git/", ".memory")
    assert {name: found for name, found in after.items() if not name.startswith(ours)} == {
        name: found for name, found in before.items() if not name.startswith(ours)
    }


def test_its_own_file_comes_and_goes_with_the_request(
    used: Path, repository: Path, settings: Settings
) -> None:
    engine = set_up(repository, settings)
    assert engine.project is not None
    asked = requests.request(engine.project, requests.named("opencode"), settings)
    told = Engine(asked, settings).reconcile().notices
    assert "opencode-double" in {one.code for one in told}
    assert holders(repository) == {"AGENTS.md", "CLAUDE.md", ".opencode/memory-bridge.md"}
    listed = json.loads((repository / FOLDER_FILE).read_bytes())
    assert listed == {"instructions": [".opencode/memory-bridge.md"]}
    status = git(repository, "status", "--porcelain", "-uall", "--", ":!.memory")
    assert {line[3:] for line in status.splitlines()} == {"AGENTS.md", "CLAUDE.md"}
    taken = requests.withdraw(asked, requests.named("opencode"), settings)
    told = Engine(taken, settings).reconcile().notices
    assert "opencode-double" not in {one.code for one in told}
    assert holders(repository) == {"AGENTS.md", "CLAUDE.md"}
    assert not (repository / ".opencode").exists()


def test_a_worktree_has_its_own_setting(used: Path, claude_only: Path, settings: Settings) -> None:
    other = claude_only.parent / "other"
    git(claude_only, "worktree", "add", "-q", str(other))
    set_up(claude_only, settings)
    set_by_us = {"instructions": ["CLAUDE.md"], "mcp": SERVER}
    assert json.loads((other / ROOT_FILE).read_bytes()) == set_by_us
    assert holders(other) == {"AGENTS.md", RULES}
    assert (other / "CLAUDE.md").read_bytes() == CLAUDE
    assert git(other, "status", "--porcelain") == ""


def test_a_private_fact_is_in_no_file_of_opencodes(used: Path, claude_only: Path, settings: Settings) -> None:
    engine = set_up(claude_only, settings)
    private = "My desk is the one by the window."
    engine.store.unshare(engine.store.add(private).fact.id)
    assert engine.project is not None
    requests.request(engine.project, requests.named("opencode"), settings)
    Engine(setup.describe(claude_only), settings).reconcile()
    assert FACT in (claude_only / ".opencode/memory-bridge.md").read_text("utf-8")
    for path in ("AGENTS.md", ".opencode/memory-bridge.md", RULES):
        assert private not in (claude_only / path).read_text("utf-8")


def test_settings_that_cant_be_read_stop_nothing_and_are_told(
    used: Path, claude_only: Path, settings: Settings
) -> None:
    (claude_only / ROOT_FILE).write_text("{", "utf-8")
    engine = set_up(claude_only, settings)
    assert (claude_only / ROOT_FILE).read_text("utf-8") == "{"
    assert json.loads((claude_only / FOLDER_FILE).read_bytes()) == {"instructions": ["CLAUDE.md"]}
    assert "opencode-config" in {one.code for one in engine.reconcile().notices}


def test_the_switches_that_init_saw_count(
    used: Path, claude_only: Path, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENCODE_DISABLE_CLAUDE_CODE", "1")
    project = setup.describe(claude_only)
    setup.init(project, settings)
    monkeypatch.delenv("OPENCODE_DISABLE_CLAUDE_CODE")
    engine = Engine(project, settings)
    engine.store.add(FACT)
    engine.reconcile()
    assert json.loads((claude_only / ROOT_FILE).read_bytes()) == {"mcp": SERVER}
    assert holders(claude_only) == {"AGENTS.md", "CLAUDE.md"}


def test_the_users_instruction_comes_with_the_first_project_and_goes_with_the_last(
    used: Path, repository: Path, settings: Settings, sealed_home: Path
) -> None:
    imported = sealed_home / ".codex" / "AGENTS.md"
    imported.parent.mkdir()
    imported.write_text("Mine.\n", "utf-8")
    (sealed_home / ".claude" / "CLAUDE.md").write_text("@~/.codex/AGENTS.md\n", "utf-8")
    place = used / "opencode.jsonc"
    place.write_text("// mine\n{}\n", "utf-8")
    assert place in {
        step.path for step in preview.preview_project(setup.describe(repository), settings).steps
    }
    set_up(repository, settings)
    assert str(imported) in place.read_text("utf-8")
    again = preview.preview_project(setup.describe(repository), settings)
    assert place not in {step.path for step in again.steps}
    setup.eject(setup.describe(repository), settings)
    assert place.read_text("utf-8") == "// mine\n{}\n"
