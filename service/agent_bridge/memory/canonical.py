"""Unicode's normal forms, in time that grows with the text and no faster. Pure.

Normalising sorts each run of combining marks, and CPython does that by insertion: 40,000 marks in a row take
seconds, a file full of them hours. No text of any language stacks more than a few on one letter.
"""

from __future__ import annotations

import re
import unicodedata
from typing import Literal

Form = Literal["NFC", "NFKC", "NFKD"]

_MOST_MARKS = 30
"""Marks in a row that are sorted together, as in Unicode's stream-safe text (UAX #15)."""
_JOINER = "\u034f"  # "combining grapheme joiner": shows nothing, and ends a run as UAX #15 ends it
# Marks are neither letters nor digits; what else that finds is looked at below.
_MAYBE_MARKS = re.compile(rf"[^\w\x00-\x7f]{{{_MOST_MARKS + 1},}}")


def canonical(form: Form, text: str) -> str:
    """`text` in that normal form; a run of over 30 combining marks is broken up by joiners."""
    if text.isascii():
        return text
    return unicodedata.normalize(form, _MAYBE_MARKS.sub(_broken_up, text))


def _broken_up(run: re.Match[str]) -> str:
    pieces, marks = [], 0
    for letter in run[0]:
        marks = marks + 1 if unicodedata.combining(letter) else 0
        if marks > _MOST_MARKS:
            pieces.append(_JOINER)
            marks = 1
        pieces.append(letter)
    return "".join(pieces)
