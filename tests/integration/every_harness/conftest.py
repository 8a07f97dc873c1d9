"""A user who has every harness that is known, and repositories with every kind of carrier."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path

import pytest

import warm
from agent_bridge import paths
from agent_bridge.config import Settings, load_settings
from agent_bridge.harnesses.table import ROWS
from agent_bridge.memory.store import Store
from agent_bridge.projection import requests, setup
from agent_bridge.projection.engine import Engine, global_engine
from agent_bridge.projects import Delivery, Project

OURS = (".claude", ".codex", ".gemini/antigravity", ".config/opencode")
"""Below the home: what shows that somebody uses Claude Code, Codex, Antigravity and Gemini CLI, OpenCode."""

NO_AGENTS_MD = {"AGENTS.md/keep.md": "A directory.\n", "CLAUDE.md": "# For Claude\n\nBe brief.\n"}
"""A project in which nobody can be reached by AGENTS.md: everybody gets a file of its own."""

USUAL = {
    "AGENTS.md": "# Rules\n\nUse tabs.\n",
    "CLAUDE.md": "# For Claude\n\nBe brief.\n",
    "GEMINI.md": "# For Gemini\n\nBe exact.\n",
}
FIRST_ONES = {
    **USUAL,
    ".github/copilot-instructions.md": "For Copilot.\n",
    "WARP.md": "For Warp.\n",
    ".junie/AGENTS.md": "For Junie.\n",
    "AGENTS.override.md": "Spaces here.\n",
}
LAYOUTS: Mapping[str, Mapping[str, str]] = {
    "nothing": {},
    "usual": USUAL,
    "first ones": FIRST_ONES,
    "no AGENTS.md": NO_AGENTS_MD,
}

MOMENT = datetime(2026, 11, 29, tzinfo=UTC)

Tree = dict[str, tuple[str, int, bytes]]
"""Name below a directory: kind, mode, and bytes or link target."""

MakeRepository = Callable[..., Path]


def git(root: Path, *words: str) -> str:
    """Run Git in `root` and return what it printed."""
    done = subprocess.run(["git", "-C", str(root), *words], check=True, capture_output=True)
    return done.stdout.decode("utf-8", "surrogateescape")


def write(root: Path, files: Mapping[str, str | bytes]) -> None:
    """Make files below `root`."""
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text if isinstance(text, bytes) else text.encode())


def use_all(home: Path) -> None:
    """Have everything lie there by which a harness is found."""
    for name in (*OURS, *(row.homes[0] for row in ROWS if row.homes)):
        (home / name).mkdir(parents=True, exist_ok=True)


def set_up(
    root: Path, settings: Settings, *, delivery: Delivery = "blocks", asked: str = ""
) -> tuple[Project, Engine]:
    """Set a project up; with `asked` the extra files of those harnesses ("all") are asked for too."""
    project = setup.describe(root, delivery=delivery)
    setup.init(project, settings)
    if asked:
        project = requests.request(project, requests.named(asked), settings)
    return project, Engine(project, settings)


def global_store() -> Store:
    """The user's store."""
    store = Store(paths.global_store(), scope="global", state=paths.user_state())
    store.create()
    return store


def everything(project: Project, settings: Settings) -> None:
    """One `sync` of both scopes, looked at afresh as a new process does."""
    Engine(project, settings).reconcile()
    global_engine(settings).reconcile()


def run(cwd: Path, *words: str) -> str:
    """Run agent-bridge as a user does, and return what it printed; it has to succeed."""
    code, out, err = warm.run(*words, cwd=cwd)
    assert code == 0, out.decode() + err.decode()
    return out.decode("utf-8")


def tree(root: Path, *, but: str = r"\.git/(index|logs/.*|ORIG_HEAD)$|.*\.lock$|.*/lock$") -> Tree:
    """Everything below a directory, but the names that match `but`."""
    found: Tree = {}
    for path in sorted(root.rglob("*")):
        name = path.relative_to(root).as_posix()
        if re.search(but, name):
            continue
        mode = path.lstat().st_mode & 0o7777
        if path.is_symlink():
            found[name] = ("link", 0, str(path.readlink()).encode())
        elif path.is_dir():
            found[name] = ("directory", mode, b"")
        else:
            found[name] = ("file", mode, path.read_bytes())
    return found


def differing(before: Tree, after: Tree) -> set[str]:
    """The names of what isn't the same in both."""
    return {name for name in before.keys() | after.keys() if before.get(name) != after.get(name)}


@pytest.fixture
def settings(sealed_home: Path) -> Settings:
    use_all(sealed_home)
    return load_settings()


@pytest.fixture
def repository(sealed_home: Path, settings: Settings) -> MakeRepository:
    """Makes a repository whose files are committed."""

    def make(files: Mapping[str, str | bytes], name: str = "work", at: Path | None = None) -> Path:
        root = (at or sealed_home) / name
        root.mkdir(parents=True)
        git(root, "init", "-q", "-b", "main")
        write(root, files)
        git(root, "add", "-A")
        git(root, "commit", "-q", "--allow-empty", "-m", "start")
        return root

    return make
