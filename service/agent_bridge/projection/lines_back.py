"""Puts lines of a file back that were taken out of it, whatever its user wrote since. Pure."""

from __future__ import annotations

import difflib
import re
from collections.abc import Sequence

_EOL = re.compile(rb"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+")


def put_back(original: bytes, rest: bytes, now: bytes) -> bytes | None:
    """The file as somebody has it `now`, with the lines again that `original` has more than `rest`.

    Exact where nobody wrote since. None where `rest` isn't `original` with lines left out.
    """
    if now == rest:
        return original
    before, after, current = (_EOL.findall(text) for text in (original, rest, now))
    hunks: dict[int, list[bytes]] = {}
    at = 0
    for line in before:
        if at < len(after) and line == after[at]:
            at += 1
        else:
            hunks.setdefault(at, []).append(line)
    if at < len(after):
        return None
    places = _places(after, current)
    for position in sorted(hunks, reverse=True):
        current[places[position] : places[position]] = _ended(hunks[position])
    return b"".join(_ended(current[:-1]) + current[-1:])


def _places(after: Sequence[bytes], current: Sequence[bytes]) -> list[int]:
    """For each line of `after`, and its end, where in `current` that place is now."""
    blocks = difflib.SequenceMatcher(None, after, current, autojunk=False).get_matching_blocks()
    places = []
    for at in range(len(after) + 1):
        inside = [one.b + at - one.a for one in blocks if one.a <= at < one.a + one.size]
        before = [one.b + one.size for one in blocks if one.size and one.a + one.size <= at]
        places.append(inside[0] if inside else before[-1] if before else 0)
    return places


def _ended(lines: list[bytes]) -> list[bytes]:
    """The lines, each with a line end."""
    return [line if line.endswith((b"\n", b"\r")) else line + b"\n" for line in lines]
