"""One element in an array of foreign TOML or JSON: all else stays, taking it back restores the bytes."""

from __future__ import annotations

import copy
import json
import tomllib
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_bridge.errors import RefusedError
from agent_bridge.harnesses.config_edit import (
    ABSENT,
    json_add_element,
    json_get,
    json_has_element,
    json_remove_element,
    toml_add_element,
    toml_get,
    toml_has_element,
    toml_remove_element,
    toml_set,
)

KEY = ("hooks", "SessionStart")
HOOK = {"matcher": "startup|é", "hooks": [{"type": "command", "command": 'say "[]#//" \\', "timeout": 5}]}

# --- JSON -----------------------------------------------------------------------------------------------

ARRAYS = [
    "[]",
    "[ ]",
    "[\n]",
    "[\n  ]",
    "[ // none\n  ]",
    "[\n  // none yet\n]",
    "[ /* none */ ]",
    "[ /* no\n ne */ ]",
    "[1]",
    "[1,]",
    "[ 1 ]",
    '["a//b", 2 /* two */]',
    "[1 /* // */]",
    "[\n    1\n  ]",
    "[\n\t1,\n\t2,\n]",
    "[\n    1, // one  \n    2 // two \n]",
    "[\n    1  \n]",
    "[1, 2\n]",
    '[{\n  "x": 1\n}\n]',
    '[\n    {"x": [1, [2]]}, // c\n\n    {\n      "y": 1\n    }\n\n]',
    "[1\n, // late\n2\n, // later\n]",
]
AROUND = [
    "%s",
    '{"hooks": {"SessionStart": %s}}',
    '{"hooks": {"SessionStart": %s}}\n',
    '{"a": 1, "hooks": {"SessionStart": %s, "Stop": []}, "z": "]"}',
    '{\n  "hooks": {\n    "SessionStart": %s,\n    "Stop": [1]\n  }\n}\n',
    '// top\n{\n\t"hooks": /* h */ {\n\t\t"SessionStart": %s // end\n\t},\n}\n',
]
NO_ARRAY = [
    "",
    "{}",
    "{}\n",
    '{\n  "a": 1\n}\n',
    '{"a": 1}',
    '{"hooks": {}}',
    '{\n  "hooks": {\n    "Stop": []\n  }\n}\n',
    '{\n  "a": 1, // c  \n}\n',
]
JSON_VALUES = st.sampled_from([HOOK, {}, [], ["a"], 7, 1.0, True, None, "é\n", "\ud800"])


@st.composite
def json_files(draw: st.DrawFn, *, with_array: bool = False) -> bytes:
    around = draw(st.sampled_from(AROUND[1:] if with_array else AROUND))
    missing = around == "%s" and not with_array
    text = draw(st.sampled_from(NO_ARRAY)) if missing else around % draw(st.sampled_from(ARRAYS))
    data = text.replace("\n", draw(st.sampled_from(["\n", "\r\n"]))).encode()
    return draw(st.sampled_from([b"", b"\xef\xbb\xbf"])) + data


@given(json_files(), JSON_VALUES)
def test_a_json_element_comes_and_goes(data: bytes, value: object) -> None:
    before = json_get(data, KEY)
    changed = json_add_element(data, KEY, value)
    assert json_has_element(changed, KEY, value)
    assert not json_has_element(data, KEY, value)
    assert json_get(changed, KEY) == [*as_list(before), value]
    assert json_add_element(changed, KEY, value) == changed
    assert without_added(changed, data)
    restored = json_remove_element(changed, KEY, value, made=before is ABSENT)
    assert restored == data or not data.strip(b"\xef\xbb\xbf")
    assert json_get(restored, KEY) == before
    assert restored.endswith(b"{}\n") or data.strip(b"\xef\xbb\xbf")


@given(json_files(), st.permutations([HOOK, "b", 3]))
def test_several_json_elements_come_off_in_any_order(data: bytes, order: list[Any]) -> None:
    before = json_get(data, KEY)
    changed = data
    for value in (HOOK, "b", 3):
        changed = json_add_element(changed, KEY, value)
    for value in order:
        changed = json_remove_element(changed, KEY, value, made=before is ABSENT)
        assert not json_has_element(changed, KEY, value)
    assert json_get(changed, KEY) == before
    if order == [3, "b", HOOK] and data.strip(b"\xef\xbb\xbf"):
        assert changed == data


@given(json_files(with_array=True), st.data())
def test_any_json_element_can_go(data: bytes, draw: st.DataObject) -> None:
    before = json_get(data, KEY)
    assert isinstance(before, list)
    for value in draw.draw(st.permutations(before)):
        data = json_remove_element(data, KEY, value)
        before.remove(value)
        assert json_get(data, KEY) == before


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("", '{\n  "k": ["v"]\n}\n'),
        ('{"k": []}', '{"k": ["v"]}'),
        ('{"k": [1]}', '{"k": [1, "v"]}'),
        ('{\n  "k": [\n    1\n  ]\n}', '{\n  "k": [\n    1,\n    "v"\n  ]\n}'),
        ('{\n  "k": [\n    1, // c\n  ]\n}', '{\n  "k": [\n    1, // c\n    "v",\n  ]\n}'),
        ('{\n  "k": [\n  ]\n}', '{\n  "k": [\n    "v"\n  ]\n}'),
        ('{\n\t"k": [ // c\n\t]\n}', '{\n\t"k": [ // c\n\t\t"v"\n\t]\n}'),
    ],
)
def test_where_a_json_element_goes(before: str, after: str) -> None:
    assert json_add_element(before.encode(), ("k",), "v").decode() == after


def test_a_json_object_among_objects_is_laid_out_as_they_are() -> None:
    data = b'{\n  "k": [\n    {\n      "a": 1\n    }\n  ]\n}\n'
    expected = json.dumps({"k": [{"a": 1}, {"b": 2}]}, indent=2) + "\n"
    assert json_add_element(data, ("k",), {"b": 2}).decode() == expected


def test_an_array_that_was_there_stays_and_one_made_for_us_goes() -> None:
    assert json_remove_element(b'{"k": ["v"]}', ("k",), "v") == b'{"k": []}'
    assert json_remove_element(b'{"k": ["v"], "z": 1}', ("k",), "v", made=True) == b'{ "z": 1}'
    assert json_remove_element(b'{"k": ["v", "theirs"]}', ("k",), "v", made=True) == b'{"k": [ "theirs"]}'
    assert toml_remove_element(b"k = ['v']\n", ("k",), "v") == b"k = []\n"
    assert toml_remove_element(b"k = ['v']\nz = 1\n", ("k",), "v", made=True) == b"z = 1\n"


def test_nothing_is_removed_that_is_not_there() -> None:
    for data in (b"", b"{}", b'{"k": []}', b'{"k": [1]}', b'{"k": [true]}'):
        assert json_remove_element(data, ("k",), 1.0, made=True) == data
    for data in (b"", b"k = []\n", b"k = [1]\n", b"[[k]]\nx = 1\n"):
        assert toml_remove_element(data, ("k",), 1.0, made=True) == data


def test_json_values_are_compared_with_their_types() -> None:
    data = b'{"k": [1, {"a": true, "b": 2}]}'
    assert not json_has_element(data, ("k",), True)
    assert json_has_element(data, ("k",), {"b": 2, "a": True})
    assert not json_has_element(data, ("k",), {"b": 2, "a": 1})


@pytest.mark.parametrize(
    ("use", "data", "detail"),
    [
        (json_add_element, b'{\n  "hooks": {"SessionStart": {}}\n}', "line 2, column 29: it is no array"),
        (json_add_element, b'{\n  "hooks": []\n}', "line 2, column 12: `hooks` is no object"),
        (json_add_element, b"[]", "line 1, column 1: the whole file is no object"),
        (json_add_element, b'{"a": 1,\n"a": 2}', "line 2, column 1"),
        (json_add_element, b"{\xff}", "line 1, column 2"),
        (toml_add_element, b"a = 1\n[hooks]\nSessionStart = 1\n", "line 3, column 16: it is no array"),
        (toml_add_element, b"a = 1\n[hooks.SessionStart]\n", "line 2, column 1: it is no array"),
        (toml_add_element, b"hooks.SessionStart.x = 1\n", "line 1, column 1: it is no array"),
        (toml_add_element, b"\n[[hooks]]\nx = 1\n", "line 2, column 1: `hooks` is no table"),
        (toml_add_element, b"hooks = 1\n", "line 1, column 9: `hooks` is no table"),
        (toml_add_element, b"a = 1\nb = \n", "line 2, column 5"),
    ],
)
def test_what_takes_no_element_is_refused_with_its_place(
    use: Callable[[bytes, tuple[str, ...], object], bytes], data: bytes, detail: str
) -> None:
    for action in (
        use,
        json_has_element if use is json_add_element else toml_has_element,
        json_remove_element if use is json_add_element else toml_remove_element,
    ):
        with pytest.raises(RefusedError) as caught:
            action(data, KEY, {"x": 1})
        assert detail in caught.value.detail


# --- TOML -----------------------------------------------------------------------------------------------

TOML_HOOK = copy.deepcopy(HOOK)
TOML_ARRAYS = [
    "[hooks]\nSessionStart = []\n",
    "[hooks]\nSessionStart = [ ] # none\n",
    "[hooks]\nSessionStart = [\n] # none\n",
    "[hooks]\nSessionStart = [ # none\n]\n",
    "[hooks]\nSessionStart = [1, 'b#]', [2]] # c\n",
    "[hooks]\nSessionStart = [\n  1, # one  \n  2 # two\n]\nother = 1\n",
    "[hooks]\nSessionStart = [\n  { matcher = 'x' },\n  'y',\n]\n",
    "hooks.SessionStart = [1]\n",
    "hooks = { SessionStart = [1, ], Stop = [] }\n",
    "[hooks]\nSessionStart = [1\n, # late\n2\n, # later\n]\n",
]
TOML_TABLES = [
    "[[hooks.SessionStart]]\nmatcher = 'x'\n",
    "[[ hooks . SessionStart ]] # first\n\n  matcher = 'x' # m\n\n[[hooks.SessionStart]]\n",
    "[[hooks.SessionStart]]\n[[hooks.SessionStart.hooks]]\ncommand = 'c'\n\n[hooks.state]\nx = 1\n",
    "[hooks]\nx = 1\n[[hooks.SessionStart]]\n# mine\n",
]
TOML_NO_ARRAY = [
    "",
    "[hooks]\n",
    "[hooks]\nx = 1\n",
    "hooks = {}\n",
    "hooks.x = 1\n",
    "[[hooks.Stop]]\nx = 1\n",
    "[hooks.state]\nx = 1\n",
]
TOML_VALUES = st.sampled_from([TOML_HOOK, {}, [], ["a"], 7, 1.5, True, "é\n"])


@st.composite
def toml_files(draw: st.DrawFn, kinds: list[str]) -> bytes:
    head = draw(st.sampled_from(["", "# top\n", "a = 1\n", "\n\n", "text = '''\n[hooks]\n'''\n\n"]))
    text = draw(st.sampled_from(kinds))
    if text.startswith("hooks") or not text.startswith("["):
        head = "" if head == "\n\n" else head
    tail = draw(st.sampled_from(["", "\n[tui]\nx = 1\n", "\n\n# end\n", "[[other]]\n", "[z]\n"]))
    whole = head + text + tail
    if draw(st.booleans()):
        whole = whole.removesuffix("\n")
    data = whole.replace("\n", draw(st.sampled_from(["\n", "\r\n"]))).encode()
    return draw(st.sampled_from([b"", b"\xef\xbb\xbf"])) + data


@given(toml_files(TOML_ARRAYS + TOML_NO_ARRAY), TOML_VALUES)
def test_a_toml_element_comes_and_goes(data: bytes, value: object) -> None:
    check_toml(data, value)


@given(toml_files(TOML_TABLES), st.sampled_from([TOML_HOOK, {"x": 1}, {"matcher": "y", "a b": [1]}]))
def test_a_toml_table_of_an_array_comes_and_goes(data: bytes, value: object) -> None:
    check_toml(data, value)


def check_toml(data: bytes, value: object) -> None:
    before = toml_get(data, KEY)
    changed = toml_add_element(data, KEY, value)
    assert toml_has_element(changed, KEY, value)
    assert not toml_has_element(data, KEY, value)
    assert toml_get(changed, KEY) == [*as_list(before), value]
    assert toml_add_element(changed, KEY, value) == changed
    assert without_added(changed, data)
    assert toml_remove_element(changed, KEY, value, made=before is ABSENT) == data


@given(toml_files(TOML_ARRAYS + TOML_NO_ARRAY + TOML_TABLES), st.permutations([1, 2, 3]))
def test_several_toml_elements_come_off_in_any_order(data: bytes, order: list[int]) -> None:
    before = toml_get(data, KEY)
    changed = data
    for number in (1, 2, 3):
        changed = toml_add_element(changed, KEY, {"n": number})
    for number in order:
        changed = toml_remove_element(changed, KEY, {"n": number}, made=before is ABSENT)
        assert not toml_has_element(changed, KEY, {"n": number})
    assert toml_get(changed, KEY) == before
    if order == [3, 2, 1]:
        assert changed == data


@given(toml_files(TOML_ARRAYS + TOML_TABLES), st.data())
def test_any_toml_element_can_go(data: bytes, draw: st.DataObject) -> None:
    before = toml_get(data, KEY)
    assert isinstance(before, list)
    comments = data.count(b"#") - data.count(b"b#]")
    for value in draw.draw(st.permutations(before)):
        data = toml_remove_element(data, KEY, value)
        before.remove(value)
        assert toml_get(data, KEY) in (before, before or ABSENT)
    assert data.count(b"#") == comments  # what a person has written about an element stays


@pytest.mark.parametrize(
    ("before", "value", "after"),
    [
        ("", {"x": 1}, "[[hooks.SessionStart]]\nx = 1\n"),
        ("a = 1\n", {"x": 1}, "a = 1\n\n[[hooks.SessionStart]]\nx = 1\n"),
        ("a = 1", {"x": 1}, "a = 1\n\n[[hooks.SessionStart]]\nx = 1"),
        ("a = 1\n", "v", 'a = 1\n\n[hooks]\nSessionStart = ["v"]\n'),
        ("hooks = {}\n", {"x": 1}, "hooks = { SessionStart = [{ x = 1 }]}\n"),
        (
            "[[hooks.SessionStart]]\ny = 2\n\n[tui]\n",
            {"x": 1},
            "[[hooks.SessionStart]]\ny = 2\n\n[tui]\n\n[[hooks.SessionStart]]\nx = 1\n",
        ),
        ("[hooks]\nSessionStart = [\n  1,\n]\n", "v", '[hooks]\nSessionStart = [\n  1,\n  "v",\n]\n'),
    ],
)
def test_where_a_toml_element_goes(before: str, value: object, after: str) -> None:
    assert toml_add_element(before.encode(), KEY, value).decode() == after


def test_a_toml_table_array_takes_only_tables() -> None:
    with pytest.raises(RefusedError):
        toml_add_element(b"[[hooks.SessionStart]]\n", KEY, "text")


def test_what_others_added_to_a_toml_file_meanwhile_stays() -> None:
    data = toml_add_element(b"a = 1\n", KEY, {"x": 1})
    theirs = toml_add_element(data, KEY, {"theirs": True}) + b"\n[tui]\nseen = 1\n"
    rest = toml_remove_element(theirs, KEY, {"x": 1}, made=True)
    assert rest == b"a = 1\n\n[[hooks.SessionStart]]\ntheirs = true\n\n[tui]\nseen = 1\n"
    assert toml_set(rest, ("a",), 2).startswith(b"a = 2\n")


def test_a_table_spread_over_headers_goes_whole() -> None:
    spread = (
        b"[[hooks.SessionStart]]\nmatcher = 'x'\n[[hooks.SessionStart.hooks]]\ncommand = 'c' # why\n"
        b"\n# next\n[tui]\nx = 1\n"
    )
    value = {"matcher": "x", "hooks": [{"command": "c"}]}
    rest = toml_remove_element(spread, KEY, value)
    assert tomllib.loads(rest.decode()) == {"tui": {"x": 1}}
    assert b"# why" in rest
    assert b"# next" in rest


def as_list(found: object) -> list[Any]:
    """An array, or no array, as a list."""
    return found if isinstance(found, list) else []


def without_added(changed: bytes, data: bytes) -> bool:
    """Whether `data` is `changed` with some bytes left out."""
    rest = iter(changed)
    return all(byte in rest for byte in data)
