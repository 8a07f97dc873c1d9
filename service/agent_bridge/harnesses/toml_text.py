"""Where things stand in a TOML text: a scanner that gives every statement's place. Checks nothing itself.

It is only shown text that `tomllib` has accepted, and what is built with it is parsed again.
"""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass, field

from agent_bridge.harnesses.array_text import Item

_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")
_TO_LINE_END = re.compile(r"[^\n]*")
_SPACE = re.compile(r"[ \t]*")
_BLANK = re.compile(r"(?:[ \t\r\n]|#[^\n]*)*")
_SCALAR = re.compile(r"[^,\]}#\r\n]*")


@dataclass(frozen=True, slots=True)
class Entry:
    """One `key = value`: its full path, the offsets of its parts, and for an inline table its own entries.

    `section` is the path of the header it stands below. For a statement `line_start` and `line_end` enclose
    its lines, line end included; entries of inline tables have those of the statement.
    """

    path: tuple[str, ...]
    section: tuple[str, ...]
    key_start: int
    value_start: int
    value_end: int
    line_start: int
    line_end: int
    inline: bool
    entries: tuple[Entry, ...] | None = None


@dataclass(slots=True)
class Section:
    """A `[header]` (the first one, with an empty path, has none) and the statements below it.

    `array`: it is part of an array of tables; `double`: it begins an element of one.
    """

    path: tuple[str, ...]
    array: bool
    start: int
    body: int
    header_end: int = 0
    double: bool = False
    end: int = 0
    entries: list[Entry] = field(default_factory=list)


def scan(text: str) -> list[Section]:
    """All sections of a valid TOML text in its order; those of arrays of tables are marked."""
    sections = [Section((), array=False, start=0, body=0)]
    arrays: set[tuple[str, ...]] = set()
    at = _BLANK.match(text, 0).end()  # type: ignore[union-attr]
    while at < len(text):
        line_start = text.rfind("\n", 0, at) + 1
        section = sections[-1]
        if text[at] == "[":
            double = text.startswith("[[", at)
            path, at = _key(text, at + (2 if double else 1))
            section.end = line_start
            if double:
                arrays.add(path)
            inside = any(path[:depth] in arrays for depth in range(1, len(path) + 1))
            header_end = text.index("]", at) + (2 if double else 1)
            at = _line_end(text, header_end)
            sections.append(Section(path, inside, line_start, at, header_end, double))
        else:
            entry = _entry(text, at, section.path, section.path, line_start)
            section.entries.append(entry)
            at = entry.line_end
        at = _BLANK.match(text, at).end()  # type: ignore[union-attr]
    sections[-1].end = len(text)
    return sections


def find(sections: list[Section], path: tuple[str, ...]) -> Entry | None:
    """The entry of a path, wherever it is written; entries inside arrays have no path."""

    def within(entries: tuple[Entry, ...] | list[Entry]) -> Entry | None:
        for entry in entries:
            if entry.path == path:
                return entry
            if entry.entries and path[: len(entry.path)] == entry.path and (hit := within(entry.entries)):
                return hit
        return None

    for section in sections:
        if not section.array and (hit := within(section.entries)):
            return hit
    return None


def items_of(text: str, at: int) -> list[Item]:
    """The elements of the array whose bracket is at `at`."""
    items: list[Item] = []
    at = _BLANK.match(text, at + 1).end()  # type: ignore[union-attr]
    while text[at] != "]":
        end = _value(text, at)
        behind = _BLANK.match(text, end).end()  # type: ignore[union-attr]
        comma = behind if text[behind] == "," else None
        items.append(Item(at, end, comma))
        at = _skip(text, end)
    return items


def _entry(
    text: str,
    at: int,
    section: tuple[str, ...],
    base: tuple[str, ...],
    line_start: int,
    *,
    inline: bool = False,
) -> Entry:
    key_start = at
    key, at = _key(text, at)
    value_start = _SPACE.match(text, _SPACE.match(text, at).end() + 1).end()  # type: ignore[union-attr]
    path = base + key
    entries: tuple[Entry, ...] | None = None
    if text[value_start] == "{":
        value_end, entries = _inline_table(text, value_start, section, path, line_start)
    else:
        value_end = _value(text, value_start)
    line_end = value_end if inline else _line_end(text, value_end)
    return Entry(path, section, key_start, value_start, value_end, line_start, line_end, inline, entries)


def _inline_table(
    text: str, at: int, section: tuple[str, ...], path: tuple[str, ...], line_start: int
) -> tuple[int, tuple[Entry, ...]]:
    entries: list[Entry] = []
    at = _skip(text, at + 1)
    while text[at] != "}":
        entries.append(_entry(text, at, section, path, line_start, inline=True))
        at = _skip(text, entries[-1].value_end)
    return at + 1, tuple(entries)


def _value(text: str, at: int) -> int:
    first = text[at]
    if first in "\"'":
        return _string(text, at)
    if first not in "[{":
        return at + len(_SCALAR.match(text, at)[0].rstrip())  # type: ignore[index]
    closing = "]" if first == "[" else "}"
    at = _skip(text, at + 1)
    while text[at] != closing:
        if closing == "}":
            _, at = _key(text, at)
            at = _SPACE.match(text, _SPACE.match(text, at).end() + 1).end()  # type: ignore[union-attr]
        at = _skip(text, _value(text, at))
    return at + 1


def _string(text: str, at: int) -> int:
    quote = text[at]
    if not text.startswith(quote * 3, at):
        at += 1
        while text[at] != quote:
            at += 2 if text[at] == "\\" and quote == '"' else 1
        return at + 1
    at += 3
    while not text.startswith(quote * 3, at):
        at += 2 if text[at] == "\\" and quote == '"' else 1
    at += 3
    while at < len(text) and text[at] == quote:  # up to two quotes may stand before the closing three
        at += 1
    return at


def _key(text: str, at: int) -> tuple[tuple[str, ...], int]:
    """A dotted key from `at` (blanks allowed) and the offset behind it."""
    parts: list[str] = []
    while True:
        at = _SPACE.match(text, at).end()  # type: ignore[union-attr]
        if text[at] in "\"'":
            end = _string(text, at)
            parts.append(tomllib.loads("key = " + text[at:end])["key"])
        else:
            end = _BARE_KEY.match(text, at).end()  # type: ignore[union-attr]
            parts.append(text[at:end])
        dot = _SPACE.match(text, end).end()  # type: ignore[union-attr]
        if dot >= len(text) or text[dot] != ".":
            return tuple(parts), end
        at = dot + 1


def _skip(text: str, at: int) -> int:
    """Over blanks, comments, line ends and one comma inside brackets."""
    at = _BLANK.match(text, at).end()  # type: ignore[union-attr]
    return _BLANK.match(text, at + 1).end() if text[at] == "," else at  # type: ignore[union-attr]


def _line_end(text: str, at: int) -> int:
    end = _TO_LINE_END.match(text, at).end()  # type: ignore[union-attr]
    return min(end + 1, len(text))
