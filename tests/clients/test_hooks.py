"""HOOK mode with the real clients: no block in any file, each fact once, also after compaction."""

from __future__ import annotations

import json
import re
import subprocess
import uuid
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
    _with_files(git_repo)
    product.run("init", "--yes", "--hooks", "--no-mcp", cwd=git_repo)
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


def test_a_worktree_is_told_too(claude: Claude, codex: Codex, hooked: Path) -> None:
    side = hooked.parent / "side"
    subprocess.run(["git", "-C", str(hooked), "worktree", "add", "-q", str(side)], check=True)
    for prompt in (claude.prompt(side), codex.exec(side).prompt):
        assert (prompt.count(SHARED), prompt.count(PRIVATE)) == (1, 1)
    assert_untouched(side)


def test_after_compaction_and_in_a_resumed_session_it_is_there_once(claude: Claude, hooked: Path) -> None:
    session = str(uuid.uuid4())
    claude.run(hooked, arguments=["--session-id", session])
    assert _sent(claude, hooked, session).count(SHARED) == 1, "resumed"
    claude.run(hooked, arguments=["--resume", session], text="/compact")
    assert _sent(claude, hooked, session).count(SHARED) == 1, "compacted"


def test_codex_runs_the_hook_once_in_a_resumed_session(codex: Codex, hooked: Path) -> None:
    run = codex.exec(hooked)
    assert "hook: SessionStart Completed" in run.outcome.stderr
    (session,) = re.findall(r"^session id: (\S+)$", run.outcome.stderr, re.MULTILINE)
    assert codex.exec(hooked, arguments=["resume", session], text="again").prompt.count(SHARED) == 1


def test_a_client_in_another_directory_hears_nothing(codex: Codex, hooked: Path) -> None:
    other = hooked.parent / "other"
    other.mkdir()
    run = codex.exec(other)
    assert "hook: SessionStart Completed" in run.outcome.stderr
    assert run.prompt.count(SHARED) == 0


def test_a_new_fact_is_in_the_next_session(
    claude: Claude, codex: Codex, product: Product, hooked: Path
) -> None:
    with product.service() as service, service.change(hooked):
        facts.save(hooked, "The ferry waits for nobody.", name="entries/ferry.md")
    assert claude.prompt(hooked).count("The ferry waits for nobody.") == 1
    assert codex.exec(hooked).prompt.count("The ferry waits for nobody.") == 1


def test_more_facts_than_a_hook_may_tell(
    claude: Claude, codex: Codex, product: Product, hooked: Path
) -> None:
    for number in range(60):
        facts.save(hooked, f"漢字 {number} " + "много слов " * 60, name=f"entries/long-{number}.md")
    product.run("sync", cwd=hooked)
    for prompt, marks in (
        (claude.prompt(hooked), ("persisted-output", "Full output saved")),
        (codex.exec(hooked).prompt, ("Full hook output saved",)),
    ):
        assert [prompt.count(mark) for mark in marks] == [0] * len(marks), "the client had to cut it"
        assert prompt.count("`agent-bridge search WORDS` finds facts") == 1


def test_blocks_again(claude: Claude, codex: Codex, product: Product, hooked: Path) -> None:
    product.run("init", "--yes", "--blocks", cwd=hooked)
    for prompt in (claude.prompt(hooked), codex.exec(hooked).prompt):
        assert prompt.count(SHARED) == 1
        assert prompt.count(PRIVATE) == 0, "a block is for everybody"
    assert b"agent-bridge:memory" in (hooked / "AGENTS.md").read_bytes()
    assert not (codex.home / ".codex" / "hooks.json").exists()


def test_eject_leaves_no_byte(codex: Codex, product: Product, git_repo: Path) -> None:
    _with_files(git_repo)
    (codex.home / ".codex" / "hooks.json").write_text('{"hooks": {"Stop": []}}')
    (codex.home / ".codex" / "config.toml").write_text("# mine\n")
    before = _tree(git_repo), _tree(codex.home / ".codex")
    product.run("init", "--yes", "--hooks", "--no-mcp", cwd=git_repo)
    facts.save(git_repo, SHARED)
    product.run("sync", cwd=git_repo)
    assert _tree(codex.home / ".codex") != before[1]

    product.run("eject", "--yes", cwd=git_repo)

    assert (_tree(git_repo), _tree(codex.home / ".codex")) == before


def _sent(claude: Claude, root: Path, session: str) -> str:
    run = claude.run(root, arguments=["--resume", session], text="go on")
    return json.dumps(run.requests[0].body)


def _tree(root: Path) -> Mapping[str, bytes]:
    found = [path for path in root.rglob("*") if path.is_file()]
    names = {path.relative_to(root).as_posix(): path for path in found}
    return {
        name: path.read_bytes() for name, path in names.items() if not name.startswith((".git/", ".memory/"))
    }


def _with_files(root: Path) -> None:
    (root / "AGENTS.md").write_bytes(AGENTS)
    (root / "CLAUDE.md").write_bytes(CLAUDE)
    (root / "src").mkdir()
    (root / "src" / "a.py").write_text("a = 1\n")
    subprocess.run(["git", "-C", str(root), "add", "-A"], check=True)
    subprocess.run(["git", "-C", str(root), "commit", "-qm", "Files"], check=True)
