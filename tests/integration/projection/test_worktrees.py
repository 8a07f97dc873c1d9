"""What was taken over from worktrees is remembered in a file of ours, which may be damaged."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent_bridge.projection.engine import Engine

from .conftest import git


@pytest.mark.parametrize("damaged", [b"", b"\xff\x00", b"null", b"[" * 100_000])
def test_a_damaged_memory_of_what_was_taken_over_stops_no_pass(
    engine: Engine, repository: Path, damaged: bytes
) -> None:
    tree = repository.parent / "tree"
    git(repository, "worktree", "add", "-q", str(tree))
    (engine.state / "worktree-facts.json").write_bytes(damaged)
    (tree / ".memory").mkdir()
    (tree / ".memory/way.md").write_text("The harbour is north.\n")
    engine.reconcile()
    assert "harbour" in (repository / "AGENTS.md").read_text()
