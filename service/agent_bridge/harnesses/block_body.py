"""The inside of a managed block: its hash line, and the items that it consists of.

A body is LF text without the two marker lines and without a final newline: the heading, the documents, the
facts, perhaps a notice, and as its last line `<!-- agent-bridge:memory:hash HEX16 -->`.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from agent_bridge.harnesses.markdown import NOTICE_PREFIX, Fences
from agent_bridge.memory.similarity import normalise
from agent_bridge.memory.visible import INVISIBLE

Scope = Literal["project", "global"]

HEADINGS: dict[Scope, str] = {"project": "## Project memory", "global": "## Memory"}

NOTHING_YET = "Nothing is remembered yet."

_HASH = re.compile(r"<!--[ \t]*agent-bridge:memory:hash[ \t]+([0-9a-fA-F]+)[ \t]*-->[ \t]*")
_ITEM = re.compile(r"#{1,3}[ \t]+(?:(.*) )?\[([^\[\]]+)\][ \t]*")
_TOP = re.compile(r"(#{1,3})(?:[ \t]+(.*))?")
_ID_UNSAFE = re.compile(f"[{INVISIBLE}%<>`\\[\\]\t\n\x0b\x0c\x1c-\x1e\x85\u2028\u2029]")
_ID_ESCAPED = re.compile("(?:%[0-9A-F]{2})+")


@dataclass(frozen=True, slots=True)
class Item:
    """One heading of a block and what stands below it; `fact_id` is None for documents and foreign text."""

    fact_id: str | None
    title: str
    text: str

    @property
    def key(self) -> str:
        """Equal for items that say the same: title and text, normalised; the id doesn't count."""
        return normalise(f"{self.title}\n{self.text}")


def body_hash(body: str) -> str:
    """16 hexadecimal digits over `body` up to its hash line (or all of it), outer line ends aside."""
    return hashlib.sha256(_split_hash(body)[0].encode("utf-8", "surrogatepass")).hexdigest()[:16]


def content_of(body: str) -> str:
    """A body without its hash line."""
    return _split_hash(body)[0]


def with_hash(content: str) -> str:
    """The body that `content` makes: `content`, an empty line, the hash line."""
    content = content.strip("\n")
    return f"{content}\n\n<!-- agent-bridge:memory:hash {body_hash(content)} -->"


def hash_valid(body: str) -> bool:
    """Whether the last line is a hash line and fits what stands above it: the body is as we wrote it."""
    content, found = _split_hash(body)
    return found != "" and found == body_hash(content)


def items(body: str) -> list[Item]:
    """The items of a body in its order, also of one that people, Git or other programs have changed.

    Each heading of level 1 to 3 outside fenced code begins an item; `[id]` at its end names the fact. Text
    above the first one is an item without title. Hash lines, notices of what was left out and our own heading
    are no items. Where Git left conflict markers, both sides' items are given, each once.
    """
    sides = _sides(body)
    if len(sides) == 1:
        return list(_items(body))
    return list(dict.fromkeys(item for side in sides for item in _items(side)))


def escape_id(fact_id: str) -> str:
    """An id as it stands in a heading: what would break the line or its brackets is %XX (UTF-8)."""
    return _ID_UNSAFE.sub(lambda found: _percent(found[0]), fact_id)


def unescape_id(text: str) -> str:
    """The id that `escape_id` was given."""
    return _ID_ESCAPED.sub(_unpercent, text)


def _items(body: str) -> Iterator[Item]:
    fences = Fences()
    fact_id: str | None = None
    title = ""
    lines: list[str] = []

    def done() -> Iterator[Item]:
        text = "\n".join(lines).strip("\n")
        if text.strip() or title or fact_id is not None:
            yield Item(fact_id, title, text)

    for line in body.split("\n"):
        if fences.covers(line):
            lines.append(line)
        elif _is_ours_alone(line, title):
            continue
        elif line[:1] == "#" and (heading := _TOP.fullmatch(line)):
            yield from done()
            lines = []
            known = _ITEM.fullmatch(line)
            fact_id = unescape_id(known[2]) if known else None
            title = ((known[1] if known else heading[2]) or "").strip()
            if line.rstrip() in HEADINGS.values():
                title = ""
        else:
            lines.append(line)
    yield from done()


def _is_ours_alone(line: str, title: str) -> bool:
    """Lines that no fact can have: `safe_body` defuses hash lines and notices."""
    return (
        _HASH.fullmatch(line) is not None
        or line.startswith(NOTICE_PREFIX)
        or (line == NOTHING_YET and not title)
    )


def _split_hash(body: str) -> tuple[str, str]:
    content, _, last = body.rstrip("\n").rpartition("\n")
    found = _HASH.fullmatch(last)
    return (content.strip("\n"), found[1]) if found else (body.strip("\n"), "")


def _sides(body: str) -> list[str]:
    """The body, or where it has conflict markers what each side of the merge had (the base is no side)."""
    if not re.search(r"^(?:<{7}|>{7})(?: |$)", body, re.MULTILINE):
        return [body]
    sides: tuple[list[str], list[str]] = ([], [])
    taking: tuple[int, ...] = (0, 1)
    for line in body.split("\n"):
        mark = line[:7] if line[7:8] in ("", " ") else ""
        if mark == "<<<<<<<":
            taking = (0,)
        elif mark == "|||||||" and taking == (0,):
            taking = ()
        elif mark == "=======" and taking in ((0,), ()):
            taking = (1,)
        elif mark == ">>>>>>>":
            taking = (0, 1)
        else:
            for side in taking:
                sides[side].append(line)
    return ["\n".join(side) for side in sides]


def _percent(text: str) -> str:
    return "".join(f"%{byte:02X}" for byte in text.encode("utf-8", "surrogatepass"))


def _unpercent(found: re.Match[str]) -> str:
    try:
        return bytes.fromhex(found[0].replace("%", "")).decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        return found[0]
