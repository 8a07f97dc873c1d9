"""A repository with hand-written instruction files, and the engine that serves it."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from agent_bridge.config import Settings, load_settings
from agent_bridge.projection import setup
from agent_bridge.projection.engine import Engine
from agent_bridge.projects import Project

AGENTS = b"# Rules\n\nUse tabs.\n"
CLAUDE = b"# For Claude\n\nBe brief.\n"


def git(root: Path, *words: str) -> str:
    """Run Git in `root` and return what it printed."""
    done = subprocess.run(["git", "-C", str(root), *words], check=True, capture_output=True, text=True)
    return done.stdout


@pytest.fixture
def settings(sealed_home: Path) -> Settings:
    return load_settings()


@pytest.fixture
def repository(sealed_home: Path) -> Path:
    """A repository whose AGENTS.md and CLAUDE.md are committed."""
    root = sealed_home / "work"
    root.mkdir()
    (sealed_home / ".claude").mkdir()
    git(root, "init", "-q", "-b", "main")
    (root / "AGENTS.md").write_bytes(AGENTS)
    (root / "CLAUDE.md").write_bytes(CLAUDE)
    git(root, "add", "-A")
    git(root, "commit", "-qm", "start")
    return root


@pytest.fixture
def project(repository: Path, settings: Settings) -> Project:
    """The repository, set up."""
    found = setup.describe(repository)
    setup.init(found, settings)
    return found


@pytest.fixture
def engine(project: Project, settings: Settings) -> Engine:
    return Engine(project, settings)


@pytest.fixture
def tree() -> Callable[[Path], dict[str, tuple[str, int, bytes]]]:
    """Everything below a directory: kind, mode, and bytes or link target."""

    def read(root: Path) -> dict[str, tuple[str, int, bytes]]:
        found: dict[str, tuple[str, int, bytes]] = {}
        for path in sorted(root.rglob("*")):
            name = path.relative_to(root).as_posix()
            mode = path.lstat().st_mode & 0o7777
            if path.is_symlink():
                found[name] = ("link", 0, str(path.readlink()).encode())
            elif path.is_dir():
                found[name] = ("directory", mode, b"")
            else:
                found[name] = ("file", mode, path.read_bytes())
        return found

    return read
