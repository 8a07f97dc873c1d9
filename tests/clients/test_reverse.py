"""What Claude Code writes into people's files comes back when asked for, and Codex has it next time."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from clients.rig.claude import Claude
from clients.rig.codex import Codex
from clients.rig.product import Product
from clients.rig.script import edit, read

HARBOUR = "The harbour is in the north of the town."
SOUTH = "The harbour is in the south of the town."
LEARNT = "Nox runs the tests here, tox is gone since March."
MINE = "# For Claude\n\n- Be brief in every answer.\n"
EDITS = ("--permission-mode", "acceptEdits")


def _review(product: Product, root: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = product.run("review", cwd=root)["data"]["candidates"]
    return found


def test_what_claude_adds_to_claude_md_comes_back_once_and_reaches_codex(
    claude: Claude, codex: Codex, product: Product, git_repo: Path
) -> None:
    file = git_repo / "CLAUDE.md"
    file.write_text(MINE, "utf-8")
    product.init(git_repo)
    product.run("add", HARBOUR, cwd=git_repo)
    last = "- Be brief in every answer."

    written = edit(file, last, f"{last}\n- {LEARNT}\n- {SOUTH}")
    run = claude.run(git_repo, [read(file), written], arguments=EDITS)
    assert run.denied == ()
    looked = product.run("sync", "--from", "claude", cwd=git_repo, exit_codes=(4,))["data"]
    assert codex.prompt(git_repo).count(LEARNT) == 0
    applied = product.run("sync", "--from", "claude", "--apply", cwd=git_repo, exit_codes=(4,))["data"]

    assert looked["counts"] == applied["counts"]
    assert {one["text"]: one["outcome"] for one in applied["findings"]} == {
        "Be brief in every answer.": "new",
        LEARNT: "new",
        SOUTH: "conflict",
    }
    seen = codex.prompt(git_repo)
    assert [seen.count(text) for text in (LEARNT, HARBOUR, SOUTH)] == [1, 1, 0]
    own = claude.prompt(git_repo)
    index = own.memory_index or ""
    assert [own.count(text) - index.count(text) for text in (LEARNT, HARBOUR, SOUTH)] == [1, 1, 1]

    (waiting,) = _review(product, git_repo)
    product.run("review", "merge", waiting["id"], "--replace", cwd=git_repo)
    seen = codex.prompt(git_repo)
    assert [seen.count(text) for text in (HARBOUR, SOUTH)] == [0, 1]
    again = product.run("sync", "--from", "claude", "--apply", cwd=git_repo)["data"]
    assert again["counts"]["skipped"] == 3


def test_what_claude_changes_inside_the_block_waits_with_the_fact_that_it_was(
    claude: Claude, product: Product, git_repo: Path
) -> None:
    file = git_repo / "CLAUDE.md"
    file.write_text(MINE, "utf-8")
    product.init(git_repo)
    known = product.run("add", HARBOUR, cwd=git_repo)["data"]["fact"]["id"]

    with product.service() as service, service.change(git_repo):
        run = claude.run(git_repo, [read(file), edit(file, HARBOUR, SOUTH)], arguments=EDITS)

    assert run.denied == ()
    (waiting,) = _review(product, git_repo)
    assert waiting["similar"] == known
    assert waiting["score"] > 0.5
    assert SOUTH in waiting["text"]
    assert "differ in north, south" in waiting["why"]
    assert HARBOUR in file.read_text("utf-8")
    assert SOUTH not in file.read_text("utf-8")
    product.run("review", "reject", waiting["id"], cwd=git_repo)
    assert claude.prompt(git_repo).count(SOUTH) == 0


def test_what_codex_notes_while_the_service_runs_is_in_claudes_next_session(
    claude: Claude, product: Product, sealed_home: Path, git_repo: Path
) -> None:
    notes = sealed_home / ".codex/memories/extensions/ad_hoc/notes"
    notes.mkdir(parents=True)
    (git_repo / "AGENTS.md").write_text("Mine.\n", "utf-8")
    product.init(git_repo)

    with product.service() as service:
        (notes / "2026-01-02T03-04-05-x.md").write_text(f"cwd: {git_repo}\n\n{LEARNT}\n", "utf-8")
        service.until_in(git_repo / "AGENTS.md", LEARNT)

    [fact] = product.run("list", cwd=git_repo)["data"]["facts"]
    assert fact["source"] == "codex"
    prompt = claude.prompt(git_repo)
    assert prompt.count(LEARNT) - (prompt.memory_index or "").count(LEARNT) == 1
