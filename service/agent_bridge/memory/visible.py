"""Text reduced to what a person sees: no control characters, no invisible or bidirectional ones."""

from __future__ import annotations

import re

INVISIBLE = (
    "\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u061c\u180e\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\ufeff"
    "\ufff9-\ufffb\ud800-\udfff\U000e0000-\U000e007f"
)
"""Inside of a character class: C0 without tab and newline, DEL, C1, bidirectional marks and overrides,
invisible joiners (not those that scripts and emoji need), tag characters, byte order marks, lone surrogates.
"""

_LINE_ENDS = re.compile("\r\n|[\r\v\f\x1c-\x1e\x85\u2028\u2029]")
_INVISIBLE = re.compile(f"[{INVISIBLE}]")
_BLANKS = re.compile(r"\s+")


def visible(text: str) -> str:
    """The text with every kind of line end as a newline and without invisible characters."""
    return _INVISIBLE.sub("", _LINE_ENDS.sub("\n", text))


def shortened(text: str, most: int) -> str:
    """The text with runs of white space as one blank; of one longer than `most` characters the beginning."""
    text = " ".join(text.split())
    return text if len(text) <= most else text[: most - 1].rstrip() + "…"


def one_line(text: str) -> str:
    """The text on one line, runs of white space as one blank; no HTML comment can begin in it."""
    return _BLANKS.sub(" ", visible(text)).strip().replace("<!--", "<\\!--")
