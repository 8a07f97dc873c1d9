"""What was observed, as values: a file under two names, why one can't be read, an answer worked out once."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from agent_bridge.harnesses.base import FileKind, InstructionFile, Site

HERE = Path("/p/AGENTS.md")
FILE = InstructionFile("AGENTS.md", HERE, HERE, FileKind.FILE, b"text", identity=(1, 2))


@pytest.mark.parametrize(
    ("other", "same"),
    [
        (replace(FILE, name="CLAUDE.md", path=Path("/p/CLAUDE.md"), real=Path("/p/CLAUDE.md")), True),
        (replace(FILE, identity=(1, 3)), False),
        (replace(FILE, kind=FileKind.ABSENT, identity=None), False),
    ],
    ids=["hard link", "replaced", "gone"],
)
def test_one_file_has_one_identity(other: InstructionFile, same: bool) -> None:
    assert FILE.is_same(other) is same
    assert other.is_same(FILE) is same


def test_files_that_are_not_there_are_told_apart_by_where_they_would_lie() -> None:
    absent = replace(FILE, kind=FileKind.ABSENT, identity=None)
    link = replace(absent, path=Path("/p/CLAUDE.md"), kind=FileKind.DANGLING)
    assert absent.is_same(link)
    assert not absent.is_same(replace(link, real=Path("/p/other.md")))


@pytest.mark.parametrize(
    ("kind", "problem", "why"),
    [
        (FileKind.FILE, "", ""),
        (FileKind.SYMLINK, "", ""),
        (FileKind.ABSENT, "", ""),
        (FileKind.LINKED_DIRECTORY, "", "it is a linked directory"),
        (FileKind.OTHER, "Permission denied", "Permission denied"),
    ],
)
def test_why_a_file_has_no_bytes(kind: FileKind, problem: str, why: str) -> None:
    assert replace(FILE, kind=kind, problem=problem).why_unreadable == why


def test_an_answer_is_worked_out_once_for_a_site_and_anew_for_another() -> None:
    asked: list[str] = []

    def answer() -> int:
        asked.append("")
        return len(asked)

    site = Site(None, Path("/p"))
    assert [site.once("a", answer), site.once("a", answer), site.once("b", answer)] == [1, 1, 2]
    other = replace(site, is_git=False)
    assert other.once("a", answer) == 3
    assert site == replace(site)
