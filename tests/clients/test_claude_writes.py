"""What Claude learns by itself is in the store and in Codex's next session, and keeps what people marked."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from clients.rig import facts
from clients.rig.claude import Claude
from clients.rig.codex import Codex
from clients.rig.product import Product
from clients.rig.prompt import claude_prompt
from clients.rig.script import Body, Call, edit, read, write

LEARNT = "Nox runs the tests here, tox is gone since March."
CLAUDES = f"""---
name: build-tool
description: which runner the tests use
metadata:
  type: project
---

The runner changed. {LEARNT}
"""
LINE = "- [Build tool](build-tool.md) — which runner the tests use"


def _memory(body: Body) -> Path:
    """The directory that this very session told the model to write to."""
    directory = claude_prompt(body).memory_directory
    assert directory is not None
    return directory


def _write_new(body: Body) -> Call:
    return write(_memory(body) / "build-tool.md", CLAUDES)


def _read_index(body: Body) -> Call:
    return read(_memory(body) / "MEMORY.md")


def _add_line(body: Body) -> Call:
    index = _memory(body) / "MEMORY.md"
    first = index.read_text("utf-8").splitlines()[0]
    return edit(index, first, f"{first}\n{LINE}")


def test_a_new_fact_of_claude_is_in_the_store_and_in_codex(
    claude: Claude, codex: Codex, product: Product, git_repo: Path
) -> None:
    (git_repo / "AGENTS.md").write_text("Mine.\n", "utf-8")
    product.init(git_repo)
    facts.save(git_repo)

    with product.service() as service:
        run = claude.run(git_repo, [_write_new, _read_index, _add_line])
        service.until_in(git_repo / "AGENTS.md", LEARNT)

    assert run.denied == ()
    assert [result.is_error for result in run.tool_results] == [False, False, False], run.tool_results
    assert codex.prompt(git_repo).count(LEARNT) == 1
    saved = git_repo / ".memory/build-tool.md"
    head = yaml.safe_load(saved.read_text("utf-8").split("---\n")[1])
    assert (head["name"], head["description"]) == ("build-tool", "which runner the tests use")
    assert head["metadata"].items() >= {"node_type": "memory", "type": "project"}.items()
    assert {"originSessionId", "modified"} <= head["metadata"].keys()
    assert _lines_for(git_repo, "build-tool.md") == [LINE]
    after = claude.prompt(git_repo)
    assert after.count(LEARNT) == 1
    assert after.memory_index is not None
    assert after.memory_index.count("(build-tool.md)") == 1


def test_an_edit_by_claude_leaves_a_private_pinned_tagged_fact_as_it_was(
    claude: Claude, codex: Codex, product: Product, git_repo: Path
) -> None:
    (git_repo / "AGENTS.md").write_text("Mine.\n", "utf-8")
    product.init(git_repo)
    saved = facts.save(git_repo, keys="type: project\nprivate: true\npinned: true\ntags: [release, ops]\n")

    with product.service() as service:
        with service.change(git_repo):
            run = claude.run(git_repo, [read(saved), edit(saved, facts.BODY, LEARNT)])
        told = service.project(git_repo)["facts"]

    assert run.denied == ()
    assert "tags" in yaml.safe_load(saved.read_text("utf-8").split("---\n")[1])["metadata"]
    [shown] = product.run("list", cwd=git_repo)["data"]["facts"]
    assert (shown["private"], shown["pinned"], shown["tags"]) == (True, True, ["release", "ops"])
    assert (told["shared"], told["private"]) == (0, 1)
    assert codex.prompt(git_repo).count(LEARNT) == 0
    assert claude.prompt(git_repo).count(facts.NAME) == 1


@pytest.mark.parametrize("service_is", ["stopped", "running"])
def test_an_index_that_claude_made_ends_with_one_right_line_a_fact(
    claude: Claude, product: Product, git_repo: Path, service_is: str
) -> None:
    product.init(git_repo)
    facts.save(git_repo)
    facts.save(git_repo, "Another body.", name="by-hand.md")
    index = git_repo / ".memory/MEMORY.md"
    if service_is == "stopped":
        index.unlink()
        first = claude.prompt(git_repo)
        assert index.exists(), "Claude writes the index itself where it is missing"
        with product.service():
            pass
    else:
        with product.service() as service:
            index.unlink()
            first = claude.prompt(git_repo)
            for name in (facts.NAME, "by-hand.md"):
                service.until_in(index, f"({name})")

    assert first.memory_index is not None
    lines = index.read_text("utf-8").splitlines()
    assert sum(f"({facts.NAME})" in line for line in lines) == 1
    assert sum("(by-hand.md)" in line for line in lines) == 1
    assert all(line.startswith("- [Release day](") for line in lines if "](" in line)


def _lines_for(root: Path, name: str) -> list[str]:
    index = root / ".memory/MEMORY.md"
    return [line for line in index.read_text("utf-8").splitlines() if f"({name})" in line]
