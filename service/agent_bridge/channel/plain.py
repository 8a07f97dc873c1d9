"""Text of others on one line of ours: nothing in it that a terminal or a reader could take for more. Pure."""

from __future__ import annotations

import re

# Control sequences of terminals: CSI and the ones that end in BEL or ST (titles, links).
_SEQUENCE = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]|(?:\x1b[\]PX^_]|\x9d)[^\x07\x1b\x9c]*(?:\x07|\x1b\\|\x9c)"
)
_READ = 16  # times what is shown is read at most


def one_line(text: str, most: int) -> str:
    """The text without control, bidi and invisible characters and terminal sequences, its white space
    collapsed; over `most` characters it ends in `…`."""
    text = text[: most * _READ]
    if not text.isprintable():
        plain = _SEQUENCE.sub("", text)
        text = "".join(
            letter if letter.isprintable() else " " if letter.isspace() else "" for letter in plain
        )
    text = " ".join(text.split())
    return text if len(text) <= most else f"{text[: most - 1]}…"
