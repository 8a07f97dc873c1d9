"""What Claude Code 2.1.332 does in a worktree, without the product."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from clients.rig.claude import Claude


@pytest.fixture
def side(git_repo: Path) -> Path:
    """A worktree beside its main checkout; each has a memory directory and settings that name it."""
    root = git_repo.with_name("side")
    subprocess.run(["git", "worktree", "add", "-q", str(root)], cwd=git_repo, check=True)
    for place in (git_repo, root):
        (place / ".memory").mkdir()
        (place / ".memory" / "MEMORY.md").write_text(f"- [x](x.md) — of {place.name}\n")
        (place / ".claude").mkdir()
        settings = {"autoMemoryDirectory": str(place / ".memory")}
        (place / ".claude" / "settings.local.json").write_text(json.dumps(settings))
    return root


def test_the_main_checkouts_memory_is_a_worktrees_too(claude: Claude, git_repo: Path, side: Path) -> None:
    """So `worktrees = "separate"` can't give a worktree a memory directory of its own."""
    prompt = claude.prompt(side)

    assert prompt.memory_directory == git_repo / ".memory"
    assert prompt.count("of project") == 1
    assert prompt.count("of side") == 0


def test_a_worktrees_own_settings_hold_in_its_root_alone(claude: Claude, git_repo: Path, side: Path) -> None:
    (git_repo / ".claude" / "settings.local.json").unlink()
    (side / "deep").mkdir()

    assert claude.prompt(side).memory_directory == side / ".memory"
    below = claude.prompt(side / "deep").memory_directory
    assert below is not None
    assert below.is_relative_to(claude.home / ".claude")
