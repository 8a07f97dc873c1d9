"""The real clients list our skill, each of them once, wherever else it lies for others.

For OpenCode see `test_mcp_setup_opencode_gemini`, where it is started anyway.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from agent_bridge.projection import skill
from clients.rig.claude import Claude
from clients.rig.codex import Codex
from clients.rig.gemini import Gemini
from clients.rig.product import Product

MARK = "The memory that all coding agents of a project share"


@pytest.fixture
def root(product: Product, git_repo: Path) -> Path:
    """A project of a user of four clients, with the skill; MCP servers, which aren't meant here, are out."""
    for name in (".gemini", ".config/opencode"):
        (product.home / name).mkdir(parents=True)
    product.init(git_repo, mcp=True)
    for name in (".mcp.json", "opencode.json", ".gemini/settings.json"):
        (git_repo / name).unlink()
    (product.home / ".codex/config.toml").unlink()
    return git_repo


def listed(requests: Sequence[Any]) -> int:
    """How often the first request of a session names the skill by what it is for."""
    return json.dumps(requests[0].body).count(MARK)


def test_claude_code_and_codex(claude: Claude, codex: Codex, root: Path) -> None:
    assert MARK.encode() in skill.shipped()["SKILL.md"]
    assert listed(claude.run(root).requests) == 1
    assert listed(codex.exec(root).requests) == 1


def test_gemini_cli(gemini: Gemini, root: Path) -> None:
    assert listed(gemini.run(root).requests) == 1
