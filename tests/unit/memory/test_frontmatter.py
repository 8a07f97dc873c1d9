"""Frontmatter: the fast path equals libyaml, and bombs stay unexpanded."""

from __future__ import annotations

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from agent_bridge.errors import AgentBridgeError
from agent_bridge.memory.frontmatter import (
    FactProblem,
    fast_mapping,
    load_mapping,
    read_mapping,
    split,
)

_SCRAPS = [
    "a",
    "b_c",
    "metadata",
    ":",
    ": ",
    " ",
    "  ",
    "\n",
    "\n  ",
    "\n    ",
    "#",
    " # x",
    "-",
    "- ",
    "[",
    "]",
    "[a, b]",
    ",",
    "{",
    "}",
    "'",
    '"',
    "\\",
    "\\n",
    "\t",
    "&a",
    "*a",
    "!",
    "!!str",
    ">",
    "%",
    "@",
    "`",
    "true",
    "null",
    "~",
    "2026-01-01",
    "0o7",
    "é",
    "\xa0",
    "\u2028",
    "\x85",
    "😀",
    "\r\n",
    "\r",
    "?",
    "=",
    "<<",
    "---",
    "...",
    "a: b\n",
    "t: [x, y z]\n",
    "k: 'v'\n",
    'q: "v"\n',
    "x: 1\n",
    "metadata:\n  type: user\n",
]
_scraps = st.sampled_from([*_SCRAPS, "|"])


@given(st.lists(_scraps, max_size=12).map("".join))
def test_what_the_fast_path_accepts_it_reads_as_libyaml_does(head: str) -> None:
    fast = fast_mapping(head)
    if fast is not None:
        assert fast == load_mapping(head)


_lines = st.tuples(
    st.sampled_from(["", "  "]),
    st.sampled_from(["a", "b", "metadata", "d-e", "f_1"]),
    st.one_of(st.text(alphabet="ab :#-[],'\"é😀&*!|>%@{}?=~.\\", max_size=8), st.text(max_size=6)),
)


@given(st.lists(_lines, max_size=5))
def test_lines_that_look_like_keys_are_read_as_libyaml_does(lines: list[tuple[str, str, str]]) -> None:
    head = "".join(f"{indent}{key}: {value}\n" for indent, key, value in lines)
    fast = fast_mapping(head)
    if fast is not None:
        assert fast == load_mapping(head)


@pytest.mark.parametrize("head", [
    "a: b\nc: d e f\n",
    "tags: [one, two-three, vier fünf]\n",
    "metadata: \n  type: user\n  x: 'quoted text'\nlast: http://host/path#part\n",
    "empty:\nnext: \"double: quoted\"\n",
    "created_at: 2026-01-01T00:00:00.000Z\r\nname: x\r\n",
])  # fmt: skip
def test_what_facts_look_like_takes_the_fast_path(head: str) -> None:
    fast = fast_mapping(head)
    assert fast is not None
    assert fast == load_mapping(head)


@pytest.mark.parametrize(("head", "expected"), [
    ("tags:\n- a\n- b\n", {"tags": ["a", "b"]}),
    ("a: |\n  two\n  lines\n", {"a": "two\nlines\n"}),
    ("a: {b: {c: d}}\n", {"a": {"b": {"c": "d"}}}),
    ("a: yes # no\n", {"a": "yes"}),
    ("# only a comment\n", {}),
    ("", {}),
])  # fmt: skip
def test_the_rest_is_read_by_libyaml_with_scalars_as_text(head: str, expected: object) -> None:
    assert read_mapping(head) == expected


BOMB = "a: &a [x, x, x]\n" + "".join(
    f"{new}: &{new} [*{old}, *{old}, *{old}, *{old}, *{old}, *{old}, *{old}, *{old}]\n"
    for old, new in zip("abcdefghijk", "bcdefghijkl", strict=True)
)


@pytest.mark.parametrize(("head", "word"), [
    (BOMB, "anchors"),
    ("a: &x 1\n", "anchors"),
    ("a: *x\n", "aliases"),
    ("a: !!python/object/apply:os.system [id]\n", "tags"),
    ("a: " + "[" * 21 + "]" * 21 + "\n", "nested"),
    ("a: " + "[" * 60_000, "nested|not valid YAML"),
    ("a: [b\n", "not valid YAML"),
    ("a: b: c\n", "line 2"),
    ("private: true\nprivate: false\n", "twice"),
    ("metadata:\n  private: true\n  private: false\n", "twice"),
    ("[a]: b\n", "as a key"),
    ("a: b\n...\nc: d\n", "not valid YAML"),
    ("just prose\n", "not a list of keys"),
    ("a: [" + "x, " * 30_000 + "x]\nb: {}\n", "larger than"),
])  # fmt: skip
def test_what_must_not_be_expanded_is_reported(head: str, word: str) -> None:
    with pytest.raises(FactProblem, match=word):
        read_mapping(head)


def test_nesting_of_twenty_is_read() -> None:
    assert read_mapping("a: " + "[" * 19 + "]" * 19 + "\n")


def test_a_missing_c_library_is_an_error_and_no_slow_loader(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(yaml, "CBaseLoader")
    with pytest.raises(AgentBridgeError, match="C library"):
        load_mapping("a: {}\n")


@pytest.mark.parametrize(("text", "head", "body", "closed"), [
    ("---\na: b\n---\nbody", "a: b\n", "body", True),
    ("\ufeff---\r\na: b\r\n--- \r\nbody", "a: b\r\n", "body", True),
    ("---\n---\nbody", "", "body", True),
    ("---\na: b\n---", "a: b\n", "", True),
    ("---\na: b\nbody", "", "---\na: b\nbody", False),
    ("body\n---\na: b\n---\n", "", "body\n---\na: b\n---\n", False),
    ("----\na: b\n---\n", "", "----\na: b\n---\n", False),
    ("", "", "", False),
    ("---", "", "---", False),
    ("---\na: b\n --- \nc: d\n---\nx", "a: b\n --- \nc: d\n", "x", True),
])  # fmt: skip
def test_where_the_frontmatter_lies(text: str, head: str, body: str, closed: bool) -> None:
    parts = split(text)
    assert (text[parts.start : parts.end], text[parts.body :], parts.closed) == (head, body, closed)


_ENTRY = "id: {id}\ntype: memory\ntags: [{tags}]\ncreated_at: 2026-03-01\nupdated_at: x\nsource: cli\n"


@pytest.mark.parametrize(
    ("tags", "expected"),
    [
        ("queue: limits, a[b", ["queue: limits", "a[b"]),
        ("a]b, {c, *d, e #f", ["a]b", "{c", "*d", "e #f"]),
        ("a, b", ["a", "b"]),
        ("", []),
    ],
)
def test_tags_as_memory_bridge_writes_them(tags: str, expected: list[str]) -> None:
    head = _ENTRY.format(id="20260301-0001-x", tags=tags)
    keys = read_mapping(head)
    assert keys["tags"] == expected
    assert keys["id"] == "20260301-0001-x"
    assert read_mapping(f"{head}private: true\n")["private"] == "true"
    assert read_mapping(head.replace("\n", "\r\n")) == keys


@pytest.mark.parametrize(
    "head",
    [
        "tags: [a: b, c[d]\n",
        _ENTRY.format(id="&a x", tags="a[b"),
        _ENTRY.format(id="x", tags="a[b") + "more: *a\n",
        _ENTRY.format(id="x", tags="a[b") + "id: y\n",
    ],
)
def test_what_is_no_entry_of_memory_bridges_is_left_to_yaml(head: str) -> None:
    with pytest.raises(FactProblem):
        read_mapping(head)
