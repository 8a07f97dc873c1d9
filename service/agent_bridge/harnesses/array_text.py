"""Put one element into an array of somebody's settings file, and take it out again: text in, text out.

Serves JSON and TOML alike; they tell where the elements stand and how one is written.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

_LINE_END_FOLLOWS = re.compile(r"[ \t]*\r?\n")
_BEFORE = re.compile(r"\r?\n[ \t]*\Z|[ \t]+\Z")


@dataclass(frozen=True, slots=True)
class Item:
    """An element from `start` to `end`; `comma` is the offset of the comma behind it, None without one."""

    start: int
    end: int
    comma: int | None


@dataclass(frozen=True, slots=True)
class ArrayText:
    """An array from its `[` at `start` to behind its `]` at `end`, with its elements in order."""

    start: int
    end: int
    items: tuple[Item, ...]


@dataclass(frozen=True, slots=True)
class Style:
    """How a file writes things.

    `render` gives an element's text: for lines that begin with the given indentation, or for None on one
    line. `after_comments` goes from an offset over comments as far as they stay on its line. `comment` is
    what begins a comment that ends with its line; `unit` is one step of indentation.
    """

    render: Callable[[str | None], str]
    after_comments: Callable[[str, int], int]
    comment: str
    unit: str
    eol: str


def with_element(text: str, array: ArrayText, style: Style) -> str:
    """The text with a new last element: on a line of its own where those before it are, or the array is."""
    if not array.items:
        return _with_first(text, array, style)
    last = array.items[-1]
    behind = last.end if last.comma is None else last.comma + 1
    place = style.after_comments(text, behind)
    if _LINE_END_FOLLOWS.match(text, place):
        indent = line_indent(text, last.start)
        new = f"{style.eol}{indent}{style.render(indent)}"
    else:
        place = behind
        new = f" {style.render(None)}"
    if last.comma is None:
        return f"{text[: last.end]},{text[last.end : place]}{new}{text[place:]}"
    return f"{text[:place]}{new},{text[place:]}"


def without_element(text: str, array: ArrayText, index: int, style: Style) -> str:
    """The text without the element at `index`; what `with_element` added is gone to the byte."""
    gone = array.items[index]
    head = text[: gone.start]
    tail = text[gone.end if gone.comma is None else gone.comma + 1 :]
    if index > 0 or "\n" in text[array.start : gone.start]:
        head = without_break(head)
    if index > 0 and index == len(array.items) - 1 and gone.comma is None:
        before = array.items[index - 1].comma
        if before is not None:
            head = head[:before] + head[before + 1 :]
    between = text[array.start + 1 if index == 0 else array.items[index - 1].end : gone.start].rstrip()
    ends_in_comment = style.comment in between[between.rfind("\n") + 1 :]
    if ends_in_comment and not re.compile(r"[ \t]*(?:\r?\n|\Z)").match(tail):
        tail = style.eol + tail
    return head + tail


def without_break(head: str) -> str:
    """A text without the line end and the indentation, or the blanks, that it ends with."""
    return _BEFORE.sub("", head)


def array_at(document: object, path: Sequence[str]) -> list[Any]:
    """The list at a path of a parsed document; TypeError where there is none."""
    for part in path:
        document = document[part]  # type: ignore[index]
    if not isinstance(document, list):
        raise TypeError(f"no list at {path!r}")
    return document


def line_indent(text: str, at: int) -> str:
    """The blanks that the line of an offset begins with."""
    line = text[text.rfind("\n", 0, at) + 1 : at]
    return line[: len(line) - len(line.lstrip(" \t"))]


def _with_first(text: str, array: ArrayText, style: Style) -> str:
    behind = array.start + 1
    place = style.after_comments(text, behind)
    if not _LINE_END_FOLLOWS.match(text, place):
        return f"{text[:behind]}{style.render(None)}{text[behind:]}"
    indent = line_indent(text, array.start) + style.unit
    return f"{text[:place]}{style.eol}{indent}{style.render(indent)}{text[place:]}"
