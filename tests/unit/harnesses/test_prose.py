"""Which texts of a markdown file could be facts."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_bridge.harnesses import managed_block
from agent_bridge.harnesses.markdown import whole_texts
from agent_bridge.harnesses.prose import MAX_BYTES, MAX_ITEMS, Piece, items_of, pieces_of
from agent_bridge.memory.similarity import normalise

_CASES = {
    "every kind of marker": ("- a1\n* b1\n+ c1\n1. d1\n2) e1\n", ["a1", "b1", "c1", "d1", "e1"]),
    "several lines": ("- one\n  two\nthree\n- four\n", ["one\ntwo\nthree", "four"]),
    "two paragraphs": ("- one\n\n  two\n\n- four\n", ["one\n\ntwo", "four"]),
    "nested": ("- outer\n  - inner\n    - innermost\n- last\n", ["outer", "inner", "innermost", "last"]),
    "nested by tabs": ("- outer\n\t- inner\n\t\t- innermost\n", ["outer", "inner", "innermost"]),
    "text of the outer item behind an inner one": (
        "- outer\n  - inner\n\n  more\n",
        ["outer\n\nmore", "inner"],
    ),
    "checkboxes": ("- [ ] open\n- [x] done\n* [X] Done\n", ["open", "done", "Done"]),
    "a link is no checkbox": ("- [x](y.md) is a page\n", ["[x](y.md) is a page"]),
    "code of an item stays with it": (
        "- run:\n  ```sh\n  make\n    -j\n  ```\n- next\n",
        ["run:\n```sh\nmake\n  -j\n```", "next"],
    ),
    "code that begins an item": ("- ```sh\n  make\n  ```\n- next\n", ["```sh\nmake\n```", "next"]),
    "an introduction is no fact": ("- On macOS:\n  - use brew\n", ["use brew"]),
    "text outside of lists": ("Some prose.\n\n# Title\n\nMore prose.\n", []),
    "code": ("```\n- not this\n```\n- this\n~~~\n- nor this\n~~~\n", ["this"]),
    "code that never ends": ("- this\n\n```\n- not this\n", ["this"]),
    "indented code": ("Text\n\n    - not this\n\n- this\n", ["this"]),
    "comments": ("<!-- - no -->\n- yes <!-- really -->\n<!--\n- no\n-->\n- end\n", ["yes", "end"]),
    "a comment that never ends": ("- yes\n<!--\n- no\n", ["yes"]),
    "a comment in code is none": ("- write `<!--` so\n- and so\n", ["write `<!--` so", "and so"]),
    "code in a comment is none": ("<!--\n```\n-->\n- yes\n", ["yes"]),
    "front matter": ("---\npaths:\n  - src\n---\n- yes\n", ["yes"]),
    "front matter that never ends": ("---\n- yes\n", ["yes"]),
    "a rule is no item": ("- a1\n- - -\n* * *\n- b1\n", ["a1", "b1"]),
    "empty items": ("-\n- \n- [ ]\n- !!\n- yes\n", ["yes"]),
    "imports and anchors": ("- @docs/x.md\n- [Top](#top)\n- see @docs/x.md\n", ["see @docs/x.md"]),
    "a list ends with the next paragraph": ("- one\n\ntwo\n", ["one"]),
    "paragraphs under a heading of memory": (
        "# Notes\nno\n## Memory\nyes\ntoo\n\nand this\n## Other\nno\n",
        ["yes\ntoo", "and this"],
    ),
    "an underlined heading": ("Things to remember\n===\nyes\n\nOther\n===\nno\n", ["yes"]),
    "sections below a heading of memory": (
        "## Lessons\n### Ports\nyes\n### Facts\nyes2\n# End\nno\n",
        ["yes", "yes2"],
    ),
    "an introduction to a list": ("## Memory\nThese hold:\n\n- one\n", ["one"]),
    "code behind an introduction": ("## Memory\nRun this:\n```\nmake\n```\n", ["Run this:\n```\nmake\n```"]),
    "tables": ("## Memory\n| a | b |\n|---|---|\n", []),
    "memorable is no memory": ("## A memorandum\nno\n", []),
    "CRLF and CR": ("- one\r\n  two\r\n- three\r- four", ["one\ntwo", "three", "four"]),
    "what memory-bridge generated": (
        "## Project Memory Bridge\n\n# Conventions\n\n- of a document\n\n## Recorded memories\n\n"
        "- [20260101-0001-a] Use tabs (style)\n\n- [20260101-0002-b] Two\nlines\n\n- added\n"
        "\n## Mine\n- yes\n",
        ["[20260101-0001-a] Use tabs (style)", "[20260101-0002-b] Two\nlines", "added", "yes"],
    ),
    "a section that is only called so": ("## Project Memory Bridge\n- yes\n", ["yes"]),
    "right to left and CJK": ("- استخدم المنفذ\n- ポートを使う\n", ["استخدم المنفذ", "ポートを使う"]),
}


@pytest.mark.parametrize(("text", "wanted"), _CASES.values(), ids=_CASES)
def test_texts(text: str, wanted: list[str]) -> None:
    assert items_of(text.encode()) == wanted


def test_a_nested_item_has_a_title_that_tells_where_it_belongs() -> None:
    assert pieces_of(b"- On macOS:\n  - use brew\n- plain\n## Lessons\n### Ports\nOpen 4999.\n") == [
        Piece("use brew", "On macOS"),
        Piece("plain"),
        Piece("Open 4999.", "Ports"),
    ]


def test_our_block_is_not_looked_at_and_what_stands_around_it_is() -> None:
    body = managed_block.render_block((), ()).body
    data = managed_block.splice(b"- before\n", body.replace("\n", "\n- inside\n", 1)).data + b"\n- after\n"
    assert b"- inside" in data
    assert items_of(data) == ["before", "after"]


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        (f"- a1\n{managed_block.START}\n- ours\n", ["a1"]),
        (f"- ours\n{managed_block.END}\n- b1\n", ["b1"]),
        (
            f"- a1\n{managed_block.START}\n- no\n{managed_block.START}\n- no\n{managed_block.END}\n- b1\n",
            ["a1", "b1"],
        ),
    ],
)
def test_between_markers_that_do_not_pair_nothing_counts(text: str, wanted: list[str]) -> None:
    assert items_of(text.encode()) == wanted


@pytest.mark.parametrize("data", [b"- a\0b\n", "- x".encode("utf-16"), b"", b"\xef\xbb\xbf"])
def test_what_is_no_text_has_none(data: bytes) -> None:
    assert items_of(data) == []


def test_a_byte_order_mark_is_no_text() -> None:
    assert items_of(b"\xef\xbb\xbf- one\n") == ["one"]


def test_a_large_file_is_read_up_to_the_limit() -> None:
    assert len(items_of(b"- word\n" * (MAX_ITEMS + 1))) == MAX_ITEMS
    assert items_of(b"- one\n" + b" " * MAX_BYTES + b"\n- two\n") == ["one"]


@pytest.mark.parametrize(
    "data",
    [
        b"".join(b" " * (2 * depth) + b"- x1\n" for depth in range(700)),
        b"- x1\n" + b"text\n" * 100_000 + b"  - y1\n" * 10_000,
        b"<!-- -->" * 100_000,
        b"<!--" * 200_000,
        b"`" * 500_000 + b"<!--",
        b"- `" * 200_000,
        b"```\n" * 200_000,
        b"# Memory\n" * 100_000,
        b"## Project Memory Bridge\n" * 20_000 + b"## Recorded memories\n" * 20_000,
        b"\r" * 1_000_000,
        managed_block.START.encode() + b"\n" + b"- x\n" * 1000,
    ],
    ids=range(11),
)
def test_a_hostile_file_takes_no_longer_than_its_size_asks_for(data: bytes) -> None:
    started = time.process_time()
    items_of(data)
    assert time.process_time() - started < 8


_LINES = st.sampled_from(
    [
        "- item", "  - inner", "\t* deep", "1. number", "- [ ] box", "text", "  more", "", "", "    code",
        "```", "  ~~~", "- ```", "<!--", "-->", "# Memory", "### Part", "## Other", "===", "---", "* * *",
        "## Project Memory Bridge", "## Recorded memories", "- [20260101-0001-a] b", "| a |", "> quote",
        managed_block.START, managed_block.END,
    ]
)  # fmt: skip


@given(st.lists(_LINES, max_size=40).map("\n".join))
def test_every_text_is_made_of_words_of_the_file(text: str) -> None:
    bare = "".join(text.split())
    for item in items_of(text.encode()):
        assert item == item.strip()
        for line in item.split("\n"):
            assert "".join(line.split()) in bare


@given(st.binary(max_size=400))
def test_any_bytes_are_taken(data: bytes) -> None:
    assert all(isinstance(item, str) and item for item in items_of(data))


@pytest.mark.parametrize("name", ["checkboxes", "nested", "nested by tabs", "several lines", "CRLF and CR"])
def test_a_fact_made_of_an_item_is_not_shown_twice_in_its_file(name: str) -> None:
    text, items = _CASES[name]
    assert {normalise(item) for item in items} <= whole_texts(text)


@given(st.lists(st.from_regex(r"[A-Za-z][A-Za-z ]{0,20}[a-z]", fullmatch=True), min_size=1, max_size=8))
def test_a_plain_list_gives_what_the_renderer_knows_as_whole_texts(texts: list[str]) -> None:
    file = "".join(f"- {text}\n" for text in texts)
    assert {normalise(item) for item in items_of(file.encode())} == whole_texts(file)
