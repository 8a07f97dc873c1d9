"""Bytes to lines and back, however they are cut."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from agent_bridge.mcp.shim.lines import LineCutter, Outbox


@given(st.lists(st.binary(max_size=12).map(lambda b: b.replace(b"x", b"\n")), max_size=12))
def test_lines_are_the_same_however_they_are_cut(pieces: list[bytes]) -> None:
    cutter = LineCutter(8)
    found = [line for piece in pieces for line in cutter.feed(piece)]
    *expected, rest = b"".join(pieces).split(b"\n")

    assert found == [None if len(line) > 8 else line.removesuffix(b"\r") for line in expected]
    assert cutter.last() == (None if len(rest) > 8 else rest.removesuffix(b"\r"))


def test_a_line_that_is_too_long_is_not_kept() -> None:
    cutter = LineCutter(8)
    for _ in range(1000):
        assert cutter.feed(b"y" * 1000) == []
    assert len(cutter._line) == 0
    assert cutter.feed(b"\nnext\n") == [None, b"next"]


@given(
    st.lists(st.binary(max_size=20), max_size=8),
    st.lists(st.integers(min_value=0, max_value=7), min_size=1, max_size=40),
)
def test_all_is_written_in_order_though_the_reader_takes_little(lines: list[bytes], takes: list[int]) -> None:
    outbox = Outbox()
    written = bytearray()
    for line in lines:
        outbox.put(line)
    takes = [*takes, 1]

    def write(piece: memoryview) -> int:
        count = takes[len(written) % len(takes)]
        if not count:
            takes[len(written) % len(takes)] = 1
            raise BlockingIOError
        written.extend(piece[:count])
        return min(count, len(piece))

    for _ in range(500):
        outbox.flush(write)
        assert outbox.size == sum(len(line) + 1 for line in lines) - len(written)
    assert bytes(written) == b"".join(line + b"\n" for line in lines)
    assert outbox.size == 0
