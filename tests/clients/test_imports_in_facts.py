"""A fact that speaks of `@AGENTS.md` doesn't make Claude Code load that file through our block."""

from __future__ import annotations

from pathlib import Path

import pytest

from clients.rig import facts
from clients.rig.claude import Claude
from clients.rig.product import Product

SECRET = "Only for the other program."
LINE = "Ask @other.md, or (@other.md), or **@other.md**: that is where it stands."


def _lay_out(root: Path, claude_md: str) -> None:
    (root / "CLAUDE.md").write_text(claude_md, "utf-8")
    (root / "other.md").write_text(f"{SECRET}\n", "utf-8")


def test_it_would_without_us(claude: Claude, git_repo: Path) -> None:
    _lay_out(git_repo, f"# Claude\n\n{LINE}\n")
    assert claude.prompt(git_repo).count(SECRET) == 1


@pytest.mark.parametrize("where", ["body", "title"])
def test_a_fact_imports_nothing(claude: Claude, product: Product, git_repo: Path, where: str) -> None:
    _lay_out(git_repo, "# Claude\n")
    product.init(git_repo)
    body = f"{LINE} {facts.BODY}" if where == "body" else facts.BODY
    path = facts.save(git_repo, body)
    if where == "title":
        path.write_text(path.read_text("utf-8").replace("# Release day", "# See @other.md"), "utf-8")
    with product.service() as service:
        service.until_in(git_repo / "CLAUDE.md", facts.BODY)
    prompt = claude.prompt(git_repo)
    assert prompt.count(facts.BODY) == 1
    assert prompt.count(SECRET) == 0
