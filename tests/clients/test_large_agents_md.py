"""A large AGENTS.md of the user's: Codex shows all of it, however many facts there are."""

from __future__ import annotations

from pathlib import Path

import pytest

from clients.rig.codex import Codex
from clients.rig.product import Product

LIMIT = 32_768
"""Codex's default for `project_doc_max_bytes`."""


@pytest.mark.parametrize("size", [30_000, 32_700])
def test_codex_shows_every_byte_of_the_users(
    codex: Codex, product: Product, git_repo: Path, size: int
) -> None:
    lines = [f"Rule {number:04}: " + "word " * 16 for number in range(size // 92)]
    theirs = "\n".join(lines) + "\n"
    assert size - 200 < len(theirs) <= size
    (git_repo / "AGENTS.md").write_text(theirs, "utf-8")
    before = codex.prompt(git_repo)
    product.init(git_repo)
    for number in range(2000):
        place = git_repo / ".memory" / f"rack-{number:04}.md"
        place.write_text(f"# Rack {number}\n\nThe cable of rack {number:04} is {number * 13} metres long.\n")
    report = product.run("sync", cwd=git_repo)["data"]["reports"][0]

    prompt = codex.prompt(git_repo)

    assert [line for line in lines if before.count(line) != 1] == []
    assert [line for line in lines if prompt.count(line) != 1] == []
    shown = prompt.count(" metres long.")
    if LIMIT - size < 2048:  # no room for a block that says anything: it is told, and nothing is written
        assert shown == 0
        assert (git_repo / "AGENTS.md").read_text("utf-8") == theirs
        assert any(len(ids) == 2000 for ids in report["left_out"].values())
    else:
        assert shown > 10
        assert len((git_repo / "AGENTS.md").read_bytes()) <= LIMIT
        [left_out] = [ids for path, ids in report["left_out"].items() if path.endswith("AGENTS.md")]
        assert shown + len(left_out) == 2000
        assert f"{len(left_out)} facts, for lack of space." in prompt.instructions
    found = product.run("search", "rack", "0000", cwd=git_repo)["data"]
    assert "rack-0000" in str(found)
