"""A saved fact is in the next session of both clients, once; in set-ups that the truth table doesn't have."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from clients.rig import facts
from clients.rig.claude import Claude
from clients.rig.codex import Codex
from clients.rig.product import Product

THEIRS = "Hand-written, and to be kept."


@dataclass(frozen=True, slots=True)
class Case:
    """A project's instruction files, and how often a fact is seen by whom.

    `files` maps a path below the root to its text; a text that begins with "->" is a link. The counts are
    those in (the root, the directory `sub`).
    """

    name: str
    files: dict[str, str]
    claude: tuple[int, int] = (1, 1)
    codex: tuple[int, int] = (1, 1)
    absent: tuple[str, ...] = ()
    config: str = ""
    """Codex's config.toml; {root} stands for the project."""
    told: frozenset[str] = frozenset()
    """Codes of the notices in `status`: the two exceptions that the design names, a project that Codex is not
    to trust, and nothing else."""


IMPORT, NESTED = frozenset({"claude-import-below-root"}), frozenset({"claude-nested"})
AGENTS = {"AGENTS.md": f"# Agents\n\n{THEIRS}\n"}
CLAUDE = {"CLAUDE.md": "# Claude\n\nMine too.\n"}

CASES = (
    Case("both files", AGENTS | CLAUDE),
    Case("no file at all", {}, absent=("CLAUDE.md",)),
    Case("an import", AGENTS | {"CLAUDE.md": "# Claude\n\n@AGENTS.md\n"}, claude=(1, 0), told=IMPORT),
    Case("a parent's claude-md", AGENTS | {"../CLAUDE.md": "Mine too.\n"}, absent=("CLAUDE.md",)),
    Case("a nested claude-md", AGENTS | {"sub/CLAUDE.md": "Mine too.\n"}, claude=(1, 0), told=NESTED),
    Case("an empty override", AGENTS | CLAUDE | {"AGENTS.override.md": ""}),
    Case(
        "a fallback name",
        {"TEAM.md": "Ours.\n"},
        absent=("CLAUDE.md",),
        config='project_doc_fallback_filenames = ["TEAM.md"]\n',
    ),
    Case(
        "an untrusted project",
        AGENTS | CLAUDE,
        codex=(0, 0),
        config='[projects."{root}"]\ntrust_level = "untrusted"\n',
        told=frozenset({"codex-untrusted"}),
    ),
)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_each_client_has_the_fact_once(
    claude: Claude, codex: Codex, product: Product, git_repo: Path, case: Case
) -> None:
    _lay_out(git_repo, case.files)
    if case.config:
        (codex.home / ".codex/config.toml").write_text(case.config.replace("{root}", str(git_repo)), "utf-8")
    product.init(git_repo)

    with product.service() as service:
        with service.change(git_repo):
            facts.save(git_repo)
        told = {notice["code"] for notice in service.project(git_repo)["notices"]}

    places = (git_repo, git_repo / "sub")
    prompts = [claude.prompt(place) for place in places]
    assert tuple(prompt.count(facts.BODY) for prompt in prompts) == case.claude
    assert tuple(codex.prompt(place).count(facts.BODY) for place in places) == case.codex
    assert [_index_lines(prompt.memory_index) for prompt in prompts] == [1, 1]
    assert [name for name in case.absent if (git_repo / name).exists()] == []
    assert told == case.told


def test_a_removed_fact_is_gone_from_both(
    claude: Claude, codex: Codex, product: Product, git_repo: Path
) -> None:
    _lay_out(git_repo, AGENTS | CLAUDE)
    product.init(git_repo)
    with product.service() as service:
        with service.change(git_repo):
            saved = facts.save(git_repo)
        assert claude.prompt(git_repo).count(facts.BODY) == 1
        assert codex.prompt(git_repo).count(facts.BODY) == 1
        with service.change(git_repo):
            saved.unlink()

    after = claude.prompt(git_repo)
    assert after.count(facts.BODY) == 0
    assert _index_lines(after.memory_index) == 0
    assert codex.prompt(git_repo).count(facts.BODY) == 0
    assert (git_repo / "AGENTS.md").read_text("utf-8").startswith(AGENTS["AGENTS.md"])


def test_a_session_in_a_worktree_has_the_fact_once(
    claude: Claude, codex: Codex, product: Product, git_repo: Path
) -> None:
    _lay_out(git_repo, AGENTS | CLAUDE)
    worktree = git_repo.with_name("branch")
    subprocess.run(["git", "worktree", "add", "-q", str(worktree)], cwd=git_repo, check=True)
    product.init(git_repo)

    with product.service() as service:
        facts.save(git_repo)
        for name in ("AGENTS.md", "CLAUDE.md"):
            service.until_in(worktree / name, facts.BODY)

    prompt = claude.prompt(worktree)
    assert (prompt.count(facts.BODY), _index_lines(prompt.memory_index)) == (1, 1)
    assert codex.prompt(worktree).count(facts.BODY) == 1


@pytest.mark.parametrize(
    ("text", "needle"),
    [
        ("Spelling is British here.", "Spelling is British here."),
        ("# Spelling\n\nBritish. It is colour, in code too.", "It is colour, in code too."),
    ],
    ids=["one line", "title and body"],
)
def test_a_fact_of_both_scopes_is_there_once(
    claude: Claude, codex: Codex, product: Product, git_repo: Path, text: str, needle: str
) -> None:
    _lay_out(git_repo, AGENTS | CLAUDE)
    elsewhere = git_repo.with_name("elsewhere")
    elsewhere.mkdir()
    product.init(git_repo)
    product.run("add", text, "--scope", "global", cwd=git_repo)
    product.run("add", text, cwd=git_repo)

    with product.service():
        pass

    for place in (git_repo, git_repo / "sub", elsewhere):
        prompt = claude.prompt(place)
        assert prompt.count(needle) - (prompt.memory_index or "").count(needle) == 1
        assert codex.prompt(place).count(needle) == 1


def _in_place(path: Path, body: str) -> None:
    data = facts.text(body).encode()
    with path.open("r+b") as file:
        file.write(data)
        file.truncate()


def _truncate_and_write(path: Path, body: str) -> None:
    path.write_text(facts.text(body), "utf-8")


def _rename_over(path: Path, body: str) -> None:
    beside = path.with_name(".release-day.swp")
    beside.write_text(facts.text(body), "utf-8")
    beside.replace(path)


def _sed(path: Path, body: str) -> None:
    subprocess.run(["sed", "-i", f"s/{facts.BODY}/{body}/", str(path)], check=True)


def _append(path: Path, body: str) -> None:
    with path.open("a", encoding="utf-8") as file:
        file.write(f"\n{body}\n")


@pytest.mark.parametrize("save", [_in_place, _truncate_and_write, _rename_over, _sed, _append])
def test_any_editors_way_of_saving(
    product: Product, git_repo: Path, save: Callable[[Path, str], None]
) -> None:
    _lay_out(git_repo, AGENTS | CLAUDE)
    product.init(git_repo)
    changed = "From now on they leave on Fridays."

    with product.service() as service:
        saved = facts.save(git_repo)
        service.until_in(git_repo / "AGENTS.md", facts.BODY)
        save(saved, changed)
        for name in ("AGENTS.md", "CLAUDE.md"):
            service.until_in(git_repo / name, changed)
            service.until_in(git_repo / name, facts.BODY, count=1 if save is _append else 0)


def _lay_out(root: Path, files: dict[str, str]) -> None:
    (root / "sub").mkdir()
    (root / "sub/code.py").write_text("", "utf-8")
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if text.startswith("->"):
            path.symlink_to(text.removeprefix("->"))
        else:
            path.write_text(text, "utf-8")
    subprocess.run(["git", "add", "-A"], cwd=root, check=True)
    subprocess.run(["git", "commit", "-q", "--allow-empty", "-m", "Instructions"], cwd=root, check=True)


def _index_lines(index: str | None) -> int:
    return (index or "").count(f"({facts.NAME})")
