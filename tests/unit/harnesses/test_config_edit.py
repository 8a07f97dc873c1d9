"""Edits in foreign TOML, JSON and line files: only the key changes, and taking it back restores the bytes."""

from __future__ import annotations

import difflib
import json
import tomllib

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from agent_bridge.errors import MarkerError, RefusedError
from agent_bridge.harnesses import config_edit
from agent_bridge.harnesses.config_edit import (
    ABSENT,
    ensure_lines,
    json_get,
    json_set,
    json_unset,
    remove_lines,
    toml_get,
    toml_set,
    toml_unset,
)

FEATURE = ("features", "memories")

# --- TOML -----------------------------------------------------------------------------------------------

ROOT_LINES = st.lists(
    st.sampled_from(
        [
            "# a comment",
            "",
            'model = "x" # why',
            "n=1",
            "'quoted key' = 2",
            'text = """\n[features]\nmemories = 1 # no\n"""',
            "raw = '''\n[memories]\n'''''",
            'list = [\n  "a", # one\n  ["#", { x = 1 }],\n]',
            "when = 1979-05-27T07:32:00Z",
            "notice.a.b = true",
        ]
    ),
    max_size=5,
    unique=True,
)
FEATURES = st.sampled_from(
    [
        "",
        "[features]\n",
        "[features]",
        "[features] # mine\n",
        "[features]\n# kept\n",
        "[features]\nother = true\n",
        "[ features ]\n  other = true # c\n\n",
        "[features]\nother = [\n 1,\n]\n# after\n",
        "[features.sub]\nx = 1\n",
        "[[items]]\nname = 'a'\n[items.features]\nmemories = true\n",
        '[projects."/a/b"]\ntrust_level = "trusted"\n',
    ]
)
ROOT_FEATURES = st.sampled_from(
    [
        "",
        "features = {}\n",
        "features = { }\n",
        "features = { a = 1, b.c = 2 }\n",
        "features.other = true # c\n",
    ]
)


@st.composite
def toml_files(draw: st.DrawFn) -> bytes:
    root = "".join(line + "\n" for line in draw(ROOT_LINES))
    dotted = draw(ROOT_FEATURES)
    tables = draw(FEATURES)
    if dotted and "features" in tables:
        tables = ""
    tail = draw(st.sampled_from(["", "\n[tui]\nx = 1\n", "[z]\n", "\n\n# end\n"]))
    text = root + dotted + tables + ("\n" if tables and not tables.endswith("\n") and tail else "") + tail
    if draw(st.booleans()):
        text = text.removesuffix("\n")
    data = text.replace("\n", draw(st.sampled_from(["\n", "\r\n"]))).encode()
    tomllib.loads(text)
    return draw(st.sampled_from([b"", b"\xef\xbb\xbf"])) + data


KEYS = st.sampled_from(
    [FEATURE, ("memories", "use_memories"), ("top",), ("features", "deep", "er"), ("a b", 'c"d')]
)
VALUES = st.sampled_from([False, 1, 1.5, 'text "with" \\ and é\n', [1, 2], ["a"], {"x": True}])


@given(toml_files(), KEYS, VALUES)
@example(b"", FEATURE, False)
@example(b"[features]", FEATURE, False)
def test_toml_set_changes_one_key_and_unset_restores(
    data: bytes, key: tuple[str, ...], value: object
) -> None:
    before = tomllib.loads(data.decode("utf-8-sig"))
    changed = toml_set(data, key, value)
    assert toml_get(changed, key) == value
    assert removed_lines(data, changed) <= 1
    assert toml_set(changed, key, value) == changed
    restored = toml_unset(changed, key)
    assert restored == data
    assert tomllib.loads(restored.decode("utf-8-sig")) == before


@given(
    toml_files(), st.permutations([FEATURE, ("memories", "use_memories"), ("memories", "generate_memories")])
)
def test_toml_keys_come_off_in_any_order(data: bytes, order: list[tuple[str, ...]]) -> None:
    changed = data
    for key in sorted(order):
        changed = toml_set(changed, key, False)
    for key in order:
        changed = toml_unset(changed, key)
    assert changed == data


@given(toml_files(), VALUES, VALUES)
def test_toml_former_value_comes_back(data: bytes, former: object, value: object) -> None:
    data = toml_set(data, FEATURE, former)
    assert toml_set(toml_set(data, FEATURE, value), FEATURE, former) == data


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("[features]\nmemories = true # mine\nx = 1\n", "[features]\nmemories = false # mine\nx = 1\n"),
        ("features = { memories = true, x = 1 } # c\n", "features = { memories = false, x = 1 } # c\n"),
        ("features.memories = true\n", "features.memories = false\n"),
        ("features.x = 1\n\n[tui]\n", "features.x = 1\nfeatures.memories = false\n\n[tui]\n"),
        ("features = { x = 1 }\n", "features = { x = 1, memories = false }\n"),
        ("[features]\r\nx = 1\r\n", "[features]\r\nx = 1\r\nmemories = false\r\n"),
        ("[features]\nx = 1\n\n[tui]\ny = 2\n", "[features]\nx = 1\nmemories = false\n\n[tui]\ny = 2\n"),
        ("a = 1\n", "a = 1\n\n[features]\nmemories = false\n"),
        ("a = 1", "a = 1\n\n[features]\nmemories = false"),
        ("", "[features]\nmemories = false\n"),
        ("\ufeffa = 1\n", "\ufeffa = 1\n\n[features]\nmemories = false\n"),
        ('"features" . "memories"=true', '"features" . "memories"=false'),
        ("[features]\n  x = 1", "[features]\n  x = 1\n  memories = false"),
    ],
)
def test_where_a_toml_key_goes(before: str, after: str) -> None:
    assert toml_set(before.encode(), FEATURE, False).decode() == after


def test_toml_top_level_key_stands_above_the_first_table() -> None:
    data = toml_set(b"[a]\nx = 1\n", ("top",), 5)
    assert data == b"top = 5\n[a]\nx = 1\n"


@pytest.mark.parametrize(
    ("data", "detail"),
    [
        (b"a = 1\nb = \n", "line 2, column 5"),
        (b"a = 1\nb = [1", "line 2, column 7"),
        (b"a = 1\na = 2\n", "line 2"),
        (b"a = '\xff'\n", "line 1, column 6"),
        (b"a = " + b"[" * 5000 + b"]" * 5000, ""),
    ],
)
def test_what_is_no_toml_is_refused_with_its_place(data: bytes, detail: str) -> None:
    for use in (toml_get, toml_unset, lambda data, key: toml_set(data, key, False)):
        with pytest.raises(RefusedError) as caught:
            use(data, FEATURE)
        assert detail in caught.value.detail


@pytest.mark.parametrize("data", [b"features = 1\n", b"features = [1]\n", b"[[features]]\nx = 1\n"])
def test_toml_path_through_something_else_is_refused(data: bytes) -> None:
    with pytest.raises(RefusedError):
        toml_set(data, FEATURE, False)


def test_toml_comment_behind_a_key_of_ours_is_kept() -> None:
    assert toml_unset(b"[features]\nmemories = false # see wiki\n", FEATURE) == b"[features]\n# see wiki\n"


def test_toml_unset_leaves_what_others_added_meanwhile() -> None:
    data = toml_set(b"a = 1\n", FEATURE, False) + b"\n[tui]\nseen = true\n"
    assert toml_unset(data, FEATURE) == b"a = 1\n\n[tui]\nseen = true\n"


def test_toml_types_count() -> None:
    assert toml_set(b"a = 1\n", ("a",), True) == b"a = true\n"
    assert toml_get(b"a = 1\n", ("b",)) is ABSENT
    assert toml_unset(b"a = 1\n", ("b",)) == b"a = 1\n"


# --- JSON -----------------------------------------------------------------------------------------------

JSON_FILES = st.sampled_from(
    [
        "{}",
        "{}\n",
        "{ }",
        "{\n}\n",
        '{"a": 1}',
        '{ "a": 1 , "b": [1, {"x": 2}] }',
        '{"a": "http://x"}',
        '{\n  "a": 1\n}\n',
        '{\n\t"a": 1, // why\n\t"b": {"c": []},\n}\n',
        '{\n  "a": 1 // no comma\n}\n',
        '{\n  "a": 1 /* x */ // y\n\n  // end\n}',
        '// top\n{\n    "a": { "b": 1 },\n    "permissions": {}\n}\n// bottom',
        '{"permissions": {"deny": ["x"]}}',
        '{\n  "permissions": {\n    "deny": ["x"]\n  }\n}\n',
        '{\n  "permissions": {\n  }\n}\n',
        "{ // c\n}",
        '{"a": 1,}',
        '{"a": 1, /* c */}',
        '{"a": 1\n}',
        '{\n  "a": 1  \n}',
    ]
)
JSON_KEYS = st.sampled_from([("autoMemoryDirectory",), ("permissions", "allow"), ("x", "y", "z")])
JSON_VALUES = st.sampled_from([True, None, 1, '/tmp/é "q" \\', "\ud800", ["a", 1], {"k": {"l": 1}}, {}])
JSON_ENDS = st.sampled_from(["\n", "\r\n"])


@given(JSON_FILES, JSON_ENDS, st.booleans(), JSON_KEYS, JSON_VALUES)
def test_json_set_changes_one_key_and_unset_restores(
    text: str, eol: str, bom: bool, key: tuple[str, ...], value: object
) -> None:
    data = (b"\xef\xbb\xbf" if bom else b"") + text.replace("\n", eol).encode()
    changed = json_set(data, key, value)
    assert json_get(changed, key) == value
    assert json_set(changed, key, value) == changed
    assert without_added(changed, data)
    assert json_unset(changed, key) == data


@given(JSON_FILES, JSON_VALUES, JSON_VALUES)
def test_json_former_value_comes_back(text: str, former: object, value: object) -> None:
    data = json_set(text.encode(), ("k",), former)
    assert json_set(json_set(data, ("k",), value), ("k",), former) == data


@given(JSON_FILES, st.permutations([("k",), ("permissions", "allow"), ("x", "y")]))
def test_json_keys_come_off_in_reverse_or_leave_valid_json(text: str, order: list[tuple[str, ...]]) -> None:
    data = text.encode()
    changed = data
    for key in order:
        changed = json_set(changed, key, "v")
    for key in reversed(order):
        changed = json_unset(changed, key)
    assert changed == data
    for key in order:
        changed = json_set(changed, key, "v")
    for key in order:
        changed = json_unset(changed, key)
        assert json_get(changed, key) is ABSENT


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("", '{\n  "k": "v"\n}\n'),
        (" \n", '{\n  "k": "v"\n}\n'),
        ("{}\n", '{\n  "k": "v"\n}\n'),
        ('{"a": 1}', '{"a": 1, "k": "v"}'),
        ('{\n\t"a": 1\n}', '{\n\t"a": 1,\n\t"k": "v"\n}'),
        ('{\n  "a": 1 // c\n}', '{\n  "a": 1, // c\n  "k": "v"\n}'),
        ('{\n  "a": 1, // c\n}', '{\n  "a": 1, // c\n  "k": "v",\n}'),
        ('{"k": /* was */ 1}', '{"k": /* was */ "v"}'),
    ],
)
def test_where_a_json_key_goes(before: str, after: str) -> None:
    assert json_set(before.encode(), ("k",), "v").decode() == after


def test_json_nested_keys() -> None:
    data = b'{\n  "a": 1\n}\n'
    changed = json_set(data, ("x", "y"), True)
    assert changed == b'{\n  "a": 1,\n  "x": {"y": true}\n}\n'
    assert json_unset(changed, ("x", "y")) == data


@pytest.mark.parametrize(
    ("text", "detail"),
    [
        ('{\n  "a": 1\n  "b": 2\n}', "line 3, column 3: a comma or } is missing"),
        ('{"a": 1, "a": 2}', "line 1, column 10: the key 'a' stands twice"),
        ('{"x": {"a": 1,\n "a": 2}}', "line 2, column 2"),
        ('{"a": tru}', "line 1, column 7: 'tru' is no value"),
        ("{'a': 1}", "a name in double quotes is missing"),
        ('{"a" 1}', "a colon is missing"),
        ('{"a": [1 2]}', "a comma or ] is missing"),
        ('{"a": ', "line 1, column 7: a value is missing"),
        ('{"a": "x\n"}', "the string isn't closed on its line"),
        ('{"a": "\\x"}', "the string has a wrong escape"),
        ("{} {}", "nothing more may follow"),
        ("[" * 5000, "nested too deeply"),
        ('{"a": 01}', "'01' is no value"),
        ('{"a": ' + "9" * 5000 + "}", "the number is too long"),
        ("[1]", ""),
    ],
)
def test_what_is_no_json_object_is_refused_with_its_place(text: str, detail: str) -> None:
    with pytest.raises(RefusedError) as caught:
        json_set(text.encode(), ("k",), 1)
    assert detail in caught.value.detail


def test_json_path_through_something_else_is_refused() -> None:
    with pytest.raises(RefusedError):
        json_set(b'{"a": 1}', ("a", "b"), 1)
    assert json_get(b'{"a": null}', ("a",)) is None
    assert json_get(b'{"a": null}', ("a", "b")) is ABSENT
    assert json_unset(b'{"a": 1}', ("b",)) == b'{"a": 1}'
    assert json_unset(b"", ("b",)) == b""
    with pytest.raises(RefusedError):
        json_get(b"{\xff}", ("a",))


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
        max_leaves=8,
    )
)
def test_json_reads_what_the_standard_writes(value: object) -> None:
    assert json_get(json.dumps({"a": value}).encode(), ("a",)) == value


# --- lines ----------------------------------------------------------------------------------------------

LINE_FILES = st.one_of(
    st.binary(max_size=40), st.sampled_from([b"", b"a", b"a\n", b"a\r\nb", b"x\r", b"# c\n\n"])
).filter(lambda data: b"agent-bridge" not in data)


@given(
    LINE_FILES,
    st.lists(st.sampled_from(["/.memory/**/*.md", "!/a é.md", "# x", "\udcff"]), min_size=1, max_size=3),
)
def test_lines_come_and_go(data: bytes, lines: list[str]) -> None:
    changed = ensure_lines(data, lines)
    assert changed.startswith(data)
    assert ensure_lines(changed, lines) == changed
    assert set(lines) <= set(changed.decode("utf-8", "surrogateescape").splitlines())
    other = ensure_lines(changed, ["other"])
    assert ensure_lines(other, lines) == changed
    assert remove_lines(other) == data
    assert ensure_lines(changed, []) == data


def test_lines_of_others_around_our_section_stay() -> None:
    data = ensure_lines(b"mine", ["ours"]) + b"later\n"
    assert ensure_lines(data, ["new"]).endswith(b"new\n# agent-bridge:end\nlater\n")
    assert remove_lines(data) == b"mine\nlater\n"


@pytest.mark.parametrize(
    ("data", "line"),
    [
        (b"a\n# agent-bridge:start\nx\n", 2),
        (b"a\n\n# agent-bridge:end\n", 3),
        (b"# agent-bridge:start\n# agent-bridge:start\n# agent-bridge:end\n", 2),
        (b"# agent-bridge:start\n# agent-bridge:end\n# agent-bridge:start\n", 3),
    ],
)
def test_broken_sections_are_refused(data: bytes, line: int) -> None:
    for use in (remove_lines, lambda data: ensure_lines(data, ["x"])):
        with pytest.raises(MarkerError) as caught:
            use(data)
        assert caught.value.line == line


def test_a_line_has_no_line_break() -> None:
    with pytest.raises(ValueError, match="line break"):
        ensure_lines(b"", ["a\nb"])


def removed_lines(before: bytes, after: bytes) -> int:
    """How many of the lines that were there are gone or changed, line ends aside."""
    matcher = difflib.SequenceMatcher(None, before.split(b"\n"), after.split(b"\n"), autojunk=False)
    return sum(end - start for tag, start, end, _, _ in matcher.get_opcodes() if tag in ("replace", "delete"))


def without_added(changed: bytes, data: bytes) -> bool:
    """Whether `data` is `changed` with some bytes left out."""
    rest = iter(changed)
    return all(byte in rest for byte in data)


def test_our_lines_are_read_back() -> None:
    data = config_edit.ensure_lines(b"theirs", ["/a", "!/b"])
    assert config_edit.our_lines(data) == ["/a", "!/b"]
    assert config_edit.our_lines(b"theirs\n") == []
