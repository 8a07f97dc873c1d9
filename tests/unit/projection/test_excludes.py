"""The lines of info/exclude: order, escaping, and what can't be expressed."""

from __future__ import annotations

from pathlib import PurePath

import pytest

from agent_bridge.projection.excludes import escape, exclude_lines, needs_line


def test_everything_is_left_out_before_what_is_shared_is_let_in() -> None:
    lines = exclude_lines(shared=["entries/b.md", "conventions.md", "entries/a.md"])
    assert lines == [
        "/.memory/**/*.[mM][dD]",
        "/.memory/**/*.[mM][dD]?*",
        "/.memory/index.json",
        "!/.memory/conventions.md",
        "!/.memory/entries/a.md",
        "!/.memory/entries/b.md",
        ".*.agent-bridge.tmp",
    ]


def test_a_local_store_is_left_out_whole_whatever_was_judged() -> None:
    lines = exclude_lines(local=True, shared=["entries/a.md"], created=["AGENTS.md"])
    assert lines == ["/.memory/", "/AGENTS.md", ".*.agent-bridge.tmp"]


def test_created_files_are_anchored_and_told_once() -> None:
    made: list[PurePath | str] = [PurePath(".claude/rules/agent-bridge.md"), "AGENTS.md", "AGENTS.md"]
    lines = exclude_lines(created=made)
    assert lines[3:] == ["/.claude/rules/agent-bridge.md", "/AGENTS.md", ".*.agent-bridge.tmp"]


@pytest.mark.parametrize(
    ("name", "pattern"),
    [
        ("plain.md", "plain.md"),
        ("with blank.md", "with blank.md"),
        ("!bang.md", "!bang.md"),
        ("#hash.md", "#hash.md"),
        ("[a].md", "\\[a].md"),
        ("st*r?.md", "st\\*r\\?.md"),
        ("back\\slash.md", "back\\\\slash.md"),
        ("end  ", "end\\ \\ "),
        ("ümläut.md", "ümläut.md"),
    ],
)
def test_names_as_exact_patterns(name: str, pattern: str) -> None:
    assert escape(name) == pattern


@pytest.mark.parametrize("name", ["line\nbreak.md", "return\r", "byte\udcff.md", "\\\n.md"])
def test_what_has_no_exact_pattern_stays_out(name: str) -> None:
    assert escape(name) is None
    assert exclude_lines(shared=[name]) == exclude_lines()


def test_a_created_file_without_exact_pattern_is_left_out_by_a_wider_one() -> None:
    assert "/a?b.md" in exclude_lines(created=["a\nb.md"])


def test_a_line_stays_as_long_as_it_is_why_the_file_is_ignored() -> None:
    name = ".claude/settings.local.json"
    assert needs_line(name, ignored=False, present=b"")
    assert not needs_line(name, ignored=True, present=b"*.log\n")
    assert needs_line(name, ignored=True, present=b"*.log\n/.claude/settings.local.json\n")
