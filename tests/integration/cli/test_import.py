"""`import` as it is typed: what it prints, its exit codes, and that the agents' files follow."""

from __future__ import annotations

from pathlib import Path

import pytest

from .conftest import Program

CORPUS = Path(__file__).parents[2] / "corpus"


@pytest.fixture
def notes(short_tmp: Path) -> Path:
    """Notes of somebody's, one of which resembles another."""
    root = short_tmp / "notes"
    root.mkdir()
    (root / "a.md").write_text("Use port 4999 for the tide service.\n")
    (root / "b.md").write_text("Use port 5000 for the tide service.\n")
    (root / "c.txt").write_text("No note.\n")
    return root


def test_what_was_imported_is_in_the_agents_files(program: Program, sealed_home: Path) -> None:
    (sealed_home / ".codex").mkdir()
    (program.cwd / "AGENTS.md").write_text("Be kind.\n")
    assert program("init", "--yes").code == 0
    ran = program("import", str(CORPUS / "rulesync"))
    assert ran.code == 0, ran.err
    assert "Added 4 facts from rulesync" in ran.out
    assert "3 shared, 1 private" in ran.out
    agents = (program.cwd / "AGENTS.md").read_text()
    assert "This project is a tide table." in agents
    assert "My editor is set to eighty columns." not in agents
    again = program("import", str(CORPUS / "rulesync"))
    assert (again.code, "Added 0 facts" in again.out, "4 duplicate" in again.out) == (0, True, True)
    assert (program.cwd / "AGENTS.md").read_text() == agents


def test_a_line_a_file_and_what_is_left_for_a_person(remembering: Program, notes: Path) -> None:
    told = remembering("import", str(notes), "--as", "markdown", "--dry-run", "--json")
    assert (told.code, told.json["data"]["dry_run"]) == (4, True)
    assert list((remembering.cwd / ".memory").iterdir()) == []
    done = remembering("import", str(notes), "--as", "markdown", "--json")
    assert done.code == 4
    assert done.json["data"]["counts"] == told.json["data"]["counts"]
    assert [(one["path"], one["outcome"]) for one in done.json["data"]["items"]] == [
        ("a.md", "added"),
        ("b.md", "review"),
        ("c.txt", "no fact"),
    ]
    assert any("agent-bridge review" in message["text"] for message in done.json["messages"])
    assert remembering("import", str(notes), "--as", "markdown").code == 0


def test_the_memory_of_all_projects_and_private(remembering: Program, notes: Path, sealed_home: Path) -> None:
    dry = remembering("import", str(notes / "a.md"), "--as", "markdown", "--scope", "global", "--dry-run")
    assert dry.code == 0
    assert dry.out.startswith("would be added: ")
    assert not (sealed_home / ".local/share").exists()
    words = ("import", str(notes / "a.md"), "--as", "markdown", "--scope", "global", "--private", "--json")
    data = remembering(*words).json["data"]
    assert (data["scope"], data["counts"]["added"], data["shared"]) == ("global", 1, 0)
    assert list((remembering.cwd / ".memory").iterdir()) == []


@pytest.mark.parametrize(
    ("words", "code", "error"),
    [
        (("import", "nowhere"), 1, "not_found"),
        (("import", ".git"), 2, "usage"),
        (("import", "."), 4, "refused"),
        (("import", ".memory"), 4, "refused"),
        (("import", "~nobody-has-this-name"), 2, "usage"),
    ],
)
def test_what_is_no_source(remembering: Program, words: tuple[str, ...], code: int, error: str) -> None:
    ran = remembering(*words, "--json")
    assert (ran.code, [one["code"] for one in ran.json["errors"]]) == (code, [error])


def test_a_project_without_a_memory_asks_for_init(program: Program) -> None:
    ran = program("import", str(CORPUS / "ruler"), "--json")
    assert (ran.code, ran.json["errors"][0]["code"]) == (4, "refused")
    assert not (program.cwd / ".memory").exists()
