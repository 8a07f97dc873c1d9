"""The truth table: whatever instruction files a project and its user have, each client has each fact once.

Each row is a project; each cell a new session of a real client, in the root or in the directory `sub`. All of
the user's own texts that such a session showed before the product was set up, it has to show afterwards. All
four clients are in use; a project's fact and one of the user's are remembered.
"""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from clients.rig import facts
from clients.rig.claude import Claude
from clients.rig.codex import Codex
from clients.rig.gemini import Gemini
from clients.rig.opencode import OpenCode
from clients.rig.product import Product
from clients.rig.prompt import Prompt

EVERYWHERE = "Commit messages end with the number of a ticket, in brackets."
TEXTS = ("Alpha.", "Bravo.", "Charlie.", "Delta.")
"""What the user wrote, one word a file, so that each file can be told in a prompt."""

HIDING = ("CLAUDE.md", ".claude/CLAUDE.md", "CLAUDE.local.md", "AGENTS.override.md")
"""Each of these would hide AGENTS.md from a client: the product makes none."""

Counts = tuple[int, int]
"""How often a fact is shown in sessions started in (the root, the directory `sub`)."""

ONCE: Counts = (1, 1)


@dataclass(frozen=True, slots=True)
class Row:
    """A project's files, and the cells that aren't (1, 1).

    `files`: path below the root (or below the home, for `home`) to its text; "-> X" is a link to X.
    `told`: the exceptions, by the codes of their notices, that the product tells of here.
    """

    name: str
    files: Mapping[str, str] = field(default_factory=dict)
    home: Mapping[str, str] = field(default_factory=dict)
    apart: Mapping[str, Counts] = field(default_factory=dict)
    told: frozenset[str] = frozenset()
    foreign: str = ""
    """"repository" or "submodule": what `sub` is."""


AGENTS = {"AGENTS.md": "Alpha."}
CLAUDE = {"CLAUDE.md": "Bravo."}
DOTFILES = {
    "dotfiles/AGENTS.md": "Delta.",
    ".claude/CLAUDE.md": "-> ../dotfiles/AGENTS.md",
    ".codex/AGENTS.md": "-> ../dotfiles/AGENTS.md",
    ".gemini/GEMINI.md": "-> ../dotfiles/AGENTS.md",
    ".config/opencode/AGENTS.md": "-> ../../dotfiles/AGENTS.md",
}

ROWS = (
    Row("no file"),
    Row("AGENTS.md", AGENTS),
    Row("CLAUDE.md", CLAUDE),
    Row("both", AGENTS | CLAUDE),
    Row(
        "an import",
        AGENTS | {"CLAUDE.md": "Bravo.\n\n@AGENTS.md"},
        apart={"claude": (1, 0)},
        told=frozenset({"claude-import-below-root"}),
    ),
    Row("CLAUDE.md is AGENTS.md", AGENTS | {"CLAUDE.md": "-> AGENTS.md"}),
    Row("AGENTS.md is CLAUDE.md", CLAUDE | {"AGENTS.md": "-> CLAUDE.md"}),
    Row(".claude/CLAUDE.md", AGENTS | {".claude/CLAUDE.md": "Bravo."}),
    Row(".claude/CLAUDE.md alone", {".claude/CLAUDE.md": "Bravo."}),
    Row("CLAUDE.local.md", AGENTS | {"CLAUDE.local.md": "Bravo."}),
    Row("AGENTS.override.md", AGENTS | CLAUDE | {"AGENTS.override.md": "Charlie."}),
    Row("GEMINI.md", {"GEMINI.md": "Charlie."}),
    Row("GEMINI.md and both", AGENTS | CLAUDE | {"GEMINI.md": "Charlie."}),
    Row("GEMINI.md is AGENTS.md", AGENTS | {"GEMINI.md": "-> AGENTS.md"}),
    Row("GEMINI.md imports AGENTS.md", AGENTS | {"GEMINI.md": "Charlie.\n\n@AGENTS.md"}),
    Row("all are one", AGENTS | {"GEMINI.md": "-> AGENTS.md", "CLAUDE.md": "-> AGENTS.md"}),
    Row("a nested AGENTS.md", AGENTS | CLAUDE | {"sub/AGENTS.md": "Charlie."}),
    Row("a nested AGENTS.md alone", {"sub/AGENTS.md": "Charlie."}),
    # Claude Code reads the CLAUDE.md of every directory above, whatever repository that belongs to.
    Row(
        "a foreign repository",
        AGENTS | CLAUDE | {"sub/AGENTS.md": "Charlie."},
        foreign="repository",
        apart={"claude": ONCE},
    ),
    Row(
        "a submodule",
        AGENTS | CLAUDE | {"sub/AGENTS.md": "Charlie."},
        foreign="submodule",
        apart={"claude": ONCE},
    ),
    Row("one global file", AGENTS, home=DOTFILES),
    Row(
        "one global file for two",
        CLAUDE,
        home={".codex/AGENTS.md": "Delta.", ".claude/CLAUDE.md": "-> ../.codex/AGENTS.md"},
    ),
)

BEFORE: Mapping[str, Mapping[str, str]] = {
    "no file": {"claude": "- -", "codex": "- -", "gemini": "- -", "opencode": "- -"},
    "AGENTS.md": {"claude": "A A", "codex": "A A", "gemini": "- -", "opencode": "A A"},
    "CLAUDE.md": {"claude": "B B", "codex": "- -", "gemini": "- -", "opencode": "B B"},
    "both": {"claude": "B B", "codex": "A A", "gemini": "- -", "opencode": "A A"},
    "an import": {"claude": "AB B", "codex": "A A", "gemini": "- -", "opencode": "A A"},
    "CLAUDE.md is AGENTS.md": {"claude": "A A", "codex": "A A", "gemini": "- -", "opencode": "A A"},
    "AGENTS.md is CLAUDE.md": {"claude": "B B", "codex": "B B", "gemini": "- -", "opencode": "B B"},
    ".claude/CLAUDE.md": {"claude": "B B", "codex": "A A", "gemini": "- -", "opencode": "A A"},
    ".claude/CLAUDE.md alone": {"claude": "B B", "codex": "- -", "gemini": "- -", "opencode": "- -"},
    "CLAUDE.local.md": {"claude": "B B", "codex": "A A", "gemini": "- -", "opencode": "A A"},
    "AGENTS.override.md": {"claude": "B B", "codex": "C C", "gemini": "- -", "opencode": "A A"},
    "GEMINI.md": {"claude": "- -", "codex": "- -", "gemini": "C C", "opencode": "- -"},
    "GEMINI.md and both": {"claude": "B B", "codex": "A A", "gemini": "C C", "opencode": "A A"},
    "GEMINI.md is AGENTS.md": {"claude": "A A", "codex": "A A", "gemini": "A A", "opencode": "A A"},
    "GEMINI.md imports AGENTS.md": {"claude": "A A", "codex": "A A", "gemini": "AC AC", "opencode": "A A"},
    "all are one": {"claude": "A A", "codex": "A A", "gemini": "A A", "opencode": "A A"},
    "a nested AGENTS.md": {"claude": "B B", "codex": "A AC", "gemini": "- -", "opencode": "A AC"},
    "a nested AGENTS.md alone": {"claude": "- C", "codex": "- C", "gemini": "- -", "opencode": "- C"},
    "a foreign repository": {"claude": "B B", "codex": "A C", "gemini": "- -", "opencode": "A C"},
    "a submodule": {"claude": "B B", "codex": "A C", "gemini": "- -", "opencode": "A C"},
    "one global file": {"claude": "AD AD", "codex": "AD AD", "gemini": "D D", "opencode": "AD AD"},
    "one global file for two": {"claude": "BD BD", "codex": "D D", "gemini": "- -", "opencode": "BD BD"},
}
"""What sessions in the root and in `sub` showed of the user's texts, by their first letters, before the
product was set up: found by running them."""

Ask = Callable[[Path], Prompt]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_each_client_has_each_fact_once_and_every_text_of_the_users(
    claude: Claude, codex: Codex, gemini: Gemini, product: Product, git_repo: Path, row: Row
) -> None:
    ask: dict[str, Ask] = {"claude": claude.prompt, "codex": codex.prompt, "gemini": gemini.prompt}
    _use_all(claude.home)
    _lay_out(git_repo, row)

    told = _remember(product, git_repo)

    prompts = _asked(ask, git_repo)
    assert _counts(prompts, facts.BODY) == _expected(row, ask)
    assert _counts(prompts, EVERYWHERE) == dict.fromkeys(ask, ONCE)
    assert _lost(_before(row), prompts) == {}
    assert {code for code in told if code.startswith(("claude", "codex", "gemini"))} == row.told
    assert [name for name in HIDING if (git_repo / name).exists() and name not in row.files] == []


@pytest.mark.parametrize("part", range(2))
def test_so_has_opencode(opencode: OpenCode, product: Product, git_repo: Path, part: int) -> None:
    """Its rows share a server: a start takes as long as all the rest."""
    rows = [row for row in ROWS if not row.home][part::2] + [row for row in ROWS if row.home][part : part + 1]
    names = [row.name for row in rows]
    _use_all(opencode.home)
    roots = {}
    for number, row in enumerate(rows):
        roots[row.name] = git_repo.with_name(f"project-{number}")
        subprocess.run(["git", "clone", "-q", str(git_repo), str(roots[row.name])], check=True)
        _lay_out(roots[row.name], row)
    for row in rows:
        _remember(product, roots[row.name])
    with opencode.serve() as server:
        after = {row.name: _asked({"opencode": server.prompt}, roots[row.name]) for row in rows}

    assert {row.name: _counts(after[row.name], facts.BODY) for row in rows} == {
        row.name: _expected(row, ("opencode",)) for row in rows
    }
    everywhere = {row.name: _counts(after[row.name], EVERYWHERE)["opencode"] for row in rows}
    assert everywhere == dict.fromkeys(names, ONCE)
    assert {row.name: _lost(_before(row), after[row.name]) for row in rows} == {name: {} for name in names}


def _use_all(home: Path) -> None:
    """What shows that somebody uses the four clients."""
    for name in (".claude", ".codex", ".gemini", ".config/opencode"):
        (home / name).mkdir(parents=True, exist_ok=True)


def _lay_out(root: Path, row: Row) -> None:
    (root / "sub").mkdir()
    if row.foreign == "submodule":
        elsewhere = root.with_name(f"{root.name} elsewhere")
        elsewhere.mkdir()
        _git(elsewhere, "init", "-q", "-b", "main")
        _git(elsewhere, "commit", "-q", "--allow-empty", "-m", "Start")
        (root / "sub").rmdir()
        _git(root, "-c", "protocol.file.allow=always", "submodule", "add", "-q", str(elsewhere), "sub")
    elif row.foreign:
        _git(root / "sub", "init", "-q", "-b", "main")
    for base, files in ((root, row.files), (_home_of(root), row.home)):
        for name, text in files.items():
            path = base / name
            path.parent.mkdir(parents=True, exist_ok=True)
            if text.startswith("-> "):
                path.symlink_to(text.removeprefix("-> "))
            else:
                path.write_text(f"{text}\n", "utf-8")


def _home_of(root: Path) -> Path:
    return root.parent


def _remember(product: Product, root: Path) -> set[str]:
    """Set the project up and remember both facts; the codes of all that is told of the project."""
    product.init(root)
    facts.save(root)
    product.run("add", f"For all. {EVERYWHERE}", "--scope", "global", cwd=root, exit_codes=(0, 1))
    report = product.run("sync", cwd=root)["data"]["reports"][0]
    return {notice["code"] for notice in report["notices"]}


def _asked(ask: Mapping[str, Ask], root: Path) -> dict[str, tuple[Prompt, Prompt]]:
    return {name: (prompt(root), prompt(root / "sub")) for name, prompt in ask.items()}


def _before(row: Row) -> dict[str, tuple[set[str], set[str]]]:
    def texts(letters: str) -> set[str]:
        return {text for text in TEXTS if text[0] in letters}

    cells = {name: said.split() for name, said in BEFORE[row.name].items()}
    return {name: (texts(root), texts(below)) for name, (root, below) in cells.items()}


def _shown(prompt: Prompt) -> set[str]:
    return {text for text in TEXTS if prompt.count(text)}


def _counts(prompts: Mapping[str, tuple[Prompt, Prompt]], body: str) -> dict[str, Counts]:
    return {name: (one.count(body), other.count(body)) for name, (one, other) in prompts.items()}


def _expected(row: Row, clients: Mapping[str, Ask] | tuple[str, ...]) -> dict[str, Counts]:
    # A repository in a directory of the project is somebody else's: a session there has none of its facts.
    usual = (1, 0) if row.foreign else ONCE
    return {name: row.apart.get(name, usual) for name in clients}


def _lost(
    before: Mapping[str, tuple[set[str], set[str]]], after: Mapping[str, tuple[Prompt, Prompt]]
) -> dict[str, tuple[set[str], set[str]]]:
    """The user's texts that a client showed before and doesn't show any more."""
    missing = {
        name: (seen[0] - _shown(after[name][0]), seen[1] - _shown(after[name][1]))
        for name, seen in before.items()
        if name in after
    }
    return {name: lost for name, lost in missing.items() if any(lost)}


def _git(directory: Path, *words: str) -> None:
    subprocess.run(["git", *words], cwd=directory, check=True)
