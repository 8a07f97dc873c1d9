"""Our block in somebody else's file: find it, put it in, take it out. Bytes in, bytes out.

Outside the block not one byte changes: encoding, line ends (LF, CRLF, CR, mixed), byte order mark and a
missing final newline are the user's. The block itself is written with the file's dominant line end.

A marker counts when it stands alone on its line, indented by at most three spaces. One that stands in fenced
code of the user's own text doesn't count: it is an example. The one exception is a block that holds its own
valid hash while no other block is in the file: there somebody has just begun a fence above our block.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from agent_bridge.errors import MarkerError, RefusedError
from agent_bridge.harnesses.block_body import Item, body_hash, hash_valid, items, with_hash
from agent_bridge.harnesses.block_render import DEFAULT_BUDGET, END, START, Block, render_block
from agent_bridge.harnesses.markdown import Fences, whole_texts

__all__ = [
    "DEFAULT_BUDGET",
    "END",
    "START",
    "Block",
    "BlockSpan",
    "Item",
    "Spliced",
    "around",
    "block_text",
    "body_hash",
    "dominant_eol",
    "find_block",
    "has_block",
    "hash_valid",
    "is_ours",
    "items",
    "outside_texts",
    "remove",
    "render_block",
    "splice",
    "with_hash",
]

_BOM = b"\xef\xbb\xbf"
_WIDE_BOMS = (b"\xff\xfe", b"\xfe\xff")
_MARKED_LINE = re.compile(r"(?:```|~~~|<!--)[^\r\n]*")
_MARKER = re.compile(r" {0,3}<!--[ \t]*agent-bridge:memory:(start|end)[ \t]*(?:\([^()]*\))?[ \t]*-->[ \t]*")
_EOL = re.compile(rb"\r\n|\n|\r")


@dataclass(frozen=True, slots=True)
class BlockSpan:
    """Where a block stands: byte offsets from its start marker's line to behind its end marker (line end not
    included), the line of the start marker (from 1), and its body as LF text."""

    start: int
    end: int
    line: int
    body: str


@dataclass(frozen=True, slots=True)
class Spliced:
    """A file's new bytes, and the line ends before the start marker that are ours (for the ledger)."""

    data: bytes
    separator: bytes


def find_block(data: bytes) -> BlockSpan | None:
    """Our block in a file, or None. Raises `MarkerError` for dangling, nested and doubled markers."""
    return _scan(data).block


def block_text(data: bytes) -> str | None:
    """The body of the block as LF text, or None without one. Raises `MarkerError`."""
    block = find_block(data)
    return None if block is None else block.body


def has_block(data: bytes) -> bool:
    """Whether the file has a block; broken markers make none."""
    return len(around(data)[0]) != len(data)


def around(data: bytes) -> tuple[bytes, bytes]:
    """What stands before and behind the block; everything stands before it where there is none, or none that
    broken markers let one find."""
    try:
        block = find_block(data)
    except MarkerError:
        block = None
    return (data, b"") if block is None else (data[: block.start], data[block.end :])


def is_ours(data: bytes) -> bool:
    """Whether the file has a block whose hash line fits its body. Raises `MarkerError`."""
    block = find_block(data)
    return block is not None and hash_valid(block.body)


def splice(data: bytes, body: str, *, separator: bytes | None = None) -> Spliced:
    """Put `body` (from `render_block`) into the file's block; without a block, add one at the end.

    `separator` is what the ledger has for a block that is there; it is handed back. A new block comes after
    one empty line; where the file ends in fenced code that was never closed, it comes before that code.
    Equal input gives equal bytes. Raises `MarkerError`, and `RefusedError` for UTF-16.
    """
    if data.startswith(_WIDE_BOMS):
        raise RefusedError(
            "The file is UTF-16; a block can't be put into it.", remedy="Save the file as UTF-8."
        )
    found = _scan(data)
    if found.block:
        before, after = data[: found.block.start], data[found.block.end :]
        eol = _eol_of(data, found.block)
        return Spliced(before + _written(body, eol) + after, separator or b"")
    before, after = data[: found.insert_at], data[found.insert_at :]
    eol = dominant_eol(data) or b"\n"
    added = _missing_blank_line(before.removeprefix(_BOM), eol)
    return Spliced(before + added + _written(body, eol) + eol + after, added)


def remove(data: bytes, separator: bytes | None = None) -> bytes:
    """The file without its block and without `separator`, the line ends that we added before it.

    Undoes `splice` exactly; also where the line ends were converted or the user wrote below the block since.
    Without a known separator one empty line is taken away. A file without a block comes back as it is.
    """
    block = find_block(data)
    if block is None:
        return data
    before, after = data[: block.start], data[block.end :]
    ending = _EOL.match(after)
    if ending:
        after = after[ending.end() :]
    ours = 1 if separator is None else len(_EOL.findall(separator))
    ends = _line_ends_before(before)
    keep_one = (
        ours == 1 or after != b""
    )  # the user's own last line, or the one between two texts, stays ended
    take = min(ours, len(ends) - 1 if keep_one and len(ends) <= ours else len(ends))
    cut = ends[-take] if take > 0 else len(before)
    return before[:cut] + after


def outside_texts(data: bytes) -> frozenset[str]:
    """Whole paragraphs and list items of the user's own text, normalised: `skip` for `render_block`."""
    block = find_block(data)
    parts = [data] if block is None else [data[: block.start], data[block.end :]]
    texts = (part.removeprefix(_BOM).decode("utf-8", "replace") for part in parts)
    return frozenset().union(*map(whole_texts, texts))


def dominant_eol(data: bytes) -> bytes | None:
    """The most frequent line end (the first of equals), or None where there is none."""
    best = _most_frequent(data)
    if len(best) == 1:
        return next(iter(best))
    return next((found[0] for found in _EOL.finditer(data) if found[0] in best), None)


def _eol_of(data: bytes, block: BlockSpan) -> bytes:
    """The line end for a block that is there: the file's dominant one, of equals the one that it has."""
    best = _most_frequent(data[: block.start], data[block.end :])
    has = dominant_eol(data[block.start : block.end])
    if has and (has in best or not best):
        return has
    return min(best, default=b"\n")


def _most_frequent(*parts: bytes) -> frozenset[bytes]:
    """The most frequent line ends of parts that don't touch each other; empty where there is none."""
    crlf = sum(part.count(b"\r\n") for part in parts)
    counts = {
        b"\r\n": crlf,
        b"\n": sum(part.count(b"\n") for part in parts) - crlf,
        b"\r": sum(part.count(b"\r") for part in parts) - crlf,
    }
    most = max(counts.values())
    return frozenset(eol for eol, count in counts.items() if count == most > 0)


@dataclass(frozen=True, slots=True)
class _Scan:
    block: BlockSpan | None
    insert_at: int


class _Line(NamedTuple):
    """A line that may be a fence or a marker."""

    start: int
    end: int
    text: str
    marker: str  # "start", "end" or nothing


@lru_cache(maxsize=16)  # a file is looked at several times while it is decided about
def _scan(data: bytes) -> _Scan:
    lines = _marked_lines(data)
    plain: list[BlockSpan] = []
    fenced: list[BlockSpan] = []
    fences = Fences()
    fence_start = len(data)
    at = 0
    while at < len(lines):
        line = lines[at]
        inside = bool(fences.marker)
        if not line.marker:
            fences.covers(line.text)
            if fences.marker and not inside:
                fence_start = line.start
        elif not inside:
            block, at = _pair(data, lines, at)
            plain.append(block)
        elif line.marker == "start" and (example := _written_by_us(data, lines, at)):
            fenced.append(example[0])
            at = example[1]
        at += 1
    return _Scan(_only(plain or fenced), fence_start if fences.marker else len(data))


def _marked_lines(data: bytes) -> list[_Line]:
    text = data.decode("latin-1")  # one character a byte: offsets are the same, and nothing is undecodable
    first = len(_BOM) if data.startswith(_BOM) else 0
    lines = []
    for found in _MARKED_LINE.finditer(text, first):
        start = found.start()
        while start > first and found.start() - start < 3 and text[start - 1] == " ":
            start -= 1
        if start == first or text[start - 1] in "\r\n":
            line = text[start : found.end()]
            marker = _MARKER.fullmatch(line)
            lines.append(_Line(start, found.end(), line, marker[1] if marker else ""))
    return lines


def _pair(data: bytes, lines: list[_Line], first: int) -> tuple[BlockSpan, int]:
    """The block that begins with line `first`, and where its last line is in `lines`. Raises MarkerError."""
    line = lines[first]
    last = next((at for at in range(first + 1, len(lines)) if lines[at].marker), None)
    if line.marker == "end":
        raise MarkerError(
            "An end marker of agent-bridge has no start marker above it.", line=_number(data, line.start)
        )
    if last is None:
        raise MarkerError(
            "A start marker of agent-bridge has no end marker below it.", line=_number(data, line.start)
        )
    if lines[last].marker == "start":
        raise MarkerError(
            "A start marker of agent-bridge stands inside a block that isn't ended.",
            line=_number(data, lines[last].start),
        )
    inner = _EOL.sub(b"\n", data[line.end : lines[last].start]).decode("utf-8", "replace")
    body = inner.removeprefix("\n").removesuffix("\n")
    return BlockSpan(line.start, lines[last].end, _number(data, line.start), body), last


def _written_by_us(data: bytes, lines: list[_Line], first: int) -> tuple[BlockSpan, int] | None:
    try:
        block, last = _pair(data, lines, first)
    except MarkerError:
        return None  # half a block in fenced code is part of an example
    return (block, last) if hash_valid(block.body) else None


def _number(data: bytes, at: int) -> int:
    return len(_EOL.findall(data[:at])) + 1


def _only(blocks: list[BlockSpan]) -> BlockSpan | None:
    if len(blocks) > 1:
        raise MarkerError("There is more than one block of agent-bridge in the file.", line=blocks[1].line)
    return blocks[0] if blocks else None


def _written(body: str, eol: bytes) -> bytes:
    return f"{START}\n{body}\n{END}".encode().replace(b"\n", eol)


def _missing_blank_line(before: bytes, eol: bytes) -> bytes:
    """The line ends that `before` lacks to end with an empty line."""
    if not before:
        return b""
    if before.endswith(b"\r") and eol == b"\n":
        eol = b"\r\n"  # a bare LF would only complete the user's CR
    ends = _line_ends_before(before)
    if not ends:
        return eol + eol
    last = before[: ends[-1]]
    blank_line = len(ends) > 1 or not last or _last_line_blank(last)
    return b"" if blank_line else eol


def _last_line_blank(text: bytes) -> bool:
    return not re.split(rb"[\r\n]", text)[-1].strip(b" \t")


def _line_ends_before(before: bytes) -> list[int]:
    """Offsets of the consecutive line ends that `before` ends with, in order."""
    tail = re.search(rb"[\r\n]*\Z", before)
    start = tail.start() if tail else len(before)
    return [found.start() for found in _EOL.finditer(before, start)]
