"""Edits of a frontmatter change single lines, and nothing where they can't be sure."""

from __future__ import annotations

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from agent_bridge.memory.frontmatter import FactProblem, load_mapping, lookup, read_mapping, split
from agent_bridge.memory.frontmatter_edit import replace_body, scalar, set_keys

CLAUDE = (
    "---\nname: use-ports\ndescription: Ports of the dev server\nmetadata: \n  node_type: memory\n"
    "  type: feedback\n  originSessionId: 0b1c\n  modified: 2026-01-01T00:00:00.000Z\n---\n\nUse 5000.\n"
)


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


@pytest.mark.parametrize(
    "value", ["half \ud83d", "\ude00", "a name that is no UTF-8: caf\udce9", ("t\ud83d",)]
)
def test_half_a_character_becomes_a_question_mark_as_yaml_has_none(value: object) -> None:
    written = f"key: {scalar(value)}\n"
    assert "?" in written
    assert "?" in str(read_mapping(written)["key"])
