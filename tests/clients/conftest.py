"""The real clients and a repository for them to work in."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from clients.rig.claude import Claude
from clients.rig.codex import Codex
from clients.rig.gemini import Gemini
from clients.rig.opencode import OpenCode
from clients.rig.product import Product
from clients.rig.programs import Missing, find_program


@pytest.fixture
def claude(sealed_home: Path) -> Claude:
    """Claude Code, never used before by this user."""
    return Claude(_program("@anthropic-ai/claude-code"), sealed_home)


@pytest.fixture
def codex(sealed_home: Path) -> Codex:
    """Codex, never used before by this user."""
    return Codex(_program("@openai/codex"), sealed_home)


@pytest.fixture
def gemini(sealed_home: Path) -> Gemini:
    """Gemini CLI, never used before by this user."""
    return Gemini(_program("@google/gemini-cli"), sealed_home)


@pytest.fixture
def opencode(sealed_home: Path) -> OpenCode:
    """OpenCode, never used before by this user."""
    return OpenCode(_program("opencode-ai"), sealed_home)


@pytest.fixture
def product(sealed_home: Path) -> Product:
    """agent-bridge for the same user, who has used both clients before."""
    for name in (".claude", ".codex"):
        (sealed_home / name).mkdir()
    return Product(sealed_home)


@pytest.fixture
def git_repo(sealed_home: Path) -> Path:
    """A repository with one commit that holds a source file; no instruction files."""
    root = sealed_home / "project"
    root.mkdir()
    (root / "main.py").write_text("print('hello')\n", encoding="utf-8")
    for command in (["init", "-q", "-b", "main"], ["add", "main.py"], ["commit", "-q", "-m", "Start"]):
        subprocess.run(["git", *command], cwd=root, check=True)
    return root


def _program(package: str) -> Path:
    found = find_program(package)
    if isinstance(found, Missing):
        if os.environ.get("CI") == "true":
            pytest.fail(found.reason)
        pytest.skip(found.reason)
    return found
