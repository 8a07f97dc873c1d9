"""What each client learnt by itself before `init` is in the other's next session; B's stays out of A."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from clients.rig.claude import Claude
from clients.rig.codex import Codex
from clients.rig.product import Product
from clients.rig.prompt import claude_prompt
from clients.rig.script import Body, Call, write

LEARNT = "Nox runs the tests here, tox is gone since March."
CLAUDES = f"""---
name: build-tool
description: which runner the tests use
metadata:
  type: project
---

The runner changed. {LEARNT}
"""
OF_A, OF_B, OF_ALL = "Snapshots live in fixtures.", "Kernel modules are signed.", "Answer in short sentences."


def _write(body: Body) -> Call:
    directory = claude_prompt(body).memory_directory
    assert directory is not None
    return write(directory / "build-tool.md", CLAUDES)


@pytest.mark.parametrize("layout", ["memories", "memories_v2"])
def test_memories_from_before_are_where_they_belong(
    claude: Claude, codex: Codex, product: Product, git_repo: Path, layout: str
) -> None:
    (git_repo / "AGENTS.md").write_text("Mine.\n", "utf-8")
    other = git_repo.with_name("other")
    subprocess.run(["git", "clone", "-q", str(git_repo), str(other)], check=True)
    assert claude.run(git_repo, [_write]).denied == (), "Claude's own directory, before `init`"
    _codex_learnt(codex, layout, git_repo, other)
    # Claude adds a line for its own files within half a minute; this session is over.
    product = replace(product, env={"AGENT_BRIDGE_CLAUDE_INDEX_GRACE_S": "0"})

    product.init(git_repo)
    product.run("sync", cwd=git_repo)

    seen = codex.exec(git_repo).prompt
    assert [seen.count(text) for text in (LEARNT, OF_A, OF_B, OF_ALL)] == [1, 1, 0, 1]
    prompt = claude.prompt(git_repo)
    assert [prompt.count(text) for text in (LEARNT, OF_A, OF_B)] == [1, _with_index(prompt.memory_index), 0]
    assert prompt.memory_index is not None
    assert prompt.memory_index.count("(build-tool.md)") == 1
    assert OF_ALL in prompt.text

    product.init(other)
    product.run("sync", cwd=other)

    assert codex.exec(other).prompt.count(OF_B) == 1
    assert codex.exec(git_repo).prompt.count(OF_B) == 0


@pytest.mark.parametrize("place", ["long", "odd", "symlink", "worktree", "below", "config"])
def test_what_claude_kept_is_found_wherever_it_keeps_it(
    claude: Claude, product: Product, git_repo: Path, place: str
) -> None:
    """Claude names its directory after the project by a rule of its own; see `claude_places`."""
    root = git_repo
    if place == "long":
        root = git_repo.parent / ("l" * 110) / ("m" * 110)
        root.parent.mkdir()
        git_repo.rename(root)
    elif place == "odd":
        root = git_repo.rename(git_repo.with_name("Ünï codé & (more) 本 😀"))
    start = root
    if place == "symlink":
        start = root.with_name("link")
        start.symlink_to(root)
    elif place == "worktree":
        start = root.with_name("branch")
        subprocess.run(["git", "worktree", "add", "-q", str(start)], cwd=root, check=True)
    elif place == "below":
        start = root / "sub"
        start.mkdir()
    elif place == "config":
        env = {"CLAUDE_CONFIG_DIR": str(root.with_name("elsewhere"))}
        claude, product = replace(claude, env=env), replace(product, env=env)
    assert claude.run(start, [_write]).denied == ()

    product.init(start)

    [fact] = product.run("list", cwd=root)["data"]["facts"]
    assert LEARNT in product.run("show", fact["id"], cwd=root)["data"]["body"]
    assert (root / ".memory/build-tool.md").is_file()


def _with_index(index: str | None) -> int:
    """A fact of one sentence is its own index line: once there, once in the block."""
    return 1 + (index or "").count(OF_A)


def _codex_learnt(codex: Codex, layout: str, one: Path, two: Path) -> None:
    (codex.home / ".codex/config.toml").write_text("[features]\nmemories = true\n", "utf-8")
    notes = codex.home / ".codex" / layout / "extensions/ad_hoc/notes"
    notes.mkdir(parents=True)
    texts = (f"cwd: {one}\n\n{OF_A}\n", f"cwd: {two}\n\n{OF_B}\n", f"{OF_ALL}\n")
    for number, text in enumerate(texts):
        (notes / f"2026-01-0{number + 1}T03-04-05-x.md").write_text(text, "utf-8")
