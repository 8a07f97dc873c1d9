"""Gemini CLI's private notes as facts. Pure.

Source: what Gemini CLI 0.61.0 tells its model: MEMORY.md holds short facts and one-line pointers to notes
beside it; a note has several sections. A model writes them, so everything here is read leniently.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field

from agent_bridge.harnesses.markdown import Fences

ITEMS_LIMIT = 2000
"""At most so many facts of one file."""

_HEADING = re.compile(r"(#{1,6})[ \t]+(.*)")
_ITEM = re.compile(r"([ \t]*)(?:[-*+]|\d{1,3}[.)])[ \t]+(.*)")
_COMMENT = re.compile(r"<!--.*?(?:-->|\Z)", re.DOTALL)
_FRONT = re.compile(r"---\n.*?\n---\n", re.DOTALL)
_WORD = re.compile(r"\w")
_TITLE_LENGTH = 100


@dataclass(frozen=True, slots=True)
class Note:
    """One fact; `title` is "" where the text says all."""

    text: str
    title: str = ""


@dataclass(slots=True)
class _Section:
    title: str
    lines: list[str] = field(default_factory=list)

    @property
    def text(self) -> str:
        return "\n".join(self.lines).strip()


def index(text: str, notes: Collection[str] = ()) -> list[Note]:
    """The facts of a MEMORY.md: each outermost list item, and each section's text that is in no list.

    An item that points to one of `notes` (file names) is none: the note brings its text.
    """
    found: list[Note] = []
    for section in _sections(text, 6):
        prose: list[str] = []
        for item, body in _items(section.lines):
            if not item:
                prose.append(body)
            elif not any(name in body for name in notes):
                found.append(Note(body))
        rest = "\n".join(prose).strip()
        if _says_something(rest) and not any(name in rest for name in notes):
            found.append(Note(rest, section.title))
    return [note for note in found if _says_something(note.text)][:ITEMS_LIMIT]


def note(text: str) -> list[Note]:
    """The facts of a note: each `##` section as a whole, and what stands above the first one."""
    sections = _sections(text, 2)
    return [Note(one.text, one.title) for one in sections if _says_something(one.text)][:ITEMS_LIMIT]


def _sections(text: str, level: int) -> list[_Section]:
    """The text cut at headings down to `level`, comments and front matter aside."""
    sections = [_Section("")]
    fences = Fences()
    for line in _COMMENT.sub("", _FRONT.sub("", text, count=1) if text.startswith("---\n") else text).split(
        "\n"
    ):
        heading = None if fences.covers(line) else _HEADING.fullmatch(line)
        if heading and len(heading[1]) <= level:
            sections.append(_Section(heading[2].strip(" #\t")[:_TITLE_LENGTH]))
        else:
            sections[-1].lines.append(line)
    return sections


def _items(lines: list[str]) -> Iterator[tuple[bool, str]]:
    """Outermost list items with all that hangs below them, and the lines between: (is an item, text)."""
    current: list[str] = []
    indent = gap = 0
    fences = Fences()
    for line in lines:
        found = None if fences.covers(line) else _ITEM.fullmatch(line)
        width = len(line) - len(line.lstrip(" \t"))
        if found and (not current or width <= indent):
            if current:
                yield True, _joined(current)
            current, indent = [found[2]], width
        elif current and line.strip() and gap and width <= indent and not fences.marker:
            yield True, _joined(current)
            current = []
            yield False, line
        elif current:
            current.append(line)
        else:
            yield False, line
        gap = not line.strip()
    if current:
        yield True, _joined(current)


def _joined(lines: list[str]) -> str:
    """An item's lines, those below the first without the indent that they share."""
    rest = [len(line) - len(line.lstrip(" ")) for line in lines[1:] if line.strip()]
    shared = min(rest, default=0)
    return "\n".join([lines[0], *(line[shared:] for line in lines[1:])]).strip()


def _says_something(text: str) -> bool:
    return _WORD.search(text) is not None
