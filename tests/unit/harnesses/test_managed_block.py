"""Our block in other people's bytes: nothing outside changes, and taking it out undoes putting it in."""

from __future__ import annotations

import re
from typing import NamedTuple

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from agent_bridge.errors import MarkerError, RefusedError
from agent_bridge.harnesses.managed_block import (
    END,
    START,
    around,
    block_text,
    dominant_eol,
    find_block,
    has_block,
    is_ours,
    items,
    outside_texts,
    remove,
    render_block,
    splice,
)


class Fact(NamedTuple):
    id: str
    title: str
    body: str


BODY = render_block([], [Fact("a", "Ports", "Use 4999.\n\n```sh\nserve --port 4999\n```")]).body
OTHER = render_block([], [Fact("b", "Tabs", "Never use tabs.")]).body

LINES = st.sampled_from(
    [
        b"",
        b"# Title",
        b"text",
        b"\xff\xfe\x00",
        b"- item",
        b"```",
        b"~~~~ sh",
        b"<!--",
        b" ",
        b"---",
        b"\xc3\xa9",
    ]
)
ENDS = st.sampled_from([b"\n", b"\r\n", b"\r"])
STRUCTURED = st.builds(
    lambda bom, pairs, last: bom + b"".join(line + end for line, end in pairs) + last,
    st.sampled_from([b"", b"\xef\xbb\xbf"]),
    st.lists(st.tuples(LINES, ENDS), max_size=8),
    LINES,
)
FILES = st.one_of(STRUCTURED, st.binary(max_size=200)).filter(
    lambda data: data[:2] not in (b"\xff\xfe", b"\xfe\xff")
)


@given(FILES)
@example(b"")
@example(b"\xef\xbb\xbf")
@example(b"a\nb\r")
@example(b"a\r\n\r\n\r\n")
@example(b"x" * 40_000)
@example(b"text\n```\nnever closed\n")
def test_remove_undoes_splice_exactly(data: bytes) -> None:
    spliced = splice(data, BODY)
    assert spliced.data != data
    assert remove(spliced.data, spliced.separator) == data


@given(FILES)
@example(b"a\r\nb\n")
@example(b"a\nb\r")
@example(b"\r```\n\n\r\n")
@example(b"# Title\r```\n\n\r\n\r\n")
def test_outside_bytes_stay_and_a_second_splice_changes_nothing(data: bytes) -> None:
    first = splice(data, BODY)
    span = find_block(first.data)
    assert span is not None
    outside = first.data[: span.start] + first.data[span.end :]
    assert outside.replace(b"\r", b"").replace(b"\n", b"") == data.replace(b"\r", b"").replace(b"\n", b"")
    again = splice(first.data, BODY, separator=first.separator)
    assert again == first
    other = splice(first.data, OTHER, separator=first.separator)
    span = find_block(other.data)
    assert span is not None
    assert other.data[: span.start] + other.data[span.end :] == outside
    assert remove(other.data, other.separator) == data


@given(FILES)
def test_block_reads_back_in_any_line_end(data: bytes) -> None:
    spliced = splice(data, BODY).data
    assert block_text(spliced) == BODY
    assert is_ours(spliced)


@given(st.lists(st.sampled_from([START.encode(), END.encode(), b"text", b"```", b""]), max_size=8), ENDS)
def test_any_order_of_markers_is_one_block_or_an_error_with_a_line(lines: list[bytes], end: bytes) -> None:
    data = end.join(lines)
    span, line = None, None
    try:
        span = find_block(data)
    except MarkerError as error:
        line = error.line
    assert line is None or lines[line - 1] in (START.encode(), END.encode())
    assert span is None or data[span.start : span.end].startswith(START.encode())


@pytest.mark.parametrize(
    ("lines", "line"),
    [
        (["text", START, "text"], 2),
        (["text", "", END], 3),
        ([START, "a", START, "b", END], 3),
        ([START, END, START, END], 3),
        ([END, START], 1),
        ([START, END, END], 3),
        (["text", "", START, END, "", START], 6),
    ],
    ids=["no end", "no start", "nested", "doubled", "reordered", "end twice", "block and half a block"],
)
@pytest.mark.parametrize("eol", ["\n", "\r\n", "\r"])
def test_broken_markers_are_refused_with_their_line(lines: list[str], line: int, eol: str) -> None:
    data = eol.join(lines).encode()
    for use in (find_block, remove, is_ours, lambda data: splice(data, BODY)):
        with pytest.raises(MarkerError) as caught:
            use(data)
        assert caught.value.line == line


@pytest.mark.parametrize(
    "line",
    [
        "see " + START,
        START + " text",
        "    " + START,
        "> " + START,
        "`" + START + "`",
        START.upper(),
        "- " + END,
    ],
)
def test_a_marker_counts_only_alone_on_its_line(line: str) -> None:
    assert find_block(f"{line}\n".encode()) is None


@pytest.mark.parametrize("line", [START + "  ", " " + START, "<!--agent-bridge:memory:start-->"])
def test_a_marker_survives_what_formatters_do(line: str) -> None:
    assert block_text(f"{line}\nbody\n{END}\t\n".encode()) == "body"


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"above\n%s\nbelow\n", (b"above\n", b"\nbelow\n")),
        (b"%s\n", (b"", b"\n")),
        (b"none\n", (b"none\n", b"")),
        (b"", (b"", b"")),
        (b"%s\n%s\n", None),
    ],
)
def test_around_is_the_users_text(data: bytes, expected: tuple[bytes, bytes] | None) -> None:
    block = f"{START}\nmine\n{END}".encode()
    data = data.replace(b"%s", block)
    assert around(data) == ((data, b"") if expected is None else expected)
    assert has_block(data) is (expected is not None and block in data)


def test_markers_in_the_users_fenced_code_are_an_example() -> None:
    data = f"How it looks:\n\n```\n{START}\nfacts\n{END}\n```\n".encode()
    assert find_block(data) is None
    spliced = splice(data, BODY)
    assert spliced.data.startswith(data)
    assert block_text(spliced.data) == BODY
    assert remove(spliced.data, spliced.separator) == data


def test_an_example_with_a_valid_hash_is_no_second_block() -> None:
    example = b"```\n" + splice(b"", BODY).data + b"```\n"
    data = splice(b"", OTHER).data + b"\n" + example
    assert block_text(data) == OTHER


@pytest.mark.parametrize("below", [b"", b"\n```py\nx = 1\n```\n"])
def test_a_fence_begun_above_the_block_does_not_hide_it(below: bytes) -> None:
    data = b"```\ntyping\n\n" + splice(b"", BODY).data + below
    assert block_text(data) == BODY
    assert splice(data, BODY).data == data


def test_a_block_goes_above_code_that_is_never_closed() -> None:
    data = b"# Notes\n\n```\nopen\n"
    assert splice(data, BODY).data == b"# Notes\n\n" + splice(b"", BODY).data + b"```\nopen\n"


@pytest.mark.parametrize(
    ("data", "separator"),
    [
        (b"", b""),
        (b"\xef\xbb\xbf", b""),
        (b"\n", b""),
        (b"text", b"\n\n"),
        (b"text\n", b"\n"),
        (b"text\n\n", b""),
        (b"text\n  \n", b""),
        (b"text\r\n", b"\r\n"),
        (b"a\rb", b"\r\r"),
        (b"a\nb\r", b"\r\n"),
    ],
)
def test_one_empty_line_stands_before_the_block(data: bytes, separator: bytes) -> None:
    spliced = splice(data, BODY)
    assert spliced.separator == separator
    assert spliced.data.startswith(data + separator + START.encode())


@pytest.mark.parametrize(
    ("data", "eol"), [(b"a\r\nb\r\nc\n", b"\r\n"), (b"a\rb\r", b"\r"), (b"a\nb\r\n", b"\n")]
)
def test_block_takes_the_dominant_line_end(data: bytes, eol: bytes) -> None:
    spliced = splice(data, BODY)
    block = spliced.data[len(data) + len(spliced.separator) :]
    assert block == f"{START}\n{BODY}\n{END}\n".encode().replace(b"\n", eol)


def test_block_of_a_file_that_is_nothing_else_keeps_converted_line_ends() -> None:
    data = splice(b"", BODY).data.replace(b"\n", b"\r\n")
    assert splice(data, BODY).data == data


def test_removal_after_line_ends_were_converted() -> None:
    spliced = splice(b"text", BODY)
    assert remove(spliced.data.replace(b"\n", b"\r\n"), spliced.separator) == b"text"


def test_removal_keeps_what_was_written_below_the_block_on_its_own_line() -> None:
    spliced = splice(b"above", BODY)
    assert remove(spliced.data + b"below\n", spliced.separator) == b"above\nbelow\n"


@pytest.mark.parametrize(("original", "left"), [(b"text\n", b"text\n"), (b"text", b"text")])
def test_removal_when_the_user_took_the_empty_line_out(original: bytes, left: bytes) -> None:
    spliced = splice(original, BODY)
    assert (
        remove(
            spliced.data.replace(b"\n\n<!-- agent-bridge:memory:start", b"\n<!-- agent-bridge:memory:start"),
            spliced.separator,
        )
        == left
    )


def test_removal_without_a_known_separator_closes_the_gap() -> None:
    assert remove(splice(b"text\n", BODY).data) == b"text\n"


def test_a_missing_newline_behind_the_end_marker_stays_missing() -> None:
    data = splice(b"text\n", BODY).data.rstrip(b"\n")
    assert splice(data, OTHER).data.endswith(END.encode())
    assert remove(data, b"\n") == b"text\n"


def test_file_without_a_block_comes_back() -> None:
    assert remove(b"text\xff\r", b"\n") == b"text\xff\r"
    assert not is_ours(b"text")
    assert block_text(b"text") is None


@pytest.mark.parametrize("bom", [b"\xff\xfe", b"\xfe\xff"])
def test_utf16_is_refused(bom: bytes) -> None:
    with pytest.raises(RefusedError):
        splice(bom + b"t\x00", BODY)


def test_an_edited_block_is_not_ours() -> None:
    data = splice(b"text\n", BODY).data
    assert is_ours(data)
    assert not is_ours(data.replace(b"4999", b"5000"))
    assert not is_ours(re.sub(rb"<!-- agent-bridge:memory:hash.*\n", b"", data))


def test_undecodable_bytes_in_a_block_are_read_leniently() -> None:
    data = splice(b"", BODY).data.replace(b"4999", b"\xff", 1)
    assert not is_ours(data)
    assert [item.fact_id for item in items(block_text(data) or "")] == ["a"]


def test_texts_outside_the_block() -> None:
    user = "# Head\n\nUse  tabs\nalways.\n\n- one\n  more\n- two\n1. three\n"
    user += "\n```\ncode\n```\n<!-- hidden\n\nsecret -->\nlast"
    texts = outside_texts(splice(user.encode(), BODY).data)
    assert texts == {"Use tabs always.", "one more", "two", "three", "last"}


@pytest.mark.parametrize(
    ("data", "eol"),
    [(b"", None), (b"a", None), (b"a\n", b"\n"), (b"a\r\nb\n", b"\r\n"), (b"\r\r\n\n\n", b"\n")],
)
def test_dominant_eol(data: bytes, eol: bytes | None) -> None:
    assert dominant_eol(data) == eol
