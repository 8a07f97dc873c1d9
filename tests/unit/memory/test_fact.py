"""Facts: every shape that is found in the wild, marks that fail safe, titles, hooks, order."""

from __future__ import annotations

import contextlib
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_bridge.memory.fact import (
    EmptyFact,
    Fact,
    FactProblem,
    new_fact_bytes,
    order_key,
    parse_fact,
    replace_body,
    set_keys,
)

NOW = datetime(2026, 3, 4, 5, 6, 7, 89_000, tzinfo=UTC)

CLAUDE = b"""---
name: dev-server-port
description: Which port the dev server uses
metadata:
  node_type: memory
  type: feedback
  originSessionId: 0b1c2d3e
  modified: 2026-01-02T03:04:05.678Z
---

The dev server runs on 5000.

**Why:** 3000 is taken.
"""

MEMORY_BRIDGE = b"""---
id: 20260101-0001-use-uv
type: memory
tags: [tools, python]
created_at: 2026-01-01T10:00:00.000Z
updated_at: 2026-01-01T11:00:00.000Z
source: opencode
---

Use uv.
"""


def test_claude_codes_shape() -> None:
    fact = parse_fact("dev.md", CLAUDE)
    assert (fact.id, fact.type, fact.native, fact.origin_session) == ("dev", "feedback", True, "0b1c2d3e")
    assert (fact.title, fact.hook) == ("dev-server-port", "Which port the dev server uses")
    assert fact.updated_at == "2026-01-02T03:04:05.678Z"
    assert fact.body == "The dev server runs on 5000.\n\n**Why:** 3000 is taken."
    assert not fact.private


def test_memory_bridges_shape() -> None:
    fact = parse_fact("entries/20260101-0001-use-uv.md", MEMORY_BRIDGE)
    assert (fact.id, fact.type, fact.tags) == ("20260101-0001-use-uv", "memory", ("tools", "python"))
    assert (fact.source, fact.title, fact.hook, fact.native) == ("opencode", "Use uv.", "", False)
    assert fact.created_at < fact.updated_at


def test_coffers_spelling_of_the_session() -> None:
    assert parse_fact("x.md", b"---\norigin_session_id: s1\n---\nx").origin_session == "s1"


@pytest.mark.parametrize(
    "data", [b"Plain text.\n", b"\xef\xbb\xbfPlain text.\r\n", b"---\n---\n\nPlain text."]
)
def test_a_file_without_keys_is_a_fact(data: bytes) -> None:
    fact = parse_fact("notes/plain.md", data)
    assert (fact.id, fact.body, fact.type, fact.private) == ("notes/plain", "Plain text.", "project", False)


def test_line_ends_and_bom() -> None:
    fact = parse_fact("x.md", b"\xef\xbb\xbf" + CLAUDE.replace(b"\n", b"\r\n"))
    assert (fact.name, fact.body) == ("dev-server-port", parse_fact("x.md", CLAUDE).body)
    assert parse_fact("x.md", CLAUDE.replace(b"\n", b"\r")).body == fact.body


def test_decisions_have_their_type() -> None:
    assert parse_fact("decisions/1.md", b"We use uv.").type == "decision"
    assert parse_fact("decisions/1.md", b"---\ntype: project\n---\nWe use uv.").type == "project"


@pytest.mark.parametrize(("head", "private"), [
    ("private: true", True),
    ("private: false", False),
    ("private: FALSE", False),
    ("private: 'no'", False),
    ("private: 0", False),
    ("private: true # keep", True),
    ("private: 'true # keep'", True),
    ("private: 'false # shared in May'", False),
    ("private:", True),
    ("private: ~", True),
    ("private: null", True),
    ("private: flase", True),
    ("private: [false]", True),
    ("private: {a: false}", True),
    ("metadata:\n  private: true", True),
    ("metadata:\n  private: 'true # x'", True),
    ("private: false\nmetadata:\n  private: true", False),
    ("private: true\nmetadata:\n  private: false", True),
    ("type: user", True),
    ("type: User # me", True),
    ("type: [user]", True),
    ("metadata:\n  type: user", True),
    ("metadata:\n  type: 'user # me'", True),
    ("type: user\nprivate: false", False),
    ("type: user\nprivate: maybe", True),
    ("Private: true", True),
    ("type: project", False),
    ("a: b", False),
])  # fmt: skip
def test_privacy_fails_safe(head: str, private: bool) -> None:
    assert parse_fact("x.md", f"---\n{head}\n---\nText.\n".encode()).private is private


def test_a_frontmatter_that_never_closes_is_text_and_its_mark_still_counts() -> None:
    assert parse_fact("x.md", b"---\nname: x\nText").body == "---\nname: x\nText"
    assert parse_fact("x.md", b"---\nprivate: true\n\nText").private
    assert parse_fact("x.md", b"---\nmetadata:\n  type: user\n\nText").private
    assert not parse_fact("x.md", b"---\nname: x\nText").private


@pytest.mark.parametrize(("value", "pinned"), [
    ("true", True), ("yes", True), ("true # why", True), ("'true # why'", True),
    ("false", False), ("maybe", False), ("", False), ("[true]", False),
])  # fmt: skip
def test_pinned_must_be_clearly_true(value: str, pinned: bool) -> None:
    assert parse_fact("x.md", f"---\nmetadata:\n  pinned: {value}\n---\nx".encode()).pinned is pinned


@pytest.mark.parametrize(("head", "tags"), [
    ("tags: [a, b, a]", ("a", "b")),
    ("tags: a, b", ("a", "b")),
    ("tags:\n  - a\n  - b c", ("a", "b c")),
    ("metadata:\n  tags: '[a, b] # why'", ("a", "b")),
    ("tags: []", ()),
    ("tags: ['', x]", ("x",)),
    ("tags: {a: b}", ()),
])  # fmt: skip
def test_tags(head: str, tags: tuple[str, ...]) -> None:
    assert parse_fact("x.md", f"---\n{head}\n---\nx".encode()).tags == tags


@pytest.mark.parametrize(("data", "word"), [
    ("Füße".encode("latin-1"), "UTF-8"),
    ("text".encode("utf-16"), "UTF-16"),
    ("text".encode("utf-16-le"), "NUL"),
    (b"a\0b", "NUL"),
    (b"x" * (1024 * 1024 + 1), "1 MiB"),
    (b"---\na: [\n---\nx", "not valid YAML"),
    (b"<<<<<<< HEAD\na\n=======\nb\n>>>>>>> other\n", "conflict"),
])  # fmt: skip
def test_what_cannot_be_read_says_why(data: bytes, word: str) -> None:
    with pytest.raises(FactProblem, match=word) as caught:
        parse_fact("x.md", data)
    assert caught.value.remedy
    assert not isinstance(caught.value, EmptyFact)


@pytest.mark.parametrize("data", [b"", b"\n \n", b"\xef\xbb\xbf", b"---\n---\n", b"---\nname: x\n---\n\n"])
def test_nothing_is_no_fact(data: bytes) -> None:
    with pytest.raises(EmptyFact):
        parse_fact("x.md", data)


def test_a_description_alone_is_the_text() -> None:
    fact = parse_fact("x.md", b"---\nname: x\ndescription: All is here.\n---\n")
    assert (fact.body, fact.hook) == ("All is here.", "")


@pytest.mark.parametrize(("text", "title", "hook"), [
    ("# Ports #\n\nUse 5000. Never 3000.", "Ports", "Use 5000."),
    ("Use 5000. Never 3000.", "Use 5000. Never 3000.", "Use 5000."),
    ("```\n# no heading\n```\n## Real\ntext", "Real", "text"),
    ("```\ncode\n```", "```", ""),
    ("- a list item\n- b", "a list item", "a list item - b"),
    ("#hashtag first", "#hashtag first", ""),
    ("word " * 30, ("word " * 12)[:59].rstrip() + "…", ("word " * 30)[:99].rstrip() + "…"),
    ("One line only", "One line only", ""),
])  # fmt: skip
def test_title_and_hook(text: str, title: str, hook: str) -> None:
    fact = parse_fact("x.md", text.encode())
    assert (fact.title, fact.hook) == (title, hook)


def test_the_heading_wins_over_the_name_and_the_description_over_the_sentence() -> None:
    fact = parse_fact("x.md", b"---\nname: n\ndescription: d\n---\n# H\n\nFirst. Second.")
    assert (fact.title, fact.hook) == ("H", "d")


def test_the_latest_of_our_and_claudes_time_counts() -> None:
    data = b"---\nupdated_at: 2026-01-01\nmetadata:\n  modified: 2026-02-01T00:00:00.000Z\n---\nx"
    assert parse_fact("x.md", data).updated_at == "2026-02-01T00:00:00.000Z"


@pytest.mark.parametrize("identity", ["a]b", "a\x07b", "<!-- x -->", "", "x" * 201])
def test_a_hostile_id_gives_way_to_the_path(identity: str) -> None:
    assert parse_fact("entries/x.md", set_keys(b"text", {"id": identity})).id == "entries/x"


def test_order_of_importance() -> None:
    def fact(name: str, **values: object) -> Fact:
        return Fact(path=f"{name}.md", id=name, title="", hook="", body="", **values)  # type: ignore[arg-type]

    wanted = [
        fact("pinned", pinned=True, type="reference"),
        fact("guidance", type="feedback"),
        fact("newer", created_at="2026-02-01T00:00:00.000Z"),
        fact("edited", created_at="2025-01-01T00:00:00.000Z", updated_at="2026-01-15T00:00:00.000Z"),
        fact("older", created_at="2026-01-01T00:00:00.000Z"),
        fact("a-undated"),
        fact("b-undated"),
        fact("decided", type="decision"),
        fact("pointer", type="reference"),
        fact("unknown", type="whatever"),
    ]
    assert sorted([*wanted[5:], *wanted[:5]], key=order_key) == wanted


@given(
    st.text(max_size=200),
    st.lists(st.text(min_size=1, max_size=10), max_size=3, unique=True),
    st.booleans(),
    st.booleans(),
    st.one_of(st.none(), st.text(min_size=1, max_size=40)),
)
def test_a_new_fact_is_read_back(
    text: str, tags: list[str], private: bool, pinned: bool, title: str | None
) -> None:
    plain = text.replace("\r\n", "\n").replace("\r", "\n").removeprefix("\ufeff").lstrip("\n").rstrip()
    if (
        not plain.strip("\ufeff")
        or "\0" in text
        or any("\ud800" <= char <= "\udfff" for char in repr([text, title]))
    ):
        return
    named = tuple(dict.fromkeys(" ".join(tag.split()) for tag in tags if tag.split()))
    data = new_fact_bytes(
        text, fact_id="20260304-0001-x-0000", now=NOW, tags=named, private=private, pinned=pinned, title=title
    )
    fact = parse_fact("entries/x.md", data)
    assert fact.body == plain
    assert (fact.id, fact.private, fact.pinned) == ("20260304-0001-x-0000", private, pinned)
    assert fact.created_at == "2026-03-04T05:06:07.089Z"
    assert fact.tags == tuple(dict.fromkeys(tag.strip("\"'") for tag in named if tag.strip("\"'")))
    assert parse_fact("entries/x.md", replace_body(data, "other")).body == "other"


@given(st.binary(max_size=300))
def test_any_bytes_are_a_fact_or_a_problem(data: bytes) -> None:
    try:
        fact = parse_fact("x.md", data)
    except FactProblem:
        return
    assert fact.body
    assert "\r" not in fact.body
    assert "\n" not in fact.title + fact.hook + fact.id + fact.name


@pytest.mark.parametrize("unit", [
    "<<<<<<< a\n", "# #", "- ", " ", "\n", "#", "`", "x. ", "---\n", "a: b\n", "[", "eyJ", "://", "aws", "\r",
    "\ufeff",
])  # fmt: skip
@pytest.mark.timeout(60)
def test_reading_takes_time_in_proportion_to_the_size(unit: str) -> None:
    """A quadratic reader would need minutes for these; the time limit ends it."""
    data = (unit * (900_000 // len(unit.encode()))).encode()
    with contextlib.suppress(FactProblem):
        parse_fact("x.md", data)


def test_half_a_surrogate_pair_becomes_a_question_mark() -> None:
    data = new_fact_bytes("broken \ud83d text", fact_id="x", now=datetime(2026, 1, 2, tzinfo=UTC))
    assert parse_fact("x.md", data).body == "broken ? text"
