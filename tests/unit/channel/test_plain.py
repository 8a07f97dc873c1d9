"""Others' text on one line of ours."""

from __future__ import annotations

import time
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_bridge.channel.plain import one_line


@pytest.mark.parametrize(("text", "shown"), [
    ("web frontend", "web frontend"),
    ("日本 café 🎉", "日本 café 🎉"),
    ("two\nlines\r\nand\u2028more\x85end", "two lines and more end"),
    ("\x1b[31mred\x1b[0m", "red"),
    ("\x9b1mbold", "bold"),
    ("\x1b]0;title\x07after", "after"),
    ("\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", "link"),
    ("half\x1b", "half"),
    ("half\x1b[", "half["),
    ("a\u202eb\u2066c\u200bd\ufeffe", "abcde"),
    ("nul\0bell\x07", "nulbell"),
    ("\ud800x", "x"),
    ("  \t ", ""),
    ("x" * 41, "x" * 39 + "…"),
])  # fmt: skip
def test_what_is_shown(text: str, shown: str) -> None:
    assert one_line(text, 40) == shown


@given(st.text(), st.integers(1, 50))
def test_never_more_than_one_printable_line(text: str, most: int) -> None:
    shown = one_line(text, most)
    assert len(shown) <= most
    assert shown.isprintable()
    assert not any(unicodedata.category(letter) in ("Cc", "Cf", "Cs", "Zl", "Zp") for letter in shown)


@pytest.mark.parametrize("text", ["\x1b]" * 4_000_000, "\x1b[" * 4_000_000, " \n" * 4_000_000])
def test_eight_megabytes_cost_nothing(text: str) -> None:
    started = time.process_time()
    assert len(one_line(text, 200)) <= 200
    assert time.process_time() - started < 1
