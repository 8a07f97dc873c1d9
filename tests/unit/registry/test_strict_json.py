"""JSON that somebody else wrote: one meaning, or refused with what is wrong."""

from __future__ import annotations

import contextlib
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_bridge.channel.errors import InvalidError
from agent_bridge.registry import strict_json

_TEXT = st.text(st.characters(exclude_categories=["Cs"]))
_VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | _TEXT,
    lambda below: st.lists(below, max_size=4) | st.dictionaries(_TEXT, below, max_size=4),
    max_leaves=20,
)


@given(_VALUES, st.booleans())
def test_what_is_json_is_read_as_it_is(value: object, escaped: bool) -> None:
    text = json.dumps(value, ensure_ascii=escaped)
    assert strict_json.read(text) == value
    assert strict_json.read(text.encode()) == value


@given(st.binary())
def test_whatever_comes_is_read_or_refused(data: bytes) -> None:
    with contextlib.suppress(InvalidError):
        strict_json.read(data)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (b'{"a": 1, "b": 2, "a": 3}', "a key twice (a)"),
        (b'{"deep": {"kind": 1, "kind": 1}}', "a key twice (kind)"),
        (b"[" * 100_000, "nested too deeply"),
        (b'{"a":' * 100_000, "nested too deeply"),
        (b"NaN", "NaN is no JSON number"),
        (b'{"a": -Infinity}', "-Infinity is no JSON number"),
        (b"9" * 5000, "can't be read"),
        (b'"\\ud800"', "can't be read"),
        (b'{"\\udfff\\ud800": 1}', "can't be read"),
        (b'"\xed\xa0\x80"', "UTF-8"),
        (b'"\xff"', "byte 1"),
        (b"\xef\xbb\xbf{}", "isn't JSON"),
        (b"", "isn't JSON"),
        (b"{} {}", "line 1, column 4"),
        (b"{'a': 1}", "isn't JSON"),
    ],
)
def test_what_has_no_one_meaning_is_refused(text: bytes, said: str) -> None:
    with pytest.raises(InvalidError) as refused:
        strict_json.read(text)
    assert said in refused.value.sentence()


@pytest.mark.parametrize("value", ["[]", "{}", "1", '"a"', r'"\""'])
def test_so_many_values_that_reading_them_would_stop_everybody_are_refused(value: str) -> None:
    text = f"[{','.join([value] * (strict_json.COMMAS_LIMIT + 2))}]"
    with pytest.raises(InvalidError, match="too many values"):
        strict_json.read(text)


@pytest.mark.parametrize("text", [",", r"\",\\", "a,\nb,"])
def test_commas_within_a_text_are_none(text: str) -> None:
    value = [text * (strict_json.COMMAS_LIMIT + 2), {"a": text}]
    assert strict_json.read(json.dumps(value)) == value


def test_a_surrogate_pair_is_one_character() -> None:
    assert strict_json.read(b'"\\ud83d\\ude00"') == "\U0001f600"


def _nested(depth: int) -> object:
    value: object = 1
    for _ in range(depth):
        value = {"a": value}
    return value


@pytest.mark.parametrize(
    "value", [_nested(strict_json.DEPTH_LIMIT), [0] * (strict_json.VALUES_LIMIT - 1), 2**63 - 1]
)
def test_free_values_within_the_bounds_are_taken(value: object) -> None:
    strict_json.check_free(value, "meta")


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (_nested(strict_json.DEPTH_LIMIT + 1), "deep"),
        ([0] * strict_json.VALUES_LIMIT, "values"),
        ({"a": [2**63]}, "64 bits"),
        ({"a": [-(2**63)]}, "64 bits"),
        ({"a": float("inf")}, "64 bits"),
        ({"a": -1e300}, "64 bits"),
    ],
)
def test_free_values_past_the_bounds_are_refused_by_name(value: object, said: str) -> None:
    with pytest.raises(InvalidError) as refused:
        strict_json.check_free(value, "meta")
    assert refused.value.title.startswith("meta")
    assert said in refused.value.detail
