"""Imports in the files that Gemini CLI reads: which `@path` it follows. Pure.

Source: Gemini CLI 0.61.0, by running it. An `@` at the beginning or behind white space starts an import, if a
letter, `.` or `/` follows; it reaches to the next white space, with all punctuation. Code is what stands
between two equal runs of backticks, wherever they are; `~~~` fences, comments and backslashes mean nothing to
it. A path is relative to the directory of the file that names it, as that file is spelled; where it leads,
after all links, must lie below the project's root. Imports of imports are followed.
"""

from __future__ import annotations

import os
import re
from bisect import bisect_right
from dataclasses import dataclass
from pathlib import Path

MAX_DEPTH = 5
"""How deep imports of imports are followed."""

SCAN_LIMIT = 1024 * 1024
"""Characters of one file that are searched."""

_TOKEN = re.compile(r"(?:(?<=[ \t\r\n])|\A)@([A-Za-z./][^ \t\r\n]*)")
_RUN = re.compile(r"`+")
_FOREIGN = re.compile(r"(?:file|https?)://")


@dataclass(frozen=True, slots=True)
class Import:
    """One import: the offset of its `@`, and the path as written."""

    start: int
    path: str


def imports(text: str) -> tuple[Import, ...]:
    """What a text imports, in order, repeats too: each is shown where it stands. Time is linear."""
    text = text[:SCAN_LIMIT]
    if "@" not in text:
        return ()
    regions = code_regions(text)
    starts = [start for start, _ in regions]

    def in_code(at: int) -> bool:
        number = bisect_right(starts, at) - 1
        return number >= 0 and at < regions[number][1]

    return tuple(
        Import(found.start(), found[1])
        for found in _TOKEN.finditer(text)
        if not in_code(found.start()) and not _FOREIGN.match(found[1]) and "\0" not in found[1]
    )


def code_regions(text: str) -> list[tuple[int, int]]:
    """What counts as code: (start, end) offsets. A run without a partner of its length pairs by fewer."""
    runs = [found.span() for found in _RUN.finditer(text)]
    longest_later = [0] * (len(runs) + 1)
    for number in range(len(runs) - 1, -1, -1):
        length = runs[number][1] - runs[number][0]
        longest_later[number] = max(longest_later[number + 1], length)
    regions: list[tuple[int, int]] = []
    at = number = 0
    while number < len(runs):
        start, end = max(runs[number][0], at), runs[number][1]
        if start >= end:
            number += 1
            continue
        length = max(min(end - start, longest_later[number + 1]), (end - start) // 2)
        if length == 0:
            break
        at = text.index("`" * length, start + length) + length
        regions.append((start, at))
    return regions


def resolve(written: str, directory: Path) -> Path:
    """Where an import in a file of `directory` leads."""
    return Path(os.path.normpath(directory / written))
