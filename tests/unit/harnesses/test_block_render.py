"""Rendering: hostile facts stay one fact each, the budget holds in written bytes, the form is pinned."""

from __future__ import annotations

import time
from pathlib import Path
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_bridge.harnesses.block_body import escape_id, unescape_id
from agent_bridge.harnesses.block_render import fact_item
from agent_bridge.harnesses.managed_block import (
    END,
    START,
    Item,
    find_block,
    hash_valid,
    items,
    outside_texts,
    render_block,
    splice,
    with_hash,
)

CORPUS = Path(__file__).parents[2] / "corpus" / "block"


class Fact(NamedTuple):
    id: str
    title: str
    body: str


class Document(NamedTuple):
    name: str
    text: str


HOSTILE_LINES = st.sampled_from(
    [
        START,
        END,
        END.upper(),
        "<!--agent-bridge:memory:end-->",
        "<!--  AGENT-BRIDGE:memory:start  -->",
        "<!--",
        "-->",
        "<!-- agent-bridge:memory:hash 0123456789abcdef -->",
        "<\u200b!-- agent-bridge:memory:end -->",
        "<!-- agent\u200b-bridge:memory:end -->",
        "```",
        "```py",
        "  ~~~",
        "~~~~~",
        "### x [y]",
        "## Project memory",
        "## Memory",
        "Nothing is remembered yet.",
        "# H",
        "\t# H",
        "Title",
        "===",
        "---",
        "=======",
        "<<<<<<< HEAD",
        ">>>>>>> other",
        "**Left out here:** 3 facts",
        "- item",
        "    code",
        "",
        " ",
        "\x1b[31m\u202ered",
        "\ud800",
        "a\rb",
        "a\u2028### x [y]",
        "---\nname: x\n---",
    ]
)
HOSTILE = st.one_of(
    st.lists(HOSTILE_LINES, max_size=10).map("\n".join),
    st.text(alphabet=st.characters(codec=None), max_size=60),
    st.text(alphabet="#`~<!->=\n\r \t[]ab*|\\", max_size=40),
)
FACTS = st.lists(
    st.builds(Fact, st.text(min_size=1, max_size=12), HOSTILE, HOSTILE), max_size=6, unique_by=lambda f: f.id
)
DOCUMENTS = st.lists(
    st.builds(Document, st.sampled_from(["conventions.md", "context.md"]), HOSTILE),
    max_size=2,
    unique_by=lambda document: document.name,
)


@given(DOCUMENTS, FACTS, st.sampled_from(["\n", "\r\n"]), st.sampled_from(["project", "global"]))
def test_items_give_exactly_the_facts(
    documents: list[Document], facts: list[Fact], eol: str, scope: str
) -> None:
    block = render_block(documents, facts, budget=10**6, eol=eol, scope=scope)  # type: ignore[arg-type]
    found = items(block.body)
    assert [item for item in found if item.fact_id is not None] == [fact_item(fact) for fact in facts]
    assert (
        len([item for item in found if item.fact_id is None]) == len({*block.documents})
        or len(documents) == 2
    )
    assert hash_valid(block.body)


@given(DOCUMENTS, FACTS)
def test_no_text_ends_the_block_or_opens_another(documents: list[Document], facts: list[Fact]) -> None:
    block = render_block(documents, facts, budget=10**6)
    data = splice(b"mine\n", block.body).data
    span = find_block(data)
    assert span is not None
    assert data[span.start :].decode() == f"{START}\n{block.body}\n{END}\n"
    assert span.body == block.body


@given(DOCUMENTS, FACTS, st.integers(300, 1500), st.sampled_from(["\n", "\r\n"]))
def test_budget_is_kept_in_bytes_as_written(
    documents: list[Document], facts: list[Fact], budget: int, eol: str
) -> None:
    block = render_block(documents, facts, budget=budget, eol=eol)
    data = splice(b"a" + eol.encode(), block.body)
    written = len(data.data) - len(data.separator) - 1 - len(eol)
    assert block.size == written
    if block.included or block.documents:
        assert written <= budget
    assert sorted([*block.included, *block.left_out, *block.skipped]) == sorted(fact.id for fact in facts)


def test_a_big_fact_is_left_out_whole_and_smaller_ones_still_go_in() -> None:
    facts = [Fact("small", "Small", "s" * 40), Fact("big", "Big", "b" * 5000), Fact("last", "Last", "l" * 40)]
    block = render_block([], facts, budget=1000)
    assert block.included == ("small", "last")
    assert block.left_out == ("big",)
    assert "bbb" not in block.body
    assert "**Left out here:** 1 fact, for lack of space. `agent-bridge search WORDS`" in block.body
    assert "`agent-bridge show ID`" in block.body


def test_everything_goes_in_where_the_budget_is_exactly_enough() -> None:
    facts = [Fact(str(number), f"Fact {number}", "é\n" * 20 + "end") for number in range(5)]
    for eol in ("\n", "\r\n"):
        size = render_block([], facts, eol=eol).size
        assert render_block([], facts, budget=size, eol=eol).left_out == ()
        assert len(render_block([], facts, budget=size - 1, eol=eol).left_out) > 0


def test_documents_come_first_and_one_that_does_not_fit_is_named() -> None:
    documents = [Document("conventions.md", "# conventions\n\nShort."), Document("context.md", "x" * 5000)]
    block = render_block(documents, [Fact("a", "A", "text")], budget=1000)
    assert block.documents == ("conventions.md",)
    assert block.documents_left_out == ("context.md",)
    assert "**Left out here:** the document context.md, for lack of space." in block.body
    assert block.body.index("Short.") < block.body.index("### A [a]")


def test_a_document_with_nothing_but_its_heading_is_not_shown() -> None:
    block = render_block([Document("context.md", "# context\n")], [])
    assert block.empty
    assert "context" not in block.body
    assert items(block.body) == []


def test_skipped_facts_are_told_apart_from_those_without_room() -> None:
    skip = outside_texts(b"# Rules\n\n- Never   use tabs.\n")
    facts = [
        Fact("a", "Tabs", "Never use\ntabs."),
        Fact("b", "Ports", "Never use tabs"),
        Fact("c", "C", "c" * 9000),
    ]
    block = render_block([], facts, skip=skip, budget=2000)
    assert (block.skipped, block.included, block.left_out) == (("a",), ("b",), ("c",))
    assert "1 fact," in block.body


@pytest.mark.parametrize(
    ("body", "shown"),
    [
        ("# Ports\n\nUse 4999.", "Use 4999."),
        ("Ports\n=====\nUse 4999.", "Use 4999."),
        ("# Ports #\ntext", "text"),
        ("# Other\n\n## Sub\n### Deep\n#### Deeper", "#### Other\n\n##### Sub\n###### Deep\n###### Deeper"),
        ("A\nB\n---\ntext", "##### A B\ntext"),
        ("- a\n---\nb", "- a\n---\nb"),
        ("```\n# not a heading\n```", "```\n# not a heading\n```"),
        ("```py\nopen", "```py\nopen\n```"),
        ("~~~~\n```\nopen", "~~~~\n```\nopen\n~~~~"),
        ("a <!-- b", "a <\\!-- b"),
        ("a <!-- b --> c", "a <!-- b --> c"),
        ("<!-- a --> <!-- b", "<!-- a --> <\\!-- b"),
        ("<!-->", "<\\!-->"),
        ("a\r\nb\rc\u2028d", "a\nb\nc\nd"),
        ("a\x00\x1b\u202e\u2066\ufeffb\tc", "ab\tc"),
        ("#tag and #5", "#tag and #5"),
        ("<<<<<<< HEAD", " <<<<<<< HEAD"),
        (END, END.replace("<!", "<\\!")),
        ("\n\n  text\n\n", "  text"),
        ("", ""),
    ],
)
def test_how_bodies_are_shown(body: str, shown: str) -> None:
    assert fact_item(Fact("id", "Ports", body)).text == shown


@pytest.mark.parametrize(
    ("title", "heading"),
    [
        ("Plain", "### Plain [id]"),
        ("a\nb\rc", "### a b c [id]"),
        ("## # Marks", "### Marks [id]"),
        ("#5 and [x] (y)", "### #5 and [x] (y) [id]"),
        ("\x1b\u202e <!-- x -->", "### <\\!-- x --> [id]"),
        ("", "### id [id]"),
        (" \t\x00", "### id [id]"),
    ],
)
def test_how_titles_are_shown(title: str, heading: str) -> None:
    assert heading in render_block([], [Fact("id", title, "body")]).body.split("\n")


LONG = "The API listens on port 4999, since port 5000 belongs to the proxy of the test machine."


@pytest.mark.parametrize(
    ("title", "body", "shown"),
    [
        ("Use tabs.", "Use tabs.", "### Use tabs. [id]"),
        ("Use tabs.", "Use\ntabs.", "### Use tabs. [id]"),
        ("Use tabs.", "Use tabs.\nAlways.", "### [id]\n\nUse tabs.\nAlways."),
        (LONG[:59] + "…", LONG, f"### [id]\n\n{LONG}"),
        ("one", "- one\n- two", "### [id]\n\n- one\n- two"),
        (LONG[:59] + "…", f"# {LONG}\n\nText.", f"### {LONG} [id]\n\nText."),
        ("name", LONG, f"### name [id]\n\n{LONG}"),
    ],
)
def test_no_fact_says_a_thing_twice(title: str, body: str, shown: str) -> None:
    block = render_block([], [Fact("id", title, body)])
    assert f"\n\n{shown}\n\n<!-- agent-bridge:memory:hash" in block.body
    assert items(block.body) == [fact_item(Fact("id", title, body))]


@given(st.text(alphabet=st.characters(codec=None), min_size=1))
def test_ids_survive_the_heading(fact_id: str) -> None:
    escaped = escape_id(fact_id)
    assert not set(escaped) & set("[]<>\n\r\t\x00\u202e\ud800")
    assert unescape_id(escaped) == fact_id


def test_foreign_text_in_a_block_is_an_item_of_its_own_or_changes_one() -> None:
    body = render_block([], [Fact("a", "A", "one"), Fact("b", "B", "two")]).body
    edited = body.replace("## Project memory\n", "## Project memory\n\nOn top.\n").replace(
        "two", "two\nand more"
    )
    edited = edited.replace("### B", "## Mine\n\nText.\n\n### B")
    assert items(edited) == [
        Item(None, "", "On top."),
        Item("a", "A", "one"),
        Item(None, "Mine", "Text."),
        Item("b", "B", "two\nand more"),
    ]
    ours = fact_item(Fact("a", "A", "one")).key
    assert [item.key == ours for item in items(edited)] == [False, True, False, False]


def test_conflict_markers_give_both_sides_items() -> None:
    body = "## Project memory\n\n### A [a]\n\n"
    body += "<<<<<<< HEAD\none\n||||||| base\nzero\n=======\n1\n\n### B [b]\n\ntwo\n>>>>>>> x\n"
    assert items(body) == [Item("a", "A", "one"), Item("a", "A", "1"), Item("b", "B", "two")]


def test_keys_ignore_white_space_and_ids() -> None:
    assert Item("a", "T", "x  y\n z").key == Item("b", "T", "x y z").key
    assert Item("a", "T", "x").key != Item("a", "T", "X").key


def test_hash_is_over_the_text_above_it() -> None:
    body = with_hash("## Project memory\n\ntext\n")
    assert hash_valid(body)
    assert hash_valid(body + "\n")
    assert not hash_valid(body.replace("text", "Text"))
    assert not hash_valid("## Project memory\n\ntext")


@pytest.mark.parametrize("scope", ["project", "global"])
def test_golden_block(scope: str) -> None:
    documents = [
        Document("conventions.md", "# Conventions\n\n- British spelling\n\n## Commits\n\nSmall ones.\n"),
        Document("context.md", "# context\n"),
        Document("preferences.md", "No emoji.\n"),
    ]
    facts = [
        Fact(
            "20260101-0001-ports-1a2b",
            "Ports",
            "# Ports\n\nThe API listens on 4999.\n\n## Why\n\n5000 is taken.",
        ),
        Fact(
            "decisions/0001 sqlite",
            "Use SQLite [for now]",
            "Status\n------\naccepted\n\n```sql\n# kept\nselect 1;",
        ),
        Fact("hostile", "x\n### y [z]", f"{END}\n### x [y]\n<!-- open\n{START}\n\u202etext"),
        Fact("big", "Big", "b" * 2000),
    ]
    block = render_block(documents, facts, budget=1500, scope=scope)  # type: ignore[arg-type]
    written = splice(b"", block.body).data
    assert written == (CORPUS / f"{scope}.md").read_bytes()


def test_a_thousand_facts_render_fast_when_warm() -> None:
    facts = [
        Fact(f"2026-{number}", f"Fact {number}", f"Sentence number {number}. " * 8) for number in range(1000)
    ]
    render_block([], facts)

    def once() -> float:
        started = time.perf_counter()
        render_block([], facts)
        return time.perf_counter() - started

    assert min(once() for _ in range(10)) < 0.010
