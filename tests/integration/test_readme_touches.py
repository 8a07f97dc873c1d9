"""The README's table of touched files against what really happens: none is missing, none is made up."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import pytest

import readme
from agent_bridge import paths
from agent_bridge.config import load_settings
from agent_bridge.harnesses.table import ROWS as TABLE
from agent_bridge.memory.search import Search
from agent_bridge.memory.store import Store
from agent_bridge.projection import setup
from agent_bridge.projection.engine import Engine, global_engine
from agent_bridge.projects import Delivery

_ELSEWHERE = {
    "~/.config/agent-bridge/",  # never written
    "$XDG_RUNTIME_DIR/agent-bridge/",  # by the service alone
    "~/.config/systemd/user/agent-bridge.service",  # by `service install` alone
    "~/Library/LaunchAgents/dev.agent-bridge.plist",
    ".opencode/plugins/agent-bridge.js",  # by `opencode install-plugin` alone
    ".opencode/package-lock.json",
    "~/.config/opencode/plugins/agent-bridge.js",
    "~/.config/opencode/package-lock.json",
    "~/.config/opencode/skills/agent-bridge",  # where Claude Code, whose copy serves it, isn't used
    ".aiassistant/rules/agent-bridge.md",  # by `sync --to` alone
}
ROWS = readme.first_codes("touched")
_HOMES = {f"{home}/keep": "" for row in TABLE for home in row.homes[:1]}
_FIRST_FOR_ZED = (".rules", ".cursorrules", ".windsurfrules", ".clinerules", "AGENT.md")


@dataclass(frozen=True)
class Case:
    """What a project and a home hold before `init`; paths are relative to each."""

    name: str
    project: dict[str, str] = field(default_factory=dict)
    home: dict[str, str] = field(default_factory=dict)
    links: dict[str, str] = field(default_factory=dict)
    delivery: Delivery = "blocks"


CASES = (
    Case("nothing"),
    Case("both files", {"AGENTS.md": "Tabs.\n", "CLAUDE.md": "Brief.\n"}),
    Case("an override", {"AGENTS.md": "Tabs.\n", "AGENTS.override.md": "Spaces.\n"}),
    Case("claude-md in its directory", {"AGENTS.md": "Tabs.\n", ".claude/CLAUDE.md": "Brief.\n"}),
    Case("no rules possible", {"CLAUDE.local.md": "Brief.\n", ".claude/rules": "a file\n"}),
    Case("Gemini CLI", {"AGENTS.md": "Tabs.\n"}, {".gemini/keep": ""}),
    Case("Antigravity", {"AGENTS.md/keep.md": "A directory.\n"}, {".gemini/antigravity/keep": ""}),
    Case(
        "OpenCode, and what would be hidden from it", {"CLAUDE.md": "Brief.\n"}, {".config/opencode/keep": ""}
    ),
    Case("OpenCode's own file", {"AGENTS.md/keep.md": "A directory.\n"}, {".config/opencode/keep": ""}),
    Case(
        "OpenCode, its folder's settings taken",
        {"CONTEXT.md": "Brief.\n", ".opencode/opencode.json": "{}\n"},
        {".config/opencode/AGENTS.md": "Mine.\n"},
    ),
    Case(
        "OpenCode, three of its settings taken",
        {
            "CLAUDE.md": "Brief.\n",
            ".opencode/opencode.json": "{}\n",
            ".opencode/opencode.jsonc": "// Mine.\n{}\n",
            "opencode.json": "{}\n",
        },
        {".config/opencode/keep": ""},
    ),
    *(
        Case(
            f"OpenCode, and an import in Claude's global file: {name}",
            home={
                ".claude/CLAUDE.md": "@~/.codex/AGENTS.md\n",
                ".codex/AGENTS.md": "Mine.\n",
                f".config/opencode/{name}": "{}\n",
            },
        )
        for name in ("opencode.json", "opencode.jsonc")
    ),
    Case("hooks", {"AGENTS.md": "Tabs.\n", "CLAUDE.md": "Brief.\n"}, delivery="hooks"),
    Case("an override of the user's", home={".codex/AGENTS.override.md": "Mine.\n"}),
    Case(
        "memories of both",
        {"AGENTS.md": "Tabs.\n"},
        {
            ".claude/projects/<slug>/memory/desk.md": "---\nname: desk\n---\n\nBy the window.\n",
            ".codex/config.toml": "[features]\nmemories = true\nmemory_tool = true\n",
        },
    ),
    Case("programs that need a file of their own", {"AGENTS.md/keep.md": "A directory.\n"}, _HOMES),
    Case(
        "files that are read in the place of AGENTS.md",
        {".github/copilot-instructions.md": "A.\n", "WARP.md": "B.\n", ".junie/AGENTS.md": "C.\n"},
        _HOMES,
    ),
    Case("one of which nobody knows", {".junie/guidelines.md": "Short.\n"}, {".junie/keep": ""}),
    *(Case(f"{name} for Zed", {name: "Mine.\n"}, {".config/zed/keep": ""}) for name in _FIRST_FOR_ZED),
)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_nothing_is_touched_that_the_table_does_not_name(sealed_home: Path, case: Case) -> None:
    unknown = {name for name in _touched(sealed_home, case) if not any(_names(row, name) for row in ROWS)}

    assert unknown == set()


def test_the_table_names_nothing_that_is_never_touched(
    sealed_home: Path, short_tmp: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    touched: set[str] = set()
    for number, case in enumerate(CASES):
        home = short_tmp / f"home{number}"
        home.mkdir()
        monkeypatch.setenv("HOME", str(home))
        for kind, below in (("CONFIG", ".config"), ("STATE", ".local/state"), ("DATA", ".local/share")):
            monkeypatch.setenv(f"XDG_{kind}_HOME", str(home / below))
        monkeypatch.setenv("XDG_CACHE_HOME", str(home / ".cache"))
        touched |= _touched(home, case)

    assert {row for row in ROWS if not any(_names(row, name) for name in touched)} == _ELSEWHERE


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_eject_leaves_what_the_table_says(sealed_home: Path, case: Case) -> None:
    before: dict[str, object] = {}
    _touched(sealed_home, case, before=before)
    project = setup.describe(sealed_home / "work")
    ours = [row for row in ROWS if row.endswith("/")]

    setup.eject(project, load_settings())

    after = _tree(sealed_home)
    changed = {name for name in before.keys() | after.keys() if before.get(name) != after.get(name)}
    learnt = r"~/\.claude/projects/[^/]+/memory(/.*)?"  # the facts learnt since, where a directory was
    assert {
        name
        for name in changed
        if not any(_names(row, name) for row in ours)
        and not (case.name == "memories of both" and re.fullmatch(learnt, name))
    } == set()


def _touched(home: Path, case: Case, before: dict[str, object] | None = None) -> set[str]:
    """Set a project up, remember something in both scopes, and say which files differ then."""
    root = _prepare(home, case)
    first = _tree(home)
    if before is not None:
        before.update(first)
    settings = load_settings()
    project = setup.describe(root, delivery=case.delivery)
    setup.init(project, settings)
    for store in (
        Store(project.store, state=project.state),
        Store(paths.global_store(), scope="global", state=paths.user_state()),
    ):
        store.create()
        store.add("Staging is reset every Monday.", now=datetime(2026, 11, 29, tzinfo=UTC))
    Engine(project, settings).reconcile()
    global_engine(settings).reconcile()
    Search(paths.cache_dir() / "search" / "x.sqlite").query(store.scan(), ["staging"], 5)
    last = _tree(home)
    return {name for name in first.keys() | last.keys() if first.get(name) != last.get(name)}


def _prepare(home: Path, case: Case) -> Path:
    root = home / "work"
    (home / ".claude").mkdir()
    (home / ".codex").mkdir()
    slug = re.sub(r"[^A-Za-z0-9]", "-", str(root))
    for base, files in ((root, case.project), (home, case.home)):
        for name, text in files.items():
            path = base / name.replace("<slug>", slug)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
    root.mkdir(exist_ok=True)
    git: Callable[..., object] = lambda *words: subprocess.run(["git", "-C", str(root), *words], check=True)  # noqa: E731
    git("init", "-q")
    git("add", "-A")
    git("commit", "-q", "--allow-empty", "-m", "start")
    return root


def _tree(home: Path) -> dict[str, object]:
    """Every file and link by its name in the README: below the project, else below `~/`."""
    found: dict[str, object] = {}
    for path in home.rglob("*"):
        name = path.relative_to(home).as_posix()
        name = name.removeprefix("work/") if name.startswith("work/") else f"~/{name}"
        if path.is_symlink():
            found[name] = path.readlink()
        elif path.is_file() and not re.match(r"\.git/(?!config$|info/|hooks/|HEAD$)", name):
            found[name] = path.read_bytes()
    return found


def _names(row: str, name: str) -> bool:
    """Whether a row's path is the file `name`, or a directory that it lies in."""
    pattern = "[^/]+".join(map(re.escape, re.split(r"<\w+>", row)))
    return re.fullmatch(f"{pattern}.+" if row.endswith("/") else f"{pattern}(/.*)?", name) is not None
