"""What the carriers for OpenCode rely on, shown with the real program and without ours."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from agent_bridge.harnesses.base import Site
from agent_bridge.harnesses.observe import observe_site
from agent_bridge.harnesses.opencode import OpenCode as Harness
from agent_bridge.projects import Project, id_for
from clients.rig.opencode import OpenCode, OpenCodeServer

HARNESS = Harness()
BATCH = 8

PROJECTS: dict[str, tuple[dict[str, str], list[str], list[str]]] = {
    # files, what a session in the root shows, what one in sub/deep shows
    "the first name counts": (
        {"AGENTS.md": "a", "CLAUDE.md": "c", "CONTEXT.md": "x"},
        ["AGENTS.md"],
        ["AGENTS.md"],
    ),
    "CLAUDE.md before CONTEXT.md": ({"CLAUDE.md": "c", "CONTEXT.md": "x"}, ["CLAUDE.md"], ["CLAUDE.md"]),
    "an AGENTS.md hides every CLAUDE.md on the way": (
        {"AGENTS.md": "a", "sub/CLAUDE.md": "c"},
        ["AGENTS.md"],
        ["AGENTS.md"],
    ),
    "an AGENTS.md below hides the root's CLAUDE.md": (
        {"CLAUDE.md": "c", "sub/AGENTS.md": "a"},
        ["CLAUDE.md"],
        ["sub/AGENTS.md"],
    ),
    "nor the one that is listed": (
        {"CLAUDE.md": "c", "sub/AGENTS.md": "a", "opencode.json": "CLAUDE.md"},
        ["CLAUDE.md"],
        ["sub/AGENTS.md", "CLAUDE.md"],
    ),
    "a listed name is looked for upward": (
        {"AGENTS.md": "a", "CLAUDE.md": "c", "sub/CLAUDE.md": "d", "opencode.json": "CLAUDE.md"},
        ["AGENTS.md", "CLAUDE.md"],
        ["AGENTS.md", "sub/CLAUDE.md", "CLAUDE.md"],
    ),
    "a path that is listed and read is shown once": (
        {"CLAUDE.md": "c", "opencode.json": "CLAUDE.md", ".opencode/opencode.json": "./CLAUDE.md"},
        ["CLAUDE.md"],
        ["CLAUDE.md"],
    ),
    "all settings' lists count": (
        {
            "a.md": "a",
            "b.md": "b",
            "c.md": "c",
            "d.md": "d",
            "opencode.json": "a.md",
            "opencode.jsonc": "b.md",
            ".opencode/opencode.json": "c.md",
            ".opencode/opencode.jsonc": "d.md",
        },
        ["a.md", "b.md", "c.md", "d.md"],
        ["a.md", "b.md", "c.md", "d.md"],
    ),
    "a file in the folder is read by an instruction": (
        {".opencode/memory-bridge.md": "m", ".opencode/opencode.json": ".opencode/memory-bridge.md"},
        [".opencode/memory-bridge.md"],
        [".opencode/memory-bridge.md"],
    ),
    "and by nothing else": ({".opencode/memory-bridge.md": "m", ".opencode/AGENTS.md": "n"}, [], []),
    "a link's path is another path": (
        {"AGENTS.md": "a", "CLAUDE.md": "-> AGENTS.md", "opencode.json": "CLAUDE.md"},
        ["AGENTS.md", "CLAUDE.md"],
        ["AGENTS.md", "CLAUDE.md"],
    ),
    "a link that leads nowhere hides nothing": (
        {"AGENTS.md": "-> gone", "CLAUDE.md": "c"},
        ["CLAUDE.md"],
        ["CLAUDE.md"],
    ),
    "settings on the way count": (
        {
            "AGENTS.md": "a",
            "b.md": "b",
            "c.md": "c",
            "sub/b.md": "d",
            "sub/opencode.json": "b.md",
            "sub/.opencode/opencode.json": "c.md",
        },
        ["AGENTS.md"],
        ["AGENTS.md", "sub/b.md", "b.md", "c.md"],
    ),
    "globs": (
        {
            "AGENTS.md": "a",
            "b.md": "b",
            ".d.md": "d",
            "docs/x/e.md": "e",
            ".f/g.md": "g",
            "opencode.json": "{b,z}.md",
            "opencode.jsonc": "[.]d.md",
            ".opencode/opencode.json": "**/[eg].md",
        },
        ["AGENTS.md", "b.md", ".d.md", "docs/x/e.md", ".f/g.md"],
        ["AGENTS.md", "b.md", ".d.md", "docs/x/e.md", ".f/g.md"],
    ),
    "what Claude and Codex read besides": (
        {
            ".claude/CLAUDE.md": "c",
            "CLAUDE.local.md": "l",
            ".claude/rules/x.md": "r",
            "AGENTS.override.md": "o",
        },
        [],
        [],
    ),
}


@pytest.fixture
def base(sealed_home: Path) -> Path:
    return sealed_home.parent / "projects"


@pytest.mark.parametrize("first", range(0, len(PROJECTS), BATCH))
def test_which_files_of_a_project_a_session_shows(opencode: OpenCode, base: Path, first: int) -> None:
    names = list(PROJECTS)[first : first + BATCH]
    for name in names:
        make(base / name, PROJECTS[name][0])
    shown: dict[str, tuple[list[str], list[str]]] = {}
    with opencode.serve() as server:
        for name in names:
            shown[name] = (paths(server, base / name, "."), paths(server, base / name, "sub/deep"))
    if "globs" in shown:  # what a glob means comes in no certain order
        root, below = shown["globs"]
        shown["globs"] = (
            root[:3] + sorted(root[3:], reverse=True),
            below[:3] + sorted(below[3:], reverse=True),
        )
    assert shown == {name: PROJECTS[name][1:] for name in names}


def test_we_tell_the_same_files_in_the_same_order(sealed_home: Path, base: Path) -> None:
    """`explain` and the plugin go by this; it is held against the table that the program was held against."""
    (sealed_home / ".config/opencode").mkdir(parents=True)
    told: dict[str, tuple[list[str], list[str]]] = {}
    for name, (files, _, _) in PROJECTS.items():
        root = base / name
        make(root, files)
        site = observe_site(Project(id_for(root), root), root)
        told[name] = (told_paths(site, "."), told_paths(site, "sub/deep"))
    assert told == {name: (root, below) for name, (_, root, below) in PROJECTS.items()}


def test_a_directory_named_by_a_variable_has_the_users_file(opencode: OpenCode, base: Path) -> None:
    elsewhere = opencode.home / "elsewhere"
    for place in (elsewhere, opencode.home / ".config/opencode"):
        place.mkdir(parents=True)
        (place / "AGENTS.md").write_text(f"From {place.name}.\n", "utf-8")
    (elsewhere / "opencode.json").write_text('{"instructions": ["a.md"]}', "utf-8")
    make(base / "p", {"a.md": "a"})
    moved = OpenCode(opencode.program, opencode.home, {"OPENCODE_CONFIG_DIR": str(elsewhere)})
    with moved.serve() as server:
        assert server.prompt(base / "p").paths == (elsewhere / "AGENTS.md", base / "p" / "a.md")


def test_the_users_files_are_one_or_the_other(opencode: OpenCode, base: Path) -> None:
    home = opencode.home
    own, theirs = home / ".config/opencode/AGENTS.md", home / ".claude/CLAUDE.md"
    make(base / "p", {"AGENTS.md": "@../other.md"})
    (base / "other.md").write_text("Imported.\n", "utf-8")
    theirs.parent.mkdir()
    theirs.write_text("For all.\n", "utf-8")
    with opencode.serve() as server:
        assert server.prompt(base / "p").paths == (theirs, base / "p" / "AGENTS.md")
        own.parent.mkdir(exist_ok=True, parents=True)
        own.write_text("Instead.\n", "utf-8")
        prompt = server.prompt(base / "p")
        assert prompt.paths == (own, base / "p" / "AGENTS.md")
        assert prompt.count("Imported.") == 0


def test_outside_of_git_what_stands_above_counts(opencode: OpenCode, base: Path) -> None:
    make(base / "p", {"CLAUDE.md": "c"}, git=False)
    with opencode.serve() as server:
        assert server.prompt(base / "p").paths == (base / "p" / "CLAUDE.md",)
        (base / "AGENTS.md").write_text("Above.\n", "utf-8")
        assert server.prompt(base / "p").paths == (base / "AGENTS.md",)


def make(root: Path, files: dict[str, str], *, git: bool = True) -> None:
    """A project; the text of a settings file is what its `instructions` list."""
    (root / "sub" / "deep").mkdir(parents=True)
    if git:
        subprocess.run(["git", "init", "-q", str(root)], check=True)
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if text.startswith("-> "):
            path.symlink_to(text[3:])
        elif path.suffix in (".json", ".jsonc"):
            path.write_text(f"// settings\n{json.dumps({'instructions': [text]})}\n", "utf-8")
        else:
            path.write_text(f"Text {text}.\n", "utf-8")


def told_paths(site: Site, place: str) -> list[str]:
    """What we say that a session shows, as names below the project."""
    found = HARNESS.reads(site, (site.checkout / place).resolve())
    return [read.path.relative_to(site.checkout).as_posix() for read in found if not read.hidden]


def paths(server: OpenCodeServer, root: Path, place: str) -> list[str]:
    """What a session shows, as names below the project."""
    return [path.relative_to(root).as_posix() for path in server.prompt(root / place).paths]
