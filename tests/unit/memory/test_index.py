"""MEMORY.md: one line a fact, people's lines win, nothing of theirs is lost; index.json keeps its schema."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_bridge.memory.fact import Fact
from agent_bridge.memory.index import MAX_CHARACTERS, MAX_LINES, index_json, render_index

NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
COMMENT = re.compile(r"<!-- agent-bridge:index \S* -->\n?")


def fact(path: str, title: str = "", hook: str = "", **more: object) -> Fact:
    return Fact(path=path, id=path.removesuffix(".md"), title=title or path, hook=hook, body="body", **more)  # type: ignore[arg-type]


def render(current: str | None, *facts: Fact, now: datetime = NOW) -> str:
    return render_index(current, facts, now=now).text


def visible(text: str) -> str:
    """The file as Claude shows it to its model: without comments."""
    return COMMENT.sub("", text)


PORTS = fact("ports.md", "Ports", "Which ones are taken.")
TABS = fact("entries/tabs.md", "Tabs")

TEXTS = st.one_of(
    st.text(max_size=30),
    st.sampled_from(
        ["a](b.md)", "[x]", "<!-- open", "-->", "a\nb", "\x1b\u202e", "\U0001f600" * 40, "- [x](a.md)"]
    ),
)
PATHS = st.one_of(
    st.sampled_from(
        ["a.md", "b.md", "entries/c d.md", "e(1).md", "100%25.md", "x<y>.md", "é\udcff.md", "(.md", "n\nl.md"]
    ),
    st.from_regex(r"[a-z]{1,8}\.md", fullmatch=True),
)
FACTS = st.lists(
    st.builds(
        lambda path, title, hook, description, native: fact(
            path, title, hook, description=description, native=native, updated_at="2026-01-01T00:00:00.000Z"
        ),
        PATHS,
        TEXTS,
        TEXTS,
        TEXTS,
        st.booleans(),
    ),
    max_size=8,
    unique_by=lambda one: one.path,
)
OTHER_LINES = st.lists(
    st.sampled_from(
        [
            "# Memory Index",
            "Text of a person.",
            "- plain item",
            "- [Theirs](a.md) — their words",
            "- [Docs](conventions.md) — kept",
            "- [Out](https://example.invalid/x.md)",
            "* [Theirs](<entries/c d.md>)",
            "",
            "---",
        ]
    ),
    max_size=10,
)


@given(OTHER_LINES, FACTS)
def test_each_fact_has_exactly_one_line_and_no_text_is_lost(lines: list[str], facts: list[Fact]) -> None:
    current = "\n".join(lines)
    result = render_index(current, facts, now=NOW)
    shown = visible(result.text).split("\n")
    assert result.left_out == 0
    assert sorted(filter(str.strip, set(lines))) == sorted(
        {line for line in shown if line in lines and line.strip()}
    )
    theirs = {line for line in lines if line.startswith(("- [Theirs]", "* [Theirs]"))}
    ours = [line for line in shown if line.startswith("- [") and line not in lines]
    covered = {"a.md" if "a.md" in line else "entries/c d.md" for line in theirs} & {
        one.path for one in facts
    }
    assert len(ours) == len(facts) - len(covered)


@given(OTHER_LINES, FACTS, FACTS)
def test_rendering_again_changes_nothing_and_forgets_what_is_gone(
    lines: list[str], facts: list[Fact], later: list[Fact]
) -> None:
    once = render("\n".join(lines), *facts)
    once.encode()
    assert render(once, *facts) == once
    assert render(render(once, *later), *facts) == render(render(render(once, *later), *facts), *facts)
    only_text = "\n".join(line for line in lines if "Theirs" not in line)
    assert render(render(only_text, *facts), *later) == render(only_text, *later)


@given(
    st.integers(0, 400), st.integers(0, 300), st.integers(1, 120), st.sampled_from(["x", "é", "\U0001f600"])
)
def test_limits_of_lines_and_characters(count: int, text_lines: int, width: int, char: str) -> None:
    facts = [fact(f"f{number}.md", char * width, char * width) for number in range(count)]
    current = "\n".join(f"line {number}" for number in range(text_lines))
    result = render_index(current, facts, now=NOW)
    lines = result.text.rstrip("\n").split("\n")
    if text_lines < MAX_LINES - 30:
        assert len(lines) <= MAX_LINES
        assert len(result.text.encode("utf-16-le")) // 2 <= MAX_CHARACTERS
    shown = [line for line in lines if re.search(r"\(f\d+\.md\)", line)]
    assert len(shown) + result.left_out == count
    assert len(shown) >= min(count, 8)
    assert ("more: `agent-bridge search WORDS`" in result.text) == (result.left_out > 0)


def test_the_form_of_the_file() -> None:
    text = render("# Mine\n\nwords\n", PORTS, TABS)
    assert visible(text) == (
        "- [Ports](ports.md) — Which ones are taken.\n- [Tabs](entries/tabs.md)\n\n# Mine\n\nwords\n"
    )


@pytest.mark.parametrize("current", [None, "", "\n", "\ufeff"])
def test_without_facts_the_file_is_empty(current: str | None) -> None:
    assert render(current) == ""


def test_the_most_important_come_first_and_fill_the_file() -> None:
    facts = [fact(f"f{number:03}.md", "T" * 100, "h" * 90) for number in range(300)]
    result = render_index(None, facts, now=NOW)
    paths = re.findall(r"\((f\d+\.md)\)", result.text)
    assert paths == [one.path for one in facts[: len(paths)]]
    assert len(result.text) > MAX_CHARACTERS - 600
    assert result.left_out == 300 - len(paths)


def test_a_line_of_ours_follows_its_fact() -> None:
    text = render(None, PORTS)
    assert visible(render(text, fact("ports.md", "Harbours"))) == "- [Harbours](ports.md)\n"
    assert render(text) == ""


def test_a_line_of_theirs_wins_and_goes_with_its_fact() -> None:
    theirs = "- [My ports](ports.md) — my words"
    text = render(f"# Index\n{theirs}\n", TABS, PORTS)
    assert visible(text) == f"- [Tabs](entries/tabs.md)\n{theirs}\n\n# Index\n"
    assert visible(render(text, fact("ports.md", "Changed"), TABS)).startswith(f"{theirs}\n")
    assert visible(render(text, TABS)) == "- [Tabs](entries/tabs.md)\n\n# Index\n"


def test_an_edited_line_of_ours_is_theirs_now() -> None:
    text = render(None, PORTS).replace("Which ones are taken.", "edited by hand")
    assert visible(render(text, fact("ports.md", "New title"))) == "- [Ports](ports.md) — edited by hand\n"


def test_their_line_replaces_ours_when_both_are_there() -> None:
    text = render(None, PORTS) + "- [Claude's](ports.md) — hook\n"
    assert visible(render(text, PORTS)) == "- [Claude's](ports.md) — hook\n"


def test_a_line_for_a_file_that_was_never_a_fact_is_kept() -> None:
    line = "- [Coming](soon.md) — Claude writes the file next"
    assert visible(render(line, PORTS)).endswith(f"\n\n{line}\n")


def test_a_line_of_a_fact_that_cannot_be_read_now_is_kept() -> None:
    text = render("- [Theirs](ports.md) — words", PORTS)
    kept = render_index(text, [], now=NOW, unreadable=frozenset({"ports.md"})).text
    assert "- [Theirs](ports.md) — words" in kept
    assert visible(render(kept, PORTS)) == "- [Theirs](ports.md) — words\n"


@pytest.mark.parametrize(
    "line",
    [
        "- [ports](ports.md) — All about ports",
        "- [the-name](ports.md) — All about ports",
        "- [ports](ports.md)",
    ],
)
def test_what_claude_generates_counts_as_ours(line: str) -> None:
    known = fact("ports.md", "Ports", "Hook", name="the-name", description="All about ports")
    assert visible(render(f"{line}\n", known)) == "- [Ports](ports.md) — Hook\n"


def test_claude_may_add_its_line_first() -> None:
    wrote = NOW - timedelta(seconds=10)
    new = fact("ports.md", "Ports", native=True, updated_at=wrote.isoformat(timespec="milliseconds"))
    early = render_index("", [new], now=NOW, grace=30)
    assert (early.text, early.pending) == ("", wrote + timedelta(seconds=30))
    theirs = "- [Claude's](ports.md) — hook"
    added = render_index(f"{theirs}\n", [new], now=NOW, grace=30)
    assert (visible(added.text), added.pending) == (f"{theirs}\n", None)
    late = render_index("", [new], now=NOW + timedelta(seconds=20), grace=30)
    assert (visible(late.text), late.pending) == ("- [Ports](ports.md)\n", None)


def test_during_the_grace_an_older_line_of_ours_stays_as_it_is() -> None:
    text = render(None, PORTS)
    edited = fact("ports.md", "Other", native=True, updated_at=NOW.isoformat())
    assert render(text, edited) == text
    assert visible(render(text, edited, now=NOW + timedelta(minutes=1))) == "- [Other](ports.md)\n"


@pytest.mark.parametrize("updated", ["", "nonsense", "2026-03-01T13:00:00.000Z", "2026-02-01T00:00:00.000Z"])
def test_no_grace_without_a_credible_time(updated: str) -> None:
    result = render_index("", [fact("a.md", "A", native=True, updated_at=updated)], now=NOW)
    assert (visible(result.text), result.pending) == ("- [A](a.md)\n", None)


def test_conflict_markers_are_rendered_away() -> None:
    text = render("my text", PORTS)
    other = render("my text", TABS)
    merged = f"<<<<<<< HEAD\n{text}=======\n{other}>>>>>>> branch\n"
    assert visible(render(merged, PORTS, TABS)).startswith(
        "- [Ports](ports.md) — Which ones are taken.\n- [Tabs]"
    )
    assert "my text" in render(merged, PORTS)
    assert not re.search(r"^[<=>]{7}", render(merged, PORTS), re.MULTILINE)


def test_private_facts_are_in_and_secrets_are_out() -> None:
    text = render(None, fact("p.md", "Private", private=True), fact("s.md", "Secret", secrets=("aws",)))
    assert visible(text) == "- [Private](p.md)\n"


def test_line_ends_become_newlines() -> None:
    text = render(None, PORTS).replace("\n", "\r\n") + "\r\nmine\r\n"
    assert visible(render(text, PORTS)) == "- [Ports](ports.md) — Which ones are taken.\n\nmine\n"


def test_index_json_has_the_reference_schema() -> None:
    facts = [
        Fact(
            "b.md",
            "b",
            "B",
            "",
            " two\nlines ",
            tags=("x",),
            source="cli",
            created_at="2026-01-02T00:00:00.000Z",
        ),
        Fact("a.md", "a", "A", "", "é", type="decision", updated_at="2026-01-01T00:00:00.000Z"),
        Fact("s.md", "s", "S", "", "key", secrets=("aws",)),
    ]
    data = index_json(facts)
    assert data.endswith(b"}\n")
    assert data.startswith(b'{\n  "version": 1,\n  "entries": [\n    {\n      "id": "a",\n')
    assert json.loads(data) == {
        "version": 1,
        "entries": [
            {
                "id": "a",
                "type": "decision",
                "tags": [],
                "summary": "é",
                "createdAt": "2026-01-01T00:00:00.000Z",
                "updatedAt": "2026-01-01T00:00:00.000Z",
                "source": "",
                "path": "a.md",
            },
            {
                "id": "b",
                "type": "memory",
                "tags": ["x"],
                "summary": "two\nlines",
                "createdAt": "2026-01-02T00:00:00.000Z",
                "updatedAt": "2026-01-02T00:00:00.000Z",
                "source": "cli",
                "path": "b.md",
            },
        ],
    }
    assert index_json([Fact("a.md", "a", "A", "", "\ud800")]).decode()
