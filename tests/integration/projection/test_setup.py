"""`init` and `eject` on a real repository: what changes, and that everything comes back."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from agent_bridge import projects
from agent_bridge.config import Settings
from agent_bridge.errors import AgentBridgeError, RefusedError
from agent_bridge.harnesses.claude_places import slug
from agent_bridge.projection import preview, setup
from agent_bridge.projection.engine import Engine, global_engine
from agent_bridge.projection.presence import EjectedError
from agent_bridge.projects import Project

from .conftest import AGENTS, CLAUDE, git

Tree = Callable[[Path], dict[str, tuple[str, int, bytes]]]


def _apart_from_ours(tree: dict[str, tuple[str, int, bytes]]) -> dict[str, tuple[str, int, bytes]]:
    ours = ("work/.memory", ".local/state/agent-bridge", ".cache/agent-bridge", ".config/agent-bridge")
    parents = {".local", ".local/state", ".cache", ".config", ".local/share"}
    return {name: found for name, found in tree.items() if not name.startswith(ours) and name not in parents}


def test_a_fact_is_in_both_files_and_its_removal_takes_it_out(
    project: Project, engine: Engine, repository: Path
) -> None:
    fact = engine.store.add("The deploy key lives in the vault.").fact
    engine.reconcile()
    for name, text in (("AGENTS.md", AGENTS), ("CLAUDE.md", CLAUDE)):
        data = (repository / name).read_bytes()
        assert data.startswith(text)
        assert data.count(b"The deploy key lives in the vault.") == 1
    engine.store.remove(fact.id)
    engine.reconcile()
    assert (repository / "AGENTS.md").read_bytes() == AGENTS
    assert (repository / "CLAUDE.md").read_bytes() == CLAUDE


def test_a_second_pass_writes_nothing(engine: Engine, repository: Path) -> None:
    engine.store.add("Ports are listed in ports.md.")
    assert engine.reconcile().wrote
    before = (repository / "AGENTS.md").stat()
    report = engine.reconcile()
    after = (repository / "AGENTS.md").stat()
    assert report.wrote == ()
    assert (before.st_ino, before.st_mtime_ns) == (after.st_ino, after.st_mtime_ns)


def test_claude_gets_the_link_and_the_setting(project: Project, sealed_home: Path, repository: Path) -> None:
    link = sealed_home / ".claude/projects" / slug(str(repository)) / "memory"
    assert link.readlink() == repository / ".memory"
    settings = json.loads((repository / ".claude/settings.local.json").read_bytes())
    assert settings["autoMemoryDirectory"] == str(repository / ".memory")
    assert ".claude" not in git(repository, "status", "--porcelain")


def test_eject_restores_every_byte(
    repository: Path, sealed_home: Path, settings: Settings, tree: Tree
) -> None:
    native = sealed_home / ".claude/projects" / slug(str(repository)) / "memory"
    native.mkdir(parents=True)
    (native / "MEMORY.md").write_text("- [Style](style.md) — tabs\n")
    (native / "style.md").write_text("---\nname: style\nmetadata:\n  type: feedback\n---\n\nTabs, always.\n")
    (native / "style.md").chmod(0o640)
    before = _apart_from_ours(tree(sealed_home))
    found = setup.describe(repository)
    setup.init(found, settings)
    assert native.is_symlink()
    assert b"Tabs, always." in (repository / "AGENTS.md").read_bytes()
    done = setup.eject(found, settings)
    assert done.refused == []
    assert _apart_from_ours(tree(sealed_home)) == before
    assert projects.load_projects() == []
    assert (repository / ".memory/style.md").exists()


def test_eject_brings_back_what_was_learnt(repository: Path, sealed_home: Path, settings: Settings) -> None:
    native = sealed_home / ".claude/projects" / slug(str(repository)) / "memory"
    native.mkdir(parents=True)
    (native / "style.md").write_text("---\nname: style\nmetadata:\n  type: feedback\n---\n\nTabs, always.\n")
    found = setup.describe(repository)
    setup.init(found, settings)
    learnt = Engine(found, settings).store.add("Builds need Node 20.").fact
    setup.eject(found, settings)
    assert not native.is_symlink()
    assert (native / "style.md").exists()
    assert b"Builds need Node 20." in (native / learnt.path).read_bytes()
    assert f"]({learnt.path})" in (native / "MEMORY.md").read_text()


def test_user_text_written_since_survives_eject(
    project: Project, engine: Engine, repository: Path, settings: Settings
) -> None:
    engine.store.add("Something to project.")
    engine.reconcile()
    agents = repository / "AGENTS.md"
    agents.write_bytes(agents.read_bytes() + b"\nMy own last line.\n")
    setup.eject(project, settings)
    assert agents.read_bytes() == AGENTS + b"\nMy own last line.\n"


def test_without_instruction_files_agents_md_is_made_and_kept_out_of_git(
    sealed_home: Path, settings: Settings
) -> None:
    root = sealed_home / "bare"
    root.mkdir()
    git(root, "init", "-q")
    found = setup.describe(root)
    setup.init(found, settings)
    engine = Engine(found, settings)
    engine.store.add("Only fact.")
    engine.reconcile()
    assert b"Only fact." in (root / "AGENTS.md").read_bytes()
    assert not (root / "CLAUDE.md").exists()
    assert "AGENTS.md" not in git(root, "status", "--porcelain")
    setup.eject(found, settings)
    assert not (root / "AGENTS.md").exists()


def test_private_facts_stand_in_no_file_that_git_would_add(engine: Engine, repository: Path) -> None:
    engine.store.add("The open fact.")
    secret = engine.store.add("My own salary is low.", private=True).fact
    (repository / ".memory/unjudged.md").write_text("Written while nobody watched.\n")
    git(repository, "add", "-A")
    staged = git(repository, "ls-files", ".memory")
    assert "unjudged" not in staged
    report = engine.reconcile()
    git(repository, "add", "-A")
    staged = git(repository, "ls-files", ".memory")
    blobs = git(repository, "grep", "--cached", "-h", "-e", ".", "--", ".")
    assert report.private == 1
    assert "salary" not in blobs
    assert "The open fact." in blobs
    assert secret.path not in staged
    assert "unjudged.md" in staged
    assert "salary" in (repository / ".memory/MEMORY.md").read_text()


def test_the_preview_changes_nothing(
    repository: Path, sealed_home: Path, settings: Settings, tree: Tree
) -> None:
    before = tree(sealed_home)
    found = preview.preview_project(setup.describe(repository), settings)
    assert tree(sealed_home) == before
    assert {step.what for step in found.steps} >= {"store", "key", "link", "lines", "block"}
    setup.init(found.project, settings)
    shown = {step.path.name: step.diff for step in found.steps if step.what == "lines"}
    for name in ("exclude", "attributes"):
        added = [line[1:] for line in shown[name].splitlines() if line[0] == "+"][1:]
        assert added == (repository / ".git/info" / name).read_text().splitlines()[-len(added) :]


def test_the_preview_says_how_many_memories_wait_for_which_project(
    repository: Path, sealed_home: Path, settings: Settings
) -> None:
    notes = sealed_home / ".codex/memories/extensions/ad_hoc/notes"
    notes.mkdir(parents=True)
    other, third = sealed_home / "other", sealed_home / "third"
    for number, (place, text) in enumerate(
        ((other, "One."), (other, "Two."), (third, "Three."), (repository, "Ours."))
    ):
        (notes / f"2026-01-0{number + 1}T03-04-05-x.md").write_text(f"cwd: {place}\n\n{text}\n")
    found = preview.preview_project(setup.describe(repository), settings)
    assert found.imports == {"project": 1, "global": 0, "held": 3}
    assert found.held == {str(other): 2, str(third): 1}


def test_text_written_into_a_block_becomes_a_candidate(engine: Engine, repository: Path) -> None:
    engine.store.add("Start\n\nA fact to start with.")
    engine.reconcile()
    agents = repository / "AGENTS.md"
    text = agents.read_text().replace(
        "A fact to start with.\n", "A fact to start with.\n\nNever deploy on Fridays.\n"
    )
    agents.write_text(text)
    report = engine.reconcile()
    assert report.candidates == 1
    assert "Fridays" not in agents.read_text()


def test_the_home_directory_is_no_project(sealed_home: Path) -> None:
    with pytest.raises(RefusedError, match="home directory"):
        setup.describe(sealed_home)


def test_two_files_with_one_text_are_said_once(engine: Engine, repository: Path) -> None:
    for name in ("one.md", "two.md"):
        (repository / ".memory" / name).write_text(f"# {name}\n\nThe cache is cleared at noon.\n")
    (repository / ".memory/three.md").write_text("# one.md\n\nThe cache is  cleared at noon.\n")
    engine.reconcile()
    assert (repository / "AGENTS.md").read_text().count("# one.md [") == 1


def test_an_engine_that_missed_the_eject_writes_nothing_back(
    project: Project, engine: Engine, repository: Path, settings: Settings
) -> None:
    engine.store.add("Start\n\nA fact that was projected.")
    engine.reconcile()
    setup.eject(project, settings)
    with pytest.raises(EjectedError):
        engine.reconcile(frozenset({repository / ".memory/entries"}))
    assert (repository / "AGENTS.md").read_bytes() == AGENTS


def test_the_preview_shares_no_memory_that_is_for_all_projects(
    repository: Path, sealed_home: Path, settings: Settings
) -> None:
    (sealed_home / "mine").mkdir()
    (sealed_home / "mine/a.md").write_text("Answer in short sentences.\n")
    (sealed_home / ".claude/settings.json").write_text(json.dumps({"autoMemoryDirectory": "~/mine"}))
    found = preview.preview_project(setup.describe(repository), settings)
    assert found.becomes_shared == ()
    (adopting,) = [step for step in found.steps if step.what == "adopt"]
    assert "for all projects" in adopting.text


def test_an_eject_that_must_refuse_undoes_nothing(
    project: Project, engine: Engine, repository: Path, settings: Settings, sealed_home: Path
) -> None:
    engine.store.add("Start\n\nA fact that was projected.")
    engine.reconcile()
    agents = repository / "AGENTS.md"
    agents.write_bytes(agents.read_bytes().replace(b"<!-- agent-bridge:memory:end -->\n", b""))
    done = setup.eject(project, settings)
    assert [one.path for one in done.refused] == [str(agents)]
    assert b"A fact that was projected." in (repository / "CLAUDE.md").read_bytes()
    assert (sealed_home / ".claude/projects" / slug(str(repository)) / "memory").is_symlink()
    agents.write_bytes(AGENTS)
    assert setup.eject(project, settings).refused == []
    assert (repository / "CLAUDE.md").read_bytes() == CLAUDE


def test_memories_of_all_projects_stay_the_user_s(
    repository: Path, sealed_home: Path, settings: Settings
) -> None:
    mine = sealed_home / "mine"
    mine.mkdir()
    (mine / "habit.md").write_text("I work at night.\n")
    (sealed_home / ".claude/settings.json").write_text(json.dumps({"autoMemoryDirectory": str(mine)}))
    found = setup.describe(repository)
    setup.init(found, settings)
    assert Engine(found, settings).store.scan().facts == ()
    (fact,) = global_engine(settings).store.scan().facts
    assert fact.body == "I work at night."


def test_settings_of_the_user_s_own_stay_out_of_git(repository: Path, settings: Settings) -> None:
    local = repository / ".claude/settings.local.json"
    local.parent.mkdir()
    local.write_text('{"model": "x"}\n')
    found = setup.describe(repository)
    setup.init(found, settings)
    assert "settings.local.json" not in git(repository, "status", "--porcelain", "-uall")
    setup.eject(found, settings)
    assert local.read_text() == '{"model": "x"}\n'
    assert "settings.local.json" in git(repository, "status", "--porcelain", "-uall")


def test_a_bare_repository_is_no_project(sealed_home: Path) -> None:
    bare = sealed_home / "bare.git"
    git(sealed_home, "init", "-q", "--bare", str(bare))
    with pytest.raises(RefusedError, match="can't be made here"):
        setup.describe(bare)


def test_worktrees_of_a_bare_repository_let_in_nothing_of_each_other_s(
    repository: Path, sealed_home: Path, settings: Settings
) -> None:
    bare = sealed_home / "bare.git"
    git(sealed_home, "clone", "-q", "--bare", str(repository), str(bare))
    engines = []
    for name in ("one", "two"):
        git(bare, "worktree", "add", "-q", "-b", name, str(sealed_home / name))
        found = setup.describe(sealed_home / name)
        setup.init(found, settings)
        engines.append(Engine(found, settings))
    one, two = engines
    (sealed_home / "one/.memory/role.md").write_text("---\nprivate: true\n---\n\nMine alone.\n")
    (sealed_home / "two/.memory/role.md").write_text("For everybody.\n")
    for engine in (one, two, one):
        engine.reconcile()
    exclude = (bare / "info/exclude").read_bytes()
    two.reconcile()
    assert (bare / "info/exclude").read_bytes() == exclude
    staged = []
    for name in ("one", "two"):
        git(sealed_home / name, "add", "-A")
        staged.append(git(sealed_home / name, "ls-files", ".memory/role.md"))
    assert staged == ["", ".memory/role.md\n"]


def test_an_unreadable_ledger_stops_everything(project: Project, engine: Engine, repository: Path) -> None:
    engine.reconcile()
    (project.state / "ledger.json").write_text("[" * 100_000)
    engine.store.add("Start\n\nA fact that must wait.")
    with pytest.raises(AgentBridgeError, match="ledger"):
        engine.reconcile()
    assert (repository / "AGENTS.md").read_bytes() == AGENTS


def test_a_home_kept_in_git_takes_no_private_text_of_ours(
    engine: Engine, sealed_home: Path, settings: Settings
) -> None:
    git(sealed_home, "init", "-q")
    (sealed_home / ".memory").mkdir()
    user = global_engine(settings)
    user.store.add("My own salary is low.", private=True)
    user.store.add("I like tea.")
    user.reconcile()
    engine.store.add("My project salary is lower.", private=True)
    engine.reconcile()
    git(sealed_home, "add", "-A", ".local")
    staged = git(sealed_home, "ls-files", ".local")
    assert "i-like-tea" in staged
    assert "salary" not in staged
    assert "state/agent-bridge" not in staged
    assert "salary" not in git(sealed_home, "grep", "--cached", "-h", "-e", ".", "--", ".local")


def test_an_upper_case_ending_is_not_addable(engine: Engine, repository: Path) -> None:
    (repository / ".memory/NOTE.MD").write_text("Unjudged.\n")
    engine.reconcile()
    git(repository, "add", "-A")
    assert "NOTE" not in git(repository, "ls-files")


def test_the_plan_says_what_a_new_file_would_hide_for_others(repository: Path, settings: Settings) -> None:
    git(repository, "rm", "-q", "AGENTS.md")
    git(repository, "commit", "-qm", "one file")
    store = repository / ".memory"
    store.mkdir()
    (store / "one.md").write_text("Staging is reset every Monday.\n")
    would = preview.preview_project(setup.describe(repository), settings)
    told = {step.path.name: step.text for step in would.steps if step.what == "block"}
    assert "`git add -f AGENTS.md` shares it" in told["AGENTS.md"]
    assert "hide CLAUDE.md from OpenCode" in told["AGENTS.md"]
    git(repository, "rm", "-q", "CLAUDE.md")
    would = preview.preview_project(setup.describe(repository), settings)
    told = {step.path.name: step.text for step in would.steps if step.what == "block"}
    assert "`git add -f AGENTS.md` shares it" in told["AGENTS.md"]
    assert "hide" not in told["AGENTS.md"]
