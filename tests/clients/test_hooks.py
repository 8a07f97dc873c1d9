"""HOOK mode with the real clients: no block in any file, each fact once, also after compaction."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

from clients.rig import facts
from clients.rig.claude import Claude
from clients.rig.codex import Codex
from clients.rig.product import Product

SHARED = "They leave on Tuesdays, from the harbour branch."
PRIVATE = "Ring twice at the lighthouse door."
AGENTS = b"# Rules\n\nUse tabs.\n"
CLAUDE = b"# For Claude\n\nBe brief.\n"


@pytest.fixture
def hooked(product: Product, git_repo: Path) -> Path:
    """The repository with instruction files of its user's, a shared and a private fact, in HOOK mode."""
    (git_repo / "AGENTS.md").write_bytes(AGENTS)
    (git_repo / "CLAUDE.md").write_bytes(CLAUDE)
    (git_repo / "src").mkdir()
    (git_repo / "src" / "a.py").write_text("a = 1\n")
    subprocess.run(["git", "-C", str(git_repo), "add", "-A"], check=True)
    subprocess.run(["git", "-C", str(git_repo), "commit", "-qm", "Files"], check=True)
    product.run("init", "--yes", "--hooks", cwd=git_repo)
    facts.save(git_repo, SHARED, name="entries/release-day.md")
    facts.save(git_repo, PRIVATE, name="entries/lighthouse.md", keys="type: user\n")
    product.run("sync", cwd=git_repo)
    return git_repo


@pytest.mark.parametrize("below", ["", "src"])
def test_each_fact_is_told_once_and_no_file_has_a_block(
    claude: Claude, codex: Codex, hooked: Path, below: str
) -> None:
    for prompt in (claude.prompt(hooked / below), codex.exec(hooked / below).prompt):
        assert prompt.count(SHARED) == 1
        assert prompt.count(PRIVATE) == 1
        assert prompt.count("Use tabs.") == (1 if prompt.count("AGENTS.md") else 0)
    assert_untouched(hooked)


def assert_untouched(root: Path) -> None:
    assert (root / "AGENTS.md").read_bytes() == AGENTS
    assert (root / "CLAUDE.md").read_bytes() == CLAUDE
    assert not (root / ".claude" / "rules").exists()
