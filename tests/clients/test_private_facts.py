"""A private fact is Claude's to read, and neither Git nor Codex gets a byte of it."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from pathlib import Path

from clients.rig import facts
from clients.rig.claude import Claude
from clients.rig.codex import Codex
from clients.rig.product import Product
from clients.rig.prompt import claude_prompt
from clients.rig.script import Body, Call, write

WORDS = ("jellyfish-keeper", "quiet mornings", "Ada keeps jellyfish", "about-the-user", "Tidepool days")
ABOUT_THE_USER = f"""---
name: {WORDS[0]}
description: likes {WORDS[1]}
metadata:
  type: user
---

# {WORDS[4]}

{WORDS[2]} and reads mail at four.
"""


def _write(body: Body) -> Call:
    directory = claude_prompt(body).memory_directory
    assert directory is not None
    return write(directory / f"{WORDS[3]}.md", ABOUT_THE_USER)


def test_what_claude_learns_about_the_user_never_reaches_git_or_codex(
    claude: Claude, codex: Codex, product: Product, git_repo: Path
) -> None:
    (git_repo / "AGENTS.md").write_text("Mine.\n", "utf-8")
    product.init(git_repo)
    assert claude.run(git_repo, [_write]).denied == (), "with the service stopped"

    _assert_unknown_to_git(git_repo)
    # Claude adds a line for its own files within half a minute; here it didn't, and nobody waits for it.
    with replace(product, env={"AGENT_BRIDGE_CLAUDE_INDEX_GRACE_S": "0"}).service():
        pass

    _assert_unknown_to_git(git_repo)
    assert [codex.prompt(git_repo).count(word) for word in WORDS] == [0] * len(WORDS)
    index = claude.prompt(git_repo).memory_index
    assert index is not None
    assert f"({WORDS[3]}.md)" in index
    assert WORDS[2] in (git_repo / f".memory/{WORDS[3]}.md").read_text("utf-8")


def test_unshare_takes_a_tracked_fact_out_of_git_and_leaves_it_to_claude(
    claude: Claude, codex: Codex, product: Product, git_repo: Path
) -> None:
    (git_repo / "AGENTS.md").write_text("Mine.\n", "utf-8")
    product.init(git_repo)
    facts.save(git_repo)
    product.run("sync", cwd=git_repo)
    subprocess.run(["git", "add", "-A"], cwd=git_repo, check=True)
    subprocess.run(["git", "commit", "-q", "-m", "With the fact"], cwd=git_repo, check=True)
    assert codex.prompt(git_repo).count(facts.BODY) == 1
    [fact] = product.run("list", cwd=git_repo)["data"]["facts"]

    product.run("unshare", fact["id"], "--yes", cwd=git_repo)

    subprocess.run(["git", "add", "-A"], cwd=git_repo, check=True)
    assert facts.BODY not in _everything_in_the_index(git_repo)
    assert facts.NAME not in _everything_in_the_index(git_repo)
    assert codex.prompt(git_repo).count(facts.BODY) == 0
    index = claude.prompt(git_repo).memory_index
    assert index is not None
    assert facts.NAME in index


def _assert_unknown_to_git(root: Path) -> None:
    subprocess.run(["git", "add", "-A"], cwd=root, check=True)
    index = _everything_in_the_index(root)
    assert "Mine." in index
    assert [word for word in WORDS if word in index] == []


def _everything_in_the_index(root: Path) -> str:
    """Names and contents of all that would be committed."""
    texts = ["git", "grep", "--cached", "-h", "-I", "-e", ""]
    shown = [
        subprocess.run(command, cwd=root, capture_output=True, text=True, check=True).stdout
        for command in (["git", "ls-files"], texts)
    ]
    return "".join(shown)
