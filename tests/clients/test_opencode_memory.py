"""Each fact reaches OpenCode exactly once, and nothing of the user's is hidden from it."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from clients.rig import facts
from clients.rig.claude import Claude
from clients.rig.codex import Codex
from clients.rig.opencode import OpenCode
from clients.rig.product import Product
from clients.rig.prompt import OpenCodePrompt

PROJECTS: dict[str, tuple[dict[str, str], set[str], set[str]]] = {
    # files, which of their texts a session in the root shows, and one in sub/deep: all that it showed before
    "CLAUDE.md": ({"CLAUDE.md": "One."}, {"One."}, {"One."}),
    "CLAUDE.md imports what isn't there": ({"CLAUDE.md": "One.\n\n@AGENTS.md"}, {"One."}, {"One."}),
    "CONTEXT.md": ({"CONTEXT.md": "One."}, {"One."}, {"One."}),
    "AGENTS.override.md": ({"AGENTS.override.md": "One.", "CLAUDE.md": "Two."}, {"Two."}, {"Two."}),
    # CLAUDE.md is more than such a session showed before; what a user's AGENTS.md hides is none of our doing.
    "AGENTS.md below": ({"CLAUDE.md": "One.", "sub/AGENTS.md": "Two."}, {"One."}, {"One.", "Two."}),
    "CLAUDE.md below": ({"sub/CLAUDE.md": "One."}, set(), {"One."}),
    "AGENTS.md leads out": (
        {"AGENTS.md": "-> ../outside.md", "CLAUDE.md": "One."},
        {"Outside."},
        {"Outside."},
    ),
    "AGENTS.md leads nowhere": ({"AGENTS.md": "-> gone", "CLAUDE.md": "One."}, {"One."}, {"One."}),
    "AGENTS.md is full": ({"AGENTS.md": f"One. {'Long. ' * 5200}", "CLAUDE.md": "Two."}, {"One."}, {"One."}),
    "listed by the user": (
        {"AGENTS.md": "One.", "CLAUDE.md": "Two.", "opencode.json": '{"instructions": ["C*.md"]}'},
        {"One.", "Two."},
        {"One.", "Two."},
    ),
    "settings of the user": (
        {"CLAUDE.md": "One.", "opencode.json": '{"username": "somebody"}'},
        {"One."},
        {"One."},
    ),
}
TEXTS = ("One.", "Two.", "Outside.")
BATCH = 6


@pytest.fixture
def base(sealed_home: Path) -> Path:
    return sealed_home.parent / "projects"


@pytest.mark.parametrize("first", range(0, len(PROJECTS), BATCH))
def test_every_project_shows_the_fact_once_and_what_it_showed_before(
    opencode: OpenCode, product: Product, base: Path, first: int
) -> None:
    names = list(PROJECTS)[first : first + BATCH]
    (opencode.home / ".config/opencode").mkdir(parents=True)
    for name in names:
        make(base / name, PROJECTS[name][0])
    (base / "outside.md").write_text("Outside.\n", "utf-8")
    for name in names:
        facts.save(base / name)
        product.init(base / name)
        assert unexpected(base / name) == []

    bodies: dict[str, tuple[int, int]] = {}
    texts: dict[str, tuple[set[str], set[str]]] = {}
    with opencode.serve() as server:
        for name in names:
            root, below = (server.prompt(base / name / place) for place in (".", "sub/deep"))
            bodies[name] = (root.count(facts.BODY), below.count(facts.BODY))
            texts[name] = (shown(root), shown(below))

    assert bodies == dict.fromkeys(names, (1, 1))
    assert texts == {name: PROJECTS[name][1:] for name in names}


def test_with_claude_md_only_all_three_have_the_fact_once(
    opencode: OpenCode, claude: Claude, codex: Codex, product: Product, git_repo: Path
) -> None:
    make(git_repo, {"CLAUDE.md": "Hand-written."})
    (opencode.home / ".config/opencode").mkdir(parents=True)
    facts.save(git_repo)
    product.init(git_repo)

    assert (git_repo / "CLAUDE.md").read_text("utf-8") == "Hand-written.\n"
    for prompt in (claude.prompt(git_repo), opencode.prompt(git_repo)):
        assert (prompt.count(facts.BODY), prompt.count("Hand-written.")) == (1, 1)
    assert codex.prompt(git_repo).count(facts.BODY) == 1
    assert unexpected(git_repo) == []


def test_the_users_facts_are_in_the_file_that_opencode_reads(
    opencode: OpenCode, claude: Claude, product: Product, base: Path
) -> None:
    """Claude Code's, as long as there is none of its own; and each way the user's text stays."""
    own, theirs = opencode.home / ".config/opencode/AGENTS.md", opencode.home / ".claude/CLAUDE.md"
    own.parent.mkdir(parents=True)
    theirs.write_text("One.\n", "utf-8")
    make(base / "p", {"AGENTS.md": "Two."})
    product.init(base / "p")
    product.run("add", f"Everywhere. {facts.BODY}", "--scope", "global", cwd=base / "p")
    assert not own.exists()
    with opencode.serve() as server, product.service() as service:
        for place in (".", "sub/deep"):
            prompt = server.prompt(base / "p" / place)
            assert (prompt.count(facts.BODY), shown(prompt)) == (1, {"One.", "Two."})
        own.write_text("Outside.\n", "utf-8")
        service.until_in(own, facts.BODY)
        prompt = server.prompt(base / "p")
        assert (prompt.count(facts.BODY), shown(prompt)) == (1, {"Outside.", "Two."})
        assert claude.prompt(base / "p").count(facts.BODY) == 1


def test_the_users_facts_are_there_where_claudes_file_only_imports_them(
    opencode: OpenCode, claude: Claude, product: Product, base: Path
) -> None:
    """Claude Code follows the import, OpenCode needs an instruction instead."""
    (opencode.home / ".config/opencode").mkdir(parents=True)
    (opencode.home / ".codex/AGENTS.md").write_text("One.\n", "utf-8")
    (opencode.home / ".claude/CLAUDE.md").write_text("Two.\n\n@~/.codex/AGENTS.md\n", "utf-8")
    make(base / "p", {})
    product.init(base / "p")
    product.run("add", f"Everywhere. {facts.BODY}", "--scope", "global", cwd=base / "p")
    for prompt in (opencode.prompt(base / "p"), claude.prompt(base / "p")):
        counts = [prompt.count(text) for text in (facts.BODY, "One.", "Two.")]
        assert counts == [1, 1, 1]


def test_without_claude_code_opencode_gets_a_file_of_its_own(
    opencode: OpenCode, sealed_home: Path, base: Path
) -> None:
    own, theirs = sealed_home / ".config/opencode/AGENTS.md", sealed_home / ".claude/CLAUDE.md"
    own.parent.mkdir(parents=True)
    product = Product(sealed_home)
    make(base / "p", {})
    product.init(base / "p")
    product.run("add", f"Everywhere. {facts.BODY}", "--scope", "global", cwd=base / "p")
    assert not theirs.exists()
    with opencode.serve() as server:
        assert server.prompt(base / "p").count(facts.BODY) == 1
        theirs.parent.mkdir()
        theirs.write_text("One.\n", "utf-8")
        product.init(base / "p")
        prompt = server.prompt(base / "p")
    assert (prompt.count(facts.BODY), shown(prompt)) == (1, {"One."})
    assert not own.exists()


def test_its_own_file_is_there_on_request_and_that_makes_a_double(
    opencode: OpenCode, product: Product, base: Path
) -> None:
    make(base / "p", {"AGENTS.md": "One.", "opencode.json": '{"username": "somebody"}'})
    facts.save(base / "p")
    product.init(base / "p")
    told = product.run("sync", "--to", "opencode", cwd=base / "p")
    assert "twice" in json.dumps(told)
    assert unexpected(base / "p") == []
    with opencode.serve() as server:
        assert server.prompt(base / "p").count(facts.BODY) == 2
        product.run("sync", "--not-to", "opencode", cwd=base / "p")
        assert not (base / "p/.opencode/memory-bridge.md").exists()
        prompt = server.prompt(base / "p" / "sub")  # a directory whose settings it hasn't read yet
    assert (prompt.count(facts.BODY), shown(prompt)) == (1, {"One."})


def test_a_private_fact_is_in_no_file_that_opencode_reads(
    opencode: OpenCode, product: Product, base: Path
) -> None:
    make(base / "p", {"CLAUDE.md": "One."})
    (opencode.home / ".config/opencode").mkdir(parents=True)
    facts.save(base / "p")
    facts.save(base / "p", "Mine alone.", name="entries/20260102-0002-mine-0a1c.md", keys="type: user\n")
    product.init(base / "p")
    prompt = opencode.prompt(base / "p")
    assert (prompt.count(facts.BODY), prompt.count("Mine alone.")) == (1, 0)


def shown(prompt: OpenCodePrompt) -> set[str]:
    """Which texts of the user's a prompt holds; each must be there once."""
    counts = {text: prompt.count(text) for text in TEXTS}
    assert max(counts.values()) < 2
    return {text for text, count in counts.items() if count}


def make(root: Path, files: dict[str, str]) -> None:
    """A repository with these files in its first commit."""
    (root / "sub" / "deep").mkdir(parents=True)
    (root / "sub" / "deep" / "main.py").write_text("print('hello')\n", "utf-8")
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if text.startswith("-> "):
            path.symlink_to(text[3:])
        else:
            path.write_text(f"{text}\n", "utf-8")
    commands = (["init", "-q", "-b", "main"], ["add", "-A"], ["commit", "-q", "-m", "Start"])
    for command in commands:
        subprocess.run(["git", *command], cwd=root, check=True)


def unexpected(root: Path) -> list[str]:
    """What Git shows as changed, apart from the store and from tracked files that have the block now."""
    command = ["git", "status", "--porcelain", "-uall"]
    lines = subprocess.run(command, cwd=root, capture_output=True, text=True, check=True).stdout.splitlines()
    blocks = {f" M {name}" for name in ("AGENTS.md", "AGENTS.override.md", "CLAUDE.md")}
    return [line for line in lines if " .memory/" not in line and line not in blocks]
