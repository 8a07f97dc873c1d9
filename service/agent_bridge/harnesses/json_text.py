"""A JSON text with the place of every part; takes comments and trailing commas, refuses duplicate keys."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass

from agent_bridge.errors import RefusedError
from agent_bridge.harnesses.foreign_text import place_of

_BLANK = re.compile(r"(?:[ \t\r\n]|//[^\n]*|/\*.*?\*/)*", re.DOTALL)
_STRING = re.compile(r'"(?:[^"\\\x00-\x1f]|\\.)*"')
_WORD = re.compile(r"[^\s,:\[\]{}\"/]+")
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
_COMMENT_ON_LINE = re.compile(r"[ \t]*(?://[^\r\n]*|/\*(?:(?!\*/)[^\r\n])*\*/)")
_DEPTH = 100


@dataclass(frozen=True, slots=True)
class Node:
    """A value from `start` to `end`; `members` for an object, `elements` for an array, in order."""

    value: object
    start: int
    end: int
    members: tuple[Member, ...] | None = None
    elements: tuple[Member, ...] | None = None

    def member(self, name: str) -> Member | None:
        """The member of a name, None where there is none or this is no object."""
        return next((one for one in self.members or () if one.name == name), None)


@dataclass(frozen=True, slots=True)
class Member:
    """`"name": value`; `comma` is the offset of the comma behind it, None without one.

    An element of an array has no name.
    """

    name: str
    start: int
    node: Node
    comma: int | None


def parse(text: str) -> Node:
    """The text's one value. Raises RefusedError with line and column."""
    start = _blank(text, 0)
    node = _value(text, start, 0)
    end = _blank(text, node.end)
    if end < len(text):
        raise problem(text, end, "nothing more may follow the value")
    return node


def after_comments_on_line(text: str, at: int) -> int:
    """From behind a value or comma over blanks and comments as far as they stay on the line."""
    while True:
        blank = _COMMENT_ON_LINE.match(text, at)
        if not blank:
            return at
        at = blank.end()


def problem(text: str, at: int, why: str) -> RefusedError:
    """What is wrong at an offset, in lines and columns from 1."""
    return RefusedError(
        "The file isn't valid JSON.",
        detail=f"{place_of(text, at)}: {why}",
        remedy="Repair it by hand.",
    )


def _value(text: str, at: int, depth: int) -> Node:
    if depth > _DEPTH:
        raise problem(text, at, "it is nested too deeply")
    first = text[at : at + 1]
    if first == "{":
        return _object(text, at, depth)
    if first == "[":
        return _array(text, at, depth)
    if first == '"':
        value, end = _string(text, at)
        return Node(value, at, end)
    word = _WORD.match(text, at)
    if not word:
        raise problem(text, at, "a value is missing")
    if word[0] in ("true", "false", "null") or _NUMBER.fullmatch(word[0]):
        try:
            return Node(json.loads(word[0]), at, word.end())
        except ValueError as error:
            raise problem(text, at, "the number is too long") from error
    raise problem(text, at, f"{word[0][:40]!r} is no value")


def _object(text: str, start: int, depth: int) -> Node:
    members: list[Member] = []
    value: dict[str, object] = {}
    at = _blank(text, start + 1)
    while text[at : at + 1] != "}":
        if members and members[-1].comma is None:
            raise problem(text, at, "a comma or } is missing")
        name_start = at
        if text[at : at + 1] != '"':
            raise problem(text, at, "a name in double quotes is missing")
        name, at = _string(text, at)
        if name in value:
            raise problem(text, name_start, f"the key {name!r} stands twice in its object")
        at = _blank(text, at)
        if text[at : at + 1] != ":":
            raise problem(text, at, "a colon is missing")
        node = _value(text, _blank(text, at + 1), depth + 1)
        at = _blank(text, node.end)
        comma = at if text[at : at + 1] == "," else None
        members.append(Member(name, name_start, node, comma))
        value[name] = node.value
        at = at if comma is None else _blank(text, at + 1)
    return Node(value, start, at + 1, tuple(members))


def _array(text: str, start: int, depth: int) -> Node:
    elements: list[Member] = []
    at = _blank(text, start + 1)
    while text[at : at + 1] != "]":
        if elements and elements[-1].comma is None:
            raise problem(text, at, "a comma or ] is missing")
        node = _value(text, at, depth + 1)
        at = _blank(text, node.end)
        comma = at if text[at : at + 1] == "," else None
        elements.append(Member("", node.start, node, comma))
        at = at if comma is None else _blank(text, at + 1)
    return Node([one.node.value for one in elements], start, at + 1, elements=tuple(elements))


def _string(text: str, at: int) -> tuple[str, int]:
    found = _STRING.match(text, at)
    if not found:
        raise problem(text, at, "the string isn't closed on its line")
    try:
        value = json.loads(found[0])
    except ValueError as error:
        raise problem(text, at, "the string has a wrong escape") from error
    return str(value), found.end()


def _blank(text: str, at: int) -> int:
    found = _BLANK.match(text, at)
    return found.end() if found else at
