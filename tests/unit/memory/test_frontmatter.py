"""Frontmatter: the fast path equals libyaml, bombs stay unexpanded, edits change single lines."""

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
    lookup,
    read_mapping,
    replace_body,
    scalar,
    set_keys,
    split,
)

CLAUDE = (
    "---\nname: use-ports\ndescription: Ports of the dev server\nmetadata: \n  node_type: memory\n"
    "  type: feedback\n  originSessionId: 0b1c\n  modified: 2026-01-01T00:00:00.000Z\n---\n\nUse 5000.\n"
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


@given(st.one_of(st.text(), st.booleans(), st.lists(st.text(max_size=8), max_size=4)))
def test_a_scalar_that_we_write_is_read_back(value: str | bool | list[str]) -> None:
    text = scalar(value)
    assert "\n" not in text
    if isinstance(value, str) and any("\ud800" <= char <= "\udfff" for char in value):
        return
    expected = ("true" if value else "false") if isinstance(value, bool) else value
    assert load_mapping(f"k: {text}\n") == {"k": expected}


@pytest.mark.parametrize(
    "word", ["yes", "No", "null", "~", "12", "1e3", "0x1f", "2026-01-01", "12:30", ".inf", "=", "<<", ""]
)
def test_other_readers_take_our_scalars_for_text(word: str) -> None:
    assert yaml.load(f"k: {scalar(word)}\n", Loader=yaml.CSafeLoader) == {"k": word}
    assert yaml.load(f"k: {scalar([word])}\n", Loader=yaml.CSafeLoader) == {"k": [word]}


def test_a_key_is_changed_where_it_stands_and_nothing_else() -> None:
    text = CLAUDE.replace("type: feedback", "type: feedback\n  private: true # keep\n  tags:\n  - a\n  - b")
    changed = set_keys(text, {"private": False})
    assert changed == text.replace("private: true # keep", "private: false")
    assert set_keys(changed, {"tags": ["c"]}) == changed.replace("tags:\n  - a\n  - b", "tags: [c]")
    assert set_keys(changed, {"tags": None}) == changed.replace("  tags:\n  - a\n  - b\n", "")


@pytest.mark.parametrize("eol", ["\n", "\r\n", "\r"])
def test_a_new_key_goes_below_metadata_with_the_files_line_ends(eol: str) -> None:
    text = CLAUDE.replace("\n", eol)
    assert set_keys(text, {"private": True}) == text.replace(f"000Z{eol}", f"000Z{eol}  private: true{eol}")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("body\n", "---\nprivate: true\n---\n\nbody\n"),
        ("\ufeffbody\r\n", "\ufeff---\r\nprivate: true\r\n---\r\n\r\nbody\r\n"),
        ("---\na: b\n---\nbody", "---\na: b\nprivate: true\n---\nbody"),
        ("---\nmetadata:\na: b\n---\nbody", "---\nmetadata:\n  private: true\na: b\n---\nbody"),
        ("---\nmetadata: {private: false}\n---\nx", "---\nmetadata: {private: false}\nprivate: true\n---\nx"),
        (
            "---\nprivate: false\nmetadata:\n    private: no\n---\nx",
            "---\nprivate: true\nmetadata:\n    private: true\n---\nx",
        ),
        ("---\n'private': false\n---\nx", "---\nprivate: true\n---\nx"),
        ("---\nprivate: >-\n  fal\n  se\nb: c\n---\nx", "---\nprivate: true\nb: c\n---\nx"),
        ("---\nunclosed\n", "---\nprivate: true\n---\n\n---\nunclosed\n"),
    ],
)
def test_setting_a_key(before: str, after: str) -> None:
    assert set_keys(before, {"private": True}) == after


def test_what_cannot_be_set_safely_is_refused() -> None:
    with pytest.raises(FactProblem):
        set_keys("---\n{private: false, a: b}\n---\nx", {"private": True})
    with pytest.raises(FactProblem):
        set_keys("---\na: 'x\nprivate: false\n  y'\n---\nx", {"private": True})


_heads = st.sampled_from(
    ["", "---\na: b\n---\n", "---\na: b\n---\n\n", CLAUDE[: CLAUDE.index("Use")], "\ufeff---\nx: [a]\n---\n"]
)


@given(
    _heads,
    st.text(max_size=60),
    st.sampled_from(["\n", "\r\n", "\r"]),
    st.dictionaries(
        st.sampled_from(["private", "tags", "updated_at", "a"]), st.one_of(st.booleans(), st.none())
    ),
)
def test_setting_keys_keeps_the_body_and_is_idempotent(
    head: str, body: str, eol: str, changes: dict[str, object]
) -> None:
    text = head.replace("\n", eol) + body
    try:
        once = set_keys(text, changes)
    except FactProblem:
        return
    assert once.endswith(body.removeprefix("\ufeff"))
    assert set_keys(once, changes) == once
    keys = read_mapping(once[split(once).start : split(once).end])
    for key, value in changes.items():
        assert lookup(keys, key) == (None if value is None else str(value).lower())


@given(_heads, st.text(max_size=60), st.text(max_size=80))
def test_another_body_keeps_the_frontmatter(head: str, old: str, new: str) -> None:
    try:
        before = split(head + old)
    except FactProblem:
        return
    text = head + old
    after = replace_body(text, new)
    parts = split(after)
    wanted = new.lstrip("\ufeff").replace("\r\n", "\n").replace("\r", "\n").lstrip("\n").rstrip()
    if before.closed:
        assert after.startswith(text[: before.body])
    if wanted:
        body = after[parts.body :].replace("\r\n", "\n").replace("\r", "\n")
        assert body.lstrip("\ufeff\n").rstrip() == wanted.lstrip("\ufeff\n")


def test_a_body_that_looks_like_frontmatter_stays_body() -> None:
    after = replace_body("plain\n", "---\nprivate: false\n---\ntext")
    assert after[split(after).body :] == "\n---\nprivate: false\n---\ntext\n"


def test_the_gap_and_the_final_newline_stay() -> None:
    assert (
        replace_body("---\r\na: b\r\n---\r\n\r\n\r\nold", "new\nlines\n")
        == "---\r\na: b\r\n---\r\n\r\n\r\nnew\r\nlines"
    )
