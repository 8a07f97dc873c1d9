"""Texts that could be facts, in a markdown file that people or agents write. Pure: bytes in, texts out.

Each list item is one, also a nested or multi-line one; under a heading that names memory each paragraph too.
Not looked at: our block, fenced code, front matter, HTML comments, and the documents inside a section that
memory-bridge 0.1 generated ("Project Memory Bridge" up to its "Recorded memories"). The lines of its list
stay, with their `[id]`: who knows the store can tell an edited one.

The pieces are cut as `markdown.whole_texts` cuts them, so a fact made of one isn't shown twice in its file.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from agent_bridge.errors import MarkerError, RefusedError
from agent_bridge.harnesses.managed_block import find_block
from agent_bridge.harnesses.markdown import Fences
from agent_bridge.memory.similarity import words
from agent_bridge.memory.visible import one_line, shortened

MAX_BYTES = 1024 * 1024
"""What stands behind so many bytes of a file is not looked at."""

MAX_ITEMS = 2000
"""At most so many texts of one file."""

_TITLE_LENGTH = 100
_GENERATED = "project memory bridge"
_RECORDED = "recorded memories"

_EOL = re.compile(r"\r\n|\n|\r")
_WIDE_BOMS = (b"\xff\xfe", b"\xfe\xff")
_MARKER = re.compile(rb"^ {0,3}<!--[ \t]*agent-bridge:memory:(start|end)\b[^\r\n]*", re.MULTILINE)
_HEADING = re.compile(r" {0,3}(#{1,6})(?:[ \t]+(.*))?$")
_UNDERLINE = re.compile(r" {0,3}(=+|-+)[ \t]*$")
_RULE = re.compile(r" {0,3}(?:(?:-[ \t]*){3,}|(?:\*[ \t]*){3,}|(?:_[ \t]*){3,})$")
_ITEM = re.compile(r"([ \t]*)((?:[-*+]|\d{1,9}[.)])(?:[ \t]+|$))(.*)")
_CHECKBOX = re.compile(r"\[[ xX]\][ \t]+")
_NO_FACT = re.compile(r"@[^\s`]+|\[[^\]]*\]\(#[^)]*\)")
_NAMES_MEMORY = re.compile(
    r"\b(?:memory|memories|remember(?:ed)?|learned|learnt|learnings?|lessons|facts)\b", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class Piece:
    """A text, and as its title the list item or the heading of a memory that it stands below, or ""."""

    text: str
    title: str = ""


def items_of(data: bytes) -> list[str]:
    """The texts of `pieces_of` alone."""
    return [piece.text for piece in pieces_of(data)]


def pieces_of(data: bytes) -> list[Piece]:
    """The texts of a file in reading order; [] for one that is no UTF-8 text. Takes any bytes.

    Where our markers don't pair, nothing between the first and the last of them counts.
    """
    lines = list(_lines(_own_text(data)))
    reader = _Reader(recorded=sum(_heading_text(line) == _RECORDED for line, code in lines if not code))
    for line, code in lines:
        reader.take(line, code=code)
    return reader.pieces()


def _own_text(data: bytes) -> str:
    """The user's own text: without our block and front matter, and no more than `MAX_BYTES`."""
    if data.startswith(_WIDE_BOMS) or b"\0" in data:
        return ""
    text = _without_block(data)[:MAX_BYTES].decode("utf-8-sig", "replace")
    lines = _EOL.split(text)
    if lines[0].rstrip() == "---":
        end = next((at for at, line in enumerate(lines) if at and line.rstrip() in ("---", "...")), 0)
        lines = lines[end + 1 :] if end else lines
    return "\n".join(lines)


def _without_block(data: bytes) -> bytes:
    try:
        block = find_block(data)
    except (MarkerError, RefusedError):
        marks = list(_MARKER.finditer(data))
        start = marks[0].start() if marks and marks[0][1] == b"start" else 0
        end = marks[-1].end() if marks and marks[-1][1] == b"end" else len(data)
        return data[:start] + b"\n" + data[end:]
    return data if block is None else data[: block.start] + b"\n" + data[block.end :]


def _lines(text: str) -> Iterator[tuple[str, bool]]:
    """Each line without its comments, and whether it is fenced code, also within a list item."""
    fences = Fences()
    hidden = False
    for line in text.split("\n"):
        if not hidden:
            item = None if fences.marker else _ITEM.match(line)
            if fences.covers((item[3] if item else line).lstrip(" \t")):
                yield line, True
                continue
        shown, hidden = _without_comments(line, hidden=hidden)
        yield shown, False


def _without_comments(line: str, *, hidden: bool) -> tuple[str, bool]:
    """What of a line is no comment, and whether one is open at its end; one in a code span is none."""
    shown: list[str] = []
    at = 0
    while True:
        if hidden:
            end = line.find("-->", at)
            if end < 0:
                return "".join(shown), True
            at, hidden = end + 3, False
        start = line.find("<!--", at)
        if start < 0 or line.count("`", at, start) % 2:
            return "".join([*shown, line[at:]]), False
        shown.append(line[at:start])
        at, hidden = start + 4, True


def _heading_text(line: str) -> str:
    found = _HEADING.match(line)
    return (found[2] or "").strip(" \t#").casefold() if found else ""


@dataclass(slots=True)
class _Open:
    """A list item or paragraph that is being read: `indent` of its marker, `offset` of its text."""

    indent: int
    offset: int
    lines: list[str]
    kept: bool
    title: str = ""
    above: _Open | None = None
    parts: bool = False  # it has items of its own

    @property
    def text(self) -> str:
        return "\n".join(self.lines).strip()

    @property
    def leads(self) -> bool:
        """Whether it only introduces what follows it."""
        return self.parts and self.text.endswith(":")

    def piece(self) -> Piece:
        above = self.title if self.above is None else self.above.lines[0]
        return Piece(self.text, shortened(one_line(above[: 2 * _TITLE_LENGTH]).rstrip(": "), _TITLE_LENGTH))


class _Reader:
    """Takes a file's lines one by one."""

    def __init__(self, *, recorded: int) -> None:
        """`recorded`: how many headings of memory-bridge's list there are in the file."""
        self._recorded_ahead = recorded
        self._found: list[_Open] = []
        self._items: list[_Open] = []  # the list item that is open, and those it stands in
        self._paragraph: _Open | None = None
        self._gap = False  # the last line was empty
        self._code: _Open | None = None  # whose code it is that is being read
        self._in_code = False
        self._memory_level = 0
        self._title = ""
        self._generated = False
        self._list_level = 0

    def take(self, line: str, *, code: bool) -> None:
        """The next line."""
        if code:
            self._take_code(line)
            return
        self._in_code = False
        if not line.strip():
            self._gap = True
        elif heading := _HEADING.match(line):
            self._close()
            self._begin_section(len(heading[1]), (heading[2] or "").strip())
        elif self._is_underline(line):
            self._underline(line)
        elif _RULE.match(line):
            self._close()
        elif item := _ITEM.match(line):
            self._begin_item(item)
        else:
            self._continue(line)

    def pieces(self) -> list[Piece]:
        """What was found, in reading order."""
        found = (one for one in self._found if one.kept and not one.leads)
        wanted = (one for one in found if words(one.text) and not _NO_FACT.fullmatch(one.text))
        return [one.piece() for one, _ in zip(wanted, range(MAX_ITEMS), strict=False)]

    def _take_code(self, line: str) -> None:
        if not self._in_code:
            self._in_code = True
            item = _ITEM.match(line)
            if item:
                self._begin_item(item)
                self._code = self._items[-1] if self._items else None
                return
            self._leave_items(_width(line))
            before = self._items[-1] if self._items else self._paragraph
            self._code = before if self._items or (before and before.text.endswith(":")) else None
            if self._gap and self._code is not None:
                self._code.lines.append("")
            self._gap = False
        if self._code is not None:
            self._code.lines.append(_dedented(line, self._code.offset))

    def _begin_section(self, level: int, title: str) -> None:
        plain = title.strip(" \t#").casefold()
        if plain == _RECORDED:
            self._recorded_ahead -= 1
        if self._generated:
            if plain == _RECORDED:
                self._list_level = level
            if not self._list_level or plain == _RECORDED or level > self._list_level:
                return
            self._generated = False
        if plain == _GENERATED and self._recorded_ahead:
            self._generated, self._list_level, self._memory_level = True, 0, 0
        elif self._memory_level and level > self._memory_level:
            self._title = title
        else:
            self._memory_level = level if _NAMES_MEMORY.search(title) else 0
            self._title = ""

    def _is_underline(self, line: str) -> bool:
        return self._paragraph is not None and not self._gap and _UNDERLINE.match(line) is not None

    def _underline(self, line: str) -> None:
        title = one_line(self._paragraph.text if self._paragraph else "")
        self._found.pop()
        self._close()
        self._begin_section(1 if line.strip().startswith("=") else 2, title)

    def _begin_item(self, item: re.Match[str]) -> None:
        indent = _width(item[1])
        self._leave_items(indent)
        if indent >= 4 and not self._items:  # indented code
            self._close()
            return
        above = self._items[-1] if self._items else None
        lead = above or self._paragraph
        if lead is not None:
            lead.parts = True
        text = _CHECKBOX.sub("", item[3], count=1) if _CHECKBOX.match(item[3]) else item[3]
        kept = not self._generated or bool(self._list_level)
        self._items.append(_Open(indent, indent + len(item[2].expandtabs(4)), [text], kept, above=above))
        self._found.append(self._items[-1])
        self._paragraph, self._gap = None, False

    def _continue(self, line: str) -> None:
        width = _width(line)
        if self._gap:
            self._leave_items(width)
        current = self._items[-1] if self._items else self._paragraph
        if current is not None and (self._items or not self._gap):
            current.lines += [*([""] if self._gap else []), _dedented(line, current.offset)]
        else:
            in_memory = self._memory_level > 0 and not self._generated and width < 4
            kept = in_memory and not line.lstrip().startswith("|")
            self._paragraph = _Open(0, 0, [line.strip()], kept, title=self._title)
            self._found.append(self._paragraph)
        self._gap = False

    def _leave_items(self, indent: int) -> None:
        """Close the items that a line of this indent can't stand in."""
        while self._items and indent < self._items[-1].indent + 2:
            self._items.pop()

    def _close(self) -> None:
        self._items.clear()
        self._paragraph, self._gap = None, False


def _width(line: str) -> int:
    """Columns of white space at a line's beginning, as tabs count in markdown."""
    return len(line[: len(line) - len(line.lstrip(" \t"))].expandtabs(4))


def _dedented(line: str, offset: int) -> str:
    """The line without up to `offset` columns of white space, and without any at its end."""
    width = _width(line)
    return (" " * max(width - offset, 0) + line.lstrip(" \t")).rstrip()
