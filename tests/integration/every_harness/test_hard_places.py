"""Projects in all kinds of places: set up, fed, synced and ejected, with every harness in use."""

from __future__ import annotations

import shutil
import unicodedata
from pathlib import Path

import pytest

from agent_bridge import paths
from agent_bridge.config import Settings
from agent_bridge.errors import RefusedError
from agent_bridge.harnesses.claude_places import slug
from agent_bridge.projection import requests, setup
from agent_bridge.projection.engine import Engine
from agent_bridge.projects import Worktrees, load_projects

from .conftest import (
    MOMENT,
    USUAL,
    MakeRepository,
    Tree,
    differing,
    everything,
    git,
    run,
    set_up,
    tree,
    write,
)

SHARED, PRIVATE = "Staging is reset every Monday.", "My desk is by the window."
LONG = "a directory whose name is as long as one may be " * 5

NAMES = (
    "with spaces in it",
    "Käfer und Größe",
    unicodedata.normalize("NFD", "Käfer und Größe"),
    ".hidden a.b..c",
    '-it\'s "quoted" `here`',
    "50% $HOME [a-z] {x} #1; !y ~",
    "船 🚢 سفينة",
    "back\\slash, tab\tand two\nlines",
    f"{LONG[:240]}/{LONG[:200]}",
)


@pytest.mark.parametrize("name", NAMES, ids=range(len(NAMES)))
def test_a_repository_with_any_path(
    repository: MakeRepository, settings: Settings, sealed_home: Path, name: str
) -> None:
    root = repository(USUAL, name=name)
    used_and_left(root, settings, sealed_home)


@pytest.mark.parametrize("name", [NAMES[0], NAMES[1], NAMES[-1]], ids=["spaces", "umlauts", "long"])
def test_a_directory_without_git(settings: Settings, sealed_home: Path, name: str) -> None:
    root = sealed_home / name
    root.mkdir(parents=True)
    write(root, USUAL)
    used_and_left(root, settings, sealed_home, is_git=False)


def test_a_submodule_and_the_repository_around_it(
    repository: MakeRepository, settings: Settings, sealed_home: Path
) -> None:
    library = repository(USUAL, name="library")
    outer = repository(USUAL, name="outer Größe")
    git(outer, "-c", "protocol.file.allow=always", "submodule", "add", "-q", str(library), "lib/the module")
    git(outer, "commit", "-q", "-m", "a module")
    inner = outer / "lib/the module"

    used_and_left(inner, settings, sealed_home)
    shutil.rmtree(inner / ".memory")
    before = tree(inner)
    used_and_left(outer, settings, sealed_home)
    assert differing(before, tree(inner)) == set()


def test_a_worktree_of_a_bare_repository(
    repository: MakeRepository, settings: Settings, sealed_home: Path
) -> None:
    origin = repository(USUAL, name="origin")
    bare = sealed_home / "bare Größe.git"
    git(sealed_home, "clone", "-q", "--bare", str(origin), str(bare))
    with pytest.raises(RefusedError):
        setup.init(setup.describe(bare), settings)
    assert not (bare / ".memory").exists()
    side = sealed_home / "side of it"
    git(bare, "worktree", "add", "-q", "-b", "side", str(side))
    used_and_left(side, settings, sealed_home)


def test_the_command_line_in_the_worst_place(repository: MakeRepository, sealed_home: Path) -> None:
    root = repository(USUAL, name=f"Größe 50% [x].d/{LONG[:240]}")
    below = root / "sub dir"
    below.mkdir()
    before = _outside(tree(root))
    run(below, "init", "--yes")
    run(below, "add", SHARED)
    run(below, "sync", "--to", "all")
    for name in ("AGENTS.md", "CLAUDE.md", ".opencode/memory-bridge.md", ".agents/rules/agent-bridge.md"):
        assert SHARED in (root / name).read_text("utf-8")
    assert SHARED in run(below, "search", "staging")
    run(below, "eject", "--yes")
    assert differing(before, _outside(tree(root))) == set()
    assert load_projects() == []
    assert SHARED in "".join(path.read_text("utf-8") for path in (root / ".memory/entries").glob("*.md"))


def used_and_left(root: Path, settings: Settings, home: Path, *, is_git: bool = True) -> None:
    """Set a project up, feed and sync it, see that everybody has it, and eject: nothing else remains."""
    before, homes = tree(root), tree(home, but=_NOT_THE_HOMES)
    project, engine = set_up(root, settings, asked="all")
    engine.store.add(SHARED, now=MOMENT)
    engine.store.add(PRIVATE, now=MOMENT, private=True)
    everything(project, settings)
    project = setup.describe(root)
    survey = Engine(project, settings).survey()
    targets = [target for target in survey.layout.targets if not target.text]
    assert len(targets) >= 5
    for target in targets:
        assert (target.path, target.path.read_text("utf-8").count(SHARED)) == (target.path, 1)
        assert PRIVATE not in target.path.read_text("utf-8")
    link = paths.claude_home() / "projects" / slug(str(root)) / "memory"
    assert link.resolve() == project.store
    assert (
        PRIVATE in (link / next(fact.path for fact in engine.store.scan().facts if fact.private)).read_text()
    )
    if is_git:
        assert set(_added(root)) - {f".memory/{fact.path}" for fact in engine.store.scan().shared} == {
            ".memory/.gitignore",
            "AGENTS.md",
            "CLAUDE.md",
            "GEMINI.md",
        }
    done = setup.eject(project, settings)
    assert done.refused == []
    assert differing(_outside(before), _outside(tree(root))) == set()
    assert differing(homes, tree(home, but=_NOT_THE_HOMES)) == set()
    bodies = {fact.body.strip() for fact in Engine(project, settings).store.scan().facts}
    assert bodies == {SHARED, PRIVATE}
    if is_git:
        assert all(PRIVATE not in (root / name).read_text("utf-8") for name in _added(root))


_NOT_THE_HOMES = r"^(?!\.(claude|codex|gemini|config|cursor|codeium|kiro|qwen|copilot|factory|junie)\b)"


def _outside(found: Tree) -> Tree:
    """Without Git's own and the memory."""
    return {name: one for name, one in found.items() if not name.startswith((".git/", ".memory"))}


def _added(root: Path) -> list[str]:
    """What `git add -A` would take, by its real name."""
    told = git(root, "-c", "core.quotePath=false", "status", "--porcelain", "-uall", "-z")
    return [line[3:] for line in told.split("\0") if line]


# Worktrees that go


@pytest.mark.parametrize("way", ["git", "rm"])
@pytest.mark.parametrize("worktrees", ["shared", "separate"])
def test_a_worktree_deleted_with_facts_in_it_loses_none(
    repository: MakeRepository, settings: Settings, worktrees: Worktrees, way: str
) -> None:
    root = repository(USUAL, name="main work")
    main, side = root, root.parent / "side Größe"
    project = setup.describe(root, worktrees=worktrees)
    setup.init(project, settings)
    project = requests.request(project, requests.named("all"), settings)
    git(main, "worktree", "add", "-q", "-b", "side", str(side))
    if worktrees == "separate":
        setup.init(setup.describe(side, worktrees="separate"), settings)
    write(
        side,
        {
            ".memory/by hand.md": "By hand 1.\n",
            ".memory/entries/mine.md": "---\nprivate: true\n---\n\nMine 2.\n",
            ".memory/committed.md": "Committed 3.\n",
            ".memory/Käfer/🚢.md": "Deep down 4.\n",
        },
    )
    git(side, "add", "-f", ".memory/committed.md")
    git(side, "commit", "-q", "-m", "a fact")
    passes(settings)
    if way == "git":
        git(main, "worktree", "remove", "--force", str(side))
    else:
        shutil.rmtree(side)
        git(main, "worktree", "prune", "--expire=now")
    passes(settings)
    facts = Engine(project, settings).store.scan()
    held = {fact.body.strip(): fact.private for fact in facts.facts}
    assert {"By hand 1.": False, "Mine 2.": True, "Deep down 4.": False}.items() <= held.items()
    assert "Committed 3." in git(main, "show", "side:.memory/committed.md")
    assert "Mine 2." not in git(main, "add", "-An") + (main / "AGENTS.md").read_text("utf-8")
    assert "By hand 1." in (main / "AGENTS.md").read_text("utf-8")


def passes(settings: Settings) -> None:
    """What the service does for all projects whose directory is there."""
    for one in load_projects():
        if one.root.is_dir():
            Engine(one, settings).reconcile()
