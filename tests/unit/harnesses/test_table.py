"""The table of harnesses: complete, sourced, and nothing in it that leads astray."""

from __future__ import annotations

from dataclasses import replace
from datetime import date
from urllib.parse import urlsplit

import pytest

import readme
from agent_bridge.harnesses import all_harnesses
from agent_bridge.harnesses.row import AGENTS, OwnFile, Row, Setting, problem, way
from agent_bridge.harnesses.table import ROWS

REQUIRED = {
    *("cursor", "copilot", "copilot-cli", "copilot-agent", "windsurf", "cline", "roo", "kiro", "junie"),
    *("zed", "amp", "goose", "qwen", "aider", "continue", "factory"),
}
GOOD = Row(name="thing", title="Thing", source="https://thing.example/docs", as_of="2026-11-29")


def named(row: Row) -> str:
    return row.name


def test_the_harnesses_that_were_asked_for_are_there() -> None:
    assert {row.name for row in ROWS} >= REQUIRED


def test_names_are_unique_among_all_harnesses() -> None:
    names = [harness.name for harness in all_harnesses()]

    assert len(set(names)) == len(names)
    assert {row.name for row in ROWS} <= set(names)


@pytest.mark.parametrize("row", ROWS, ids=named)
def test_each_row_is_right_and_says_where_that_is_known_from(row: Row) -> None:
    assert problem(row) == ""
    address = urlsplit(row.source)
    assert address.scheme == "https"
    assert "." in address.netloc
    assert date(2025, 1, 1) < date.fromisoformat(row.as_of) <= date(2026, 11, 29)
    assert way(row)
    assert row.certain or row.doubt


@pytest.mark.parametrize("row", ROWS, ids=named)
def test_a_row_writes_nothing_of_its_own_where_agents_md_suffices(row: Row) -> None:
    assert row.shares or row.own is not None
    if row.own is not None and row.own.kind == "own":
        assert "agent-bridge" in row.own.path
        assert row.own.header == "" or row.own.header.startswith("---\n")
        assert row.own.header == "" or row.own.header.endswith("\n---\n\n")
    if row.first_only:
        assert AGENTS in row.reads


@pytest.mark.parametrize(
    ("row", "word"),
    [
        (replace(GOOD, name="Thing"), "lower-case"),
        (replace(GOOD, name=""), "lower-case"),
        (replace(GOOD, name=7), "texts"),  # type: ignore[arg-type]
        (replace(GOOD, title=" "), "title"),
        (replace(GOOD, source=""), "source"),
        (replace(GOOD, as_of="yesterday"), "day"),
        (replace(GOOD, homes=["x"]), "tuples"),  # type: ignore[arg-type]
        (replace(GOOD, homes=("/etc",)), "below"),
        (replace(GOOD, homes=("",)), "below"),
        (replace(GOOD, reads=("AGENTS.md", "../x")), "below"),
        (replace(GOOD, reads=("AGENTS.md", 7)), "below"),  # type: ignore[arg-type]
        (replace(GOOD, own=OwnFile("/etc/passwd")), "below"),
        (replace(GOOD, own=OwnFile("a/../../b")), "below"),
        (replace(GOOD, own=OwnFile(".git/config")), "below"),
        (replace(GOOD, own=OwnFile(".GIT/hooks/x")), "below"),
        (replace(GOOD, own=OwnFile(".memory/x.md")), "below"),
        (replace(GOOD, own=OwnFile("a\nb")), "below"),
        (replace(GOOD, user_file=OwnFile("../x")), "below"),
        (replace(GOOD, setting=Setting(("~/../x",), "advice")), "below"),
        (replace(GOOD, programs=("/bin/sh",)), "programs"),
        (replace(GOOD, reads=()), "neither"),
    ],
)
def test_a_row_that_cant_be_right_is_found(row: Row, word: str) -> None:
    assert problem(GOOD) == ""
    assert word in problem(row)


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        (GOOD, "AGENTS.md"),
        (replace(GOOD, own=OwnFile(".thing/x.md")), "AGENTS.md; else .thing/x.md"),
        (replace(GOOD, reads=(), own=OwnFile(".thing/x.md")), ".thing/x.md"),
        (replace(GOOD, reads=(".rules", AGENTS, "B.md"), first_only=True), "the first of .rules, AGENTS.md"),
        (replace(GOOD, reads=(AGENTS, "B.md"), first_only=True), "AGENTS.md"),
        (replace(GOOD, remote=True), "AGENTS.md, once Git tracks it"),
        (replace(GOOD, reads=(), setting=Setting((".x.yml",), "")), "AGENTS.md, once .x.yml names it"),
    ],
)
def test_how_memory_reaches_it_in_words(row: Row, expected: str) -> None:
    assert way(row) == expected


def readme_lines() -> list[str]:
    """The README's table as it should be; print these to write it anew."""
    lines = ["| name | program | memory reaches it by | for all projects | known from | as of |"]
    lines.append("|---|---|---|---|---|---|")
    for row in ROWS:
        user = f"`~/{row.user_file.path}`" if row.user_file else ""
        page = f"[{urlsplit(row.source).netloc.removeprefix('www.')}]({row.source})"
        day = row.as_of if row.certain else f"{row.as_of} ?"
        lines.append(f"| `{row.name}` | {row.title} | {way(row)} | {user} | {page} | {day} |")
    return lines


def test_the_readme_shows_the_table() -> None:
    _, _, rest = readme.TEXT.partition("<!-- harnesses -->\n")

    assert rest.partition("<!-- /harnesses -->")[0].splitlines() == readme_lines()
