"""Our lines in a file of lines with `#` comments (Git's `info/exclude` and `info/attributes`)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from agent_bridge.errors import MarkerError

START = b"# agent-bridge:start"
END = b"# agent-bridge:end"
ADDED_LINE_END = b"# (the line break above this section is agent-bridge's)"
"""First line of a section before which a missing final newline had to be added."""

_LINE = re.compile(rb"[^\n]*\n|[^\n]+\Z")


@dataclass(frozen=True, slots=True)
class _Section:
    start: int
    end: int
    added_line_end: bool


def ensure_lines(data: bytes, lines: Sequence[str]) -> bytes:
    """The file with our section holding exactly `lines`, at its place or at the end; no lines, no section.

    Everything else keeps its bytes. Raises MarkerError where a marker is dangling or doubled, ValueError for
    a line with a line break in it.
    """
    if not lines:
        return remove_lines(data)
    if any(set(line) & set("\r\n\0") for line in lines):
        raise ValueError("a line can't hold a line break")
    section = _find(data)
    eol = b"\r\n" if data.count(b"\r\n") * 2 > data.count(b"\n") else b"\n"
    unended = data != b"" and not data.endswith(b"\n")
    added = section.added_line_end if section else unended
    inside = [
        START,
        *([ADDED_LINE_END] if added else []),
        *(line.encode("utf-8", "surrogateescape") for line in lines),
    ]
    text = eol.join([*inside, END]) + eol
    if section:
        return data[: section.start] + text + data[section.end :]
    if not unended:
        return data + text
    return data + (b"\r\n" if data.endswith(b"\r") else eol) + text  # a bare LF would complete the user's CR


def our_lines(data: bytes) -> list[str]:
    """The lines of our section, in order; none where there is no section. Raises MarkerError."""
    section = _find(data)
    if section is None:
        return []
    lines = data[section.start : section.end].decode("utf-8", "surrogateescape").splitlines()[1:-1]
    return [line for line in lines if line != ADDED_LINE_END.decode("ascii")]


def remove_lines(data: bytes) -> bytes:
    """The file without our section: exactly what it was before. Raises MarkerError."""
    section = _find(data)
    if section is None:
        return data
    head, tail = data[: section.start], data[section.end :]
    if section.added_line_end and not tail:
        head = head[:-2] if head.endswith(b"\r\n") else head.removesuffix(b"\n")
    return head + tail


def _find(data: bytes) -> _Section | None:
    found: _Section | None = None
    start: int | None = None
    started = number = 0
    for number, match in enumerate(_LINE.finditer(data), 1):
        line = match[0].strip()
        if line == START:
            if start is not None or found:
                raise MarkerError("A start marker of agent-bridge stands twice.", line=number)
            start, started = match.start(), number
        elif line == END:
            if start is None:
                raise MarkerError("An end marker of agent-bridge has no start marker above it.", line=number)
            found = _Section(start, match.end(), ADDED_LINE_END in data[start : match.end()])
            start = None
    if start is not None:
        raise MarkerError("A start marker of agent-bridge has no end marker below it.", line=started)
    return found
