"""A TOML text of somebody's as a table, with what Python's parser leaves to its caller. Pure.

A repository brings such files too. `tomllib` (Python 3.11 to 3.14) takes time and memory by the square of a
dotted key's parts, a gigabyte for 32 KB, and raises a plain ValueError for a whole number of too many digits.
"""

from __future__ import annotations

import re
import tomllib
from typing import Any

MOST_PARTS = 64
"""Parts of one dotted key."""

# A longer part in quotes ends the search there: so it takes a time that grows as the text does.
_PART = r"""(?>[A-Za-z0-9_-]++|"(?:[^"\\\r\n]|\\.){0,1000}+"|'[^'\r\n]{0,1000}+')"""
_TOO_DEEP = re.compile(rf"(?<![A-Za-z0-9_-]){_PART}(?:[ \t]*+\.[ \t]*+{_PART}){{{MOST_PARTS}}}")
_DIGITS = re.compile(r"[0-9_]{4000}")


def load_toml(text: str) -> dict[str, Any]:
    """The document. Raises TOMLDecodeError, with line and column in its words, and RecursionError."""
    found = _TOO_DEEP.search(text)
    if found is not None:
        raise tomllib.TOMLDecodeError(f"A dotted key has too many parts {_place(text, found.start())}")
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        raise
    except ValueError as error:
        number = _DIGITS.search(text)
        place = _place(text, number.start() if number else 0)
        raise tomllib.TOMLDecodeError(f"A number can't be read {place}") from error


def _place(text: str, at: int) -> str:
    """As `tomllib` tells it."""
    line_start = text.rfind("\n", 0, at) + 1
    return f"(at line {text.count(chr(10), 0, at) + 1}, column {at - line_start + 1})"
