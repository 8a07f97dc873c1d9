"""A saved fact is in the next session of Gemini CLI, once; its own notes come into the store.

The plainest set-ups are rows of the truth table.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from clients.rig import facts
from clients.rig.claude import Claude
from clients.rig.gemini import WRITES, Gemini, write_file
from clients.rig.product import Product

MAIN, SHARED, CLAUDE = "Of GEMINI.md, by hand.", "Of AGENTS.md, by hand.", "Of CLAUDE.md, by hand."
GLOBAL = "Spelling is British everywhere."
NOTE = "The desk is by the window, not the door."
AGENTS = {"AGENTS.md": f"{SHARED}\n"}
BOTH = AGENTS | {"GEMINI.md": f"{MAIN}\n"}
OWN = ".gemini/memory-bridge.md"


@dataclass(frozen=True, slots=True)
class Case:
    """A project's files and the settings' `context`; how often a fact is shown in (the root, `sub`).

    `user_text` is what of the user's is shown in the root, each once; `made` and `absent` are files that we
    do and don't make; `told` are the codes of the notices about Gemini CLI.
    """

    name: str
    files: Mapping[str, str]
    user_text: tuple[str, ...]
    shown: tuple[int, int] = (1, 1)
    user: Mapping[str, object] = field(default_factory=dict)
    project: Mapping[str, object] = field(default_factory=dict)
    made: tuple[str, ...] = ()
    absent: tuple[str, ...] = (OWN,)
    told: frozenset[str] = frozenset()


BELOW = frozenset({"gemini-names-below-root"})
CASES = (
    Case("no file", {}, (), made=("GEMINI.md", "AGENTS.md")),
    Case("it imports it as a path", BOTH | {"GEMINI.md": f"{MAIN}\n@./AGENTS.md\n"}, (MAIN, SHARED)),
    Case(
        "it imports claude-md, where the block is",
        BOTH | {"GEMINI.md": f"{MAIN}\n@CLAUDE.md\n", "CLAUDE.md": f"{CLAUDE}\n"},
        (MAIN, CLAUDE),
    ),
    Case(
        "it imports claude-md, which imports agents-md",
        BOTH | {"GEMINI.md": f"{MAIN}\n@CLAUDE.md\n", "CLAUDE.md": f"{CLAUDE}\n@AGENTS.md\n"},
        (MAIN, CLAUDE, SHARED),
    ),
    Case("a link to claude-md", AGENTS | {"CLAUDE.md": f"{CLAUDE}\n", "GEMINI.md": "->CLAUDE.md"}, (CLAUDE,)),
    Case("agents-md links to it", {"GEMINI.md": f"{MAIN}\n", "AGENTS.md": "->GEMINI.md"}, (MAIN,)),
    Case(
        "a name of the user's", AGENTS, (SHARED,), user={"fileName": ["AGENTS.md"]}, absent=(OWN, "GEMINI.md")
    ),
    Case(
        "a name of the project's",
        AGENTS,
        (SHARED,),
        shown=(1, 0),
        project={"fileName": ["AGENTS.md"]},
        absent=(OWN, "GEMINI.md"),
        told=BELOW,
    ),
    Case(
        "agents-md imports it",
        BOTH | {"AGENTS.md": f"{SHARED}\n@GEMINI.md\n"},
        (MAIN,),
        made=(OWN,),
        absent=(),
    ),
    Case("a stray backtick", BOTH | {"GEMINI.md": f"{MAIN}\nIt's ` here.\n"}, (MAIN, SHARED)),
    Case(
        "a stray backtick before and behind",
        BOTH | {"GEMINI.md": f"{MAIN} It's ` here.\n\n" + "{block}" + "and `here`.\n"},
        (MAIN,),
    ),
    Case(
        "agents-md can't be used",
        {"AGENTS.md/x": "", "GEMINI.md": f"{MAIN}\n"},
        (MAIN,),
        made=(OWN,),
        absent=(),
    ),
    Case("a nested one", BOTH | {"sub/GEMINI.md": "Deeper.\n"}, (MAIN, SHARED)),
)

_BLOCK = (
    "<!-- agent-bridge:memory:start (managed, do not edit) -->\n## Project memory\n\n"
    "<!-- agent-bridge:memory:end -->\n"
)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_each_fact_is_shown_once(gemini: Gemini, product: Product, git_repo: Path, case: Case) -> None:
    _lay_out(git_repo, {name: text.replace("{block}", _BLOCK) for name, text in case.files.items()})
    gemini.settings({"context": case.user})
    if case.project:
        _lay_out(git_repo, {".gemini/settings.json": json.dumps({"context": case.project})})
    product.init(git_repo)
    product.run("add", GLOBAL, "--scope", "global", cwd=git_repo)

    with product.service() as service:
        with service.change(git_repo):
            facts.save(git_repo)
        codes = {notice["code"] for notice in service.project(git_repo)["notices"]}

    prompts = [gemini.prompt(place) for place in (git_repo, git_repo / "sub")]
    assert tuple(prompt.count(facts.BODY) for prompt in prompts) == case.shown
    assert [prompt.count(GLOBAL) for prompt in prompts] == [1, 1]
    assert [prompts[0].count(text) for text in case.user_text] == [1] * len(case.user_text)
    assert {code for code in codes if code.startswith("gemini")} == case.told
    assert [name for name in case.made if not (git_repo / name).is_file()] == []
    assert [name for name in case.absent if (git_repo / name).exists()] == []
    untracked = _git(git_repo, "status", "--porcelain", "-uall").splitlines()
    assert [line for line in untracked if line.startswith("??") and ".memory" not in line] == []


def test_a_removed_fact_is_gone(gemini: Gemini, product: Product, git_repo: Path) -> None:
    _lay_out(git_repo, BOTH)
    before = (git_repo / "GEMINI.md").read_bytes()
    gemini.settings({})
    product.init(git_repo)
    with product.service() as service:
        with service.change(git_repo):
            saved = facts.save(git_repo)
        assert gemini.prompt(git_repo).count(facts.BODY) == 1
        with service.change(git_repo):
            saved.unlink()

    after = gemini.prompt(git_repo)

    assert (after.count(facts.BODY), after.count(MAIN)) == (0, 1)
    assert (git_repo / "GEMINI.md").read_bytes() == before


@pytest.mark.parametrize("text", ["@README.md", "@/etc/passwd", "see @./README.md", "`x` @README.md"])
def test_a_fact_imports_nothing(gemini: Gemini, product: Product, git_repo: Path, text: str) -> None:
    _lay_out(git_repo, BOTH | {"README.md": "Of the README.\n"})
    gemini.settings({})
    product.init(git_repo)
    facts.save(git_repo, f"{text} says so. {facts.BODY}")
    product.run("add", f"{text} says so everywhere.", "--scope", "global", cwd=git_repo)
    product.run("sync", cwd=git_repo)

    prompt = gemini.prompt(git_repo)

    assert (prompt.count(facts.BODY), prompt.count("says so everywhere.")) == (1, 1)
    assert (prompt.count("Of the README."), prompt.count("root:x:")) == (0, 0)
    assert prompt.count("Import failed") == 0


def test_claude_that_imports_gemini_md_has_the_fact_once(
    claude: Claude, gemini: Gemini, product: Product, git_repo: Path
) -> None:
    _lay_out(git_repo, BOTH | {"CLAUDE.md": f"{CLAUDE}\n@GEMINI.md\n"})
    gemini.settings({})
    product.init(git_repo)
    facts.save(git_repo)
    product.run("sync", cwd=git_repo)

    assert gemini.prompt(git_repo).count(facts.BODY) == 1
    assert claude.prompt(git_repo).count(facts.BODY) == 1


def test_private_notes_come_into_the_store_and_are_shown_once(
    gemini: Gemini, product: Product, git_repo: Path
) -> None:
    """They are its user's alone: no file of the project shows them, Gemini CLI goes on showing its own."""
    _lay_out(git_repo, BOTH)
    gemini.prompt(git_repo)
    slug = json.loads((gemini.home / ".gemini/projects.json").read_text("utf-8"))["projects"][str(git_repo)]
    memory = gemini.home / ".gemini/tmp" / slug / "memory"
    gemini.run(git_repo, [write_file(memory / "MEMORY.md", f"# Notes\n\n- {NOTE}\n")], arguments=WRITES)

    product.init(git_repo)
    product.run("sync", cwd=git_repo)

    kept = [fact for fact in product.run("list", cwd=git_repo)["data"]["facts"] if fact["source"] == "gemini"]
    assert [fact["private"] for fact in kept] == [True]
    assert gemini.prompt(git_repo).count(NOTE) == 1
    assert NOTE not in _git(git_repo, "diff")


def _lay_out(root: Path, files: Mapping[str, str]) -> None:
    (root / "sub").mkdir(exist_ok=True)
    (root / "sub/code.py").write_text("", "utf-8")
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if text.startswith("->"):
            path.symlink_to(text.removeprefix("->"))
        else:
            path.write_text(text, "utf-8")
    _git(root, "add", "-A")
    _git(root, "commit", "-q", "-m", "Instructions")


def _git(root: Path, *words: str) -> str:
    return subprocess.run(["git", *words], cwd=root, check=True, capture_output=True, text=True).stdout
