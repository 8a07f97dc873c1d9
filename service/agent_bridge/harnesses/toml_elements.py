"""One element in an array of somebody's TOML file: is it there, add it, remove it; every other byte stays.

An array may stand as `key = [ … ]` or as `[[key]]` tables. A table that is to be the first element of a
missing array becomes a `[[key]]` of its own at the end, which a person can go on with as the format's users
are used to.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from agent_bridge.errors import RefusedError
from agent_bridge.harnesses.absent import Absent
from agent_bridge.harnesses.array_text import ArrayText, Style, array_at, with_element, without_element
from agent_bridge.harnesses.foreign_text import eol_of, place_of, text_of, unwritable
from agent_bridge.harnesses.toml_edit import (
    Key,
    checked,
    cut_lines,
    delete_key,
    literal_of,
    lookup,
    parsed_toml,
    same,
    statement_of,
    table_appended,
    toml_set,
    toml_unset,
)
from agent_bridge.harnesses.toml_text import Entry, Section, find, items_of, scan

_COMMENT = re.compile(r"[ \t]*#[^\r\n]*")
_UNIT = "  "


def toml_has_element(data: bytes, key: Key, value: object) -> bool:
    """Whether the array at `key` has an element equal to `value`; False where nothing is at `key`.

    Raises RefusedError (line and column) for what isn't TOML or no array.
    """
    return _index(_array(text_of(data), tuple(key)) or [], value) is not None


def toml_add_element(data: bytes, key: Key, value: object) -> bytes:
    """The file with `value` as the last element of the array at `key`; equal bytes where it is in it.

    A missing array is made. Raises RefusedError (line and column) for what isn't TOML or no array, and for a
    value that isn't a table where the array is written as `[[key]]` tables.
    """
    path = tuple(key)
    text = text_of(data)
    array = _array(text, path)
    if array is None:
        return _with_new_array(data, path, value)
    if _index(array, value) is not None:
        return data
    wanted = parsed_toml(text)
    array_at(wanted, path).append(value)
    entry = find(scan(text), path)
    if entry is not None:
        return checked(data, with_element(text, _places(text, entry), _style(text, value)), wanted, path)
    if not isinstance(value, dict):
        raise unwritable(path, "It is an array of tables, which takes nothing but tables.")
    return checked(data, _with_table(text, path, value), wanted, path)


def toml_remove_element(data: bytes, key: Key, value: object, *, made: bool = False) -> bytes:
    """The file without the first element equal to `value`; equal bytes where there is none.

    `made`: the array was made for elements of ours, so without any it goes too. Raises RefusedError.
    """
    path = tuple(key)
    text = text_of(data)
    array = _array(text, path)
    index = None if array is None else _index(array, value)
    if array is None or index is None:
        return data
    sections = scan(text)
    entry = find(sections, path)
    if entry is not None and made and len(array) == 1:
        return toml_unset(data, path)
    wanted = parsed_toml(text)
    del array_at(wanted, path)[index]
    if entry is not None:
        changed = without_element(text, _places(text, entry), index, _style(text, value))
    else:
        changed = _without_table(text, sections, path, index)
        if len(array) == 1:
            delete_key(wanted, path, prune=parsed_toml(changed))
    return checked(data, changed, wanted, path)


def _array(text: str, path: tuple[str, ...]) -> list[Any] | None:
    """The array at a path, None where it could be made."""
    document = parsed_toml(text)
    for depth in range(1, len(path) + 1):
        found = lookup(document, path[:depth])
        if isinstance(found, Absent):
            return None
        wanted, word = (list, "array") if depth == len(path) else (dict, "table")
        if not isinstance(found, wanted):
            name = "it" if depth == len(path) else f"`{'.'.join(path[:depth])}`"
            raise unwritable(path, f"{place_of(text, _start(text, path[:depth]))}: {name} is no {word}.")
    found = lookup(document, path)
    return found if isinstance(found, list) else None


def _start(text: str, path: tuple[str, ...]) -> int:
    """Where a path's value begins, or its header, or the first thing below it."""
    sections = scan(text)
    entry = find(sections, path)
    if entry is not None:
        return entry.value_start
    below = [section.start for section in sections if path and section.path[: len(path)] == path]
    dotted = [
        one.key_start for section in sections for one in section.entries if one.path[: len(path)] == path
    ]
    return min(below + dotted, default=0)


def _index(array: list[Any], value: object) -> int | None:
    return next((index for index, one in enumerate(array) if same(one, value)), None)


def _with_new_array(data: bytes, path: tuple[str, ...], value: object) -> bytes:
    if isinstance(value, dict):
        text = text_of(data)
        wanted = parsed_toml(text)
        table = wanted
        for part in path[:-1]:
            table = table.setdefault(part, {})
        table[path[-1]] = [value]
        try:
            return checked(data, _with_table(text, path, value), wanted, path)
        except RefusedError:  # an inline table on the way takes no header below it
            pass
    return toml_set(data, path, [value])


def _with_table(text: str, path: tuple[str, ...], value: dict[str, Any]) -> str:
    statements = [statement_of((name,), literal_of(part)) for name, part in value.items()]
    return table_appended(text, path, statements, eol_of(text), array=True)


def _without_table(text: str, sections: list[Section], path: tuple[str, ...], index: int) -> str:
    own = [position for position, one in enumerate(sections) if one.double and one.path == path]
    first = own[index]
    after = own[index + 1] if index + 1 < len(own) else len(sections)
    below = [one for one in sections[first:after] if one.path[: len(path)] == path]
    for start, end, comments in reversed(list(_runs(text, below))):
        if comments:
            text = text[:start] + comments + text[end:]
        else:
            text = cut_lines(text, start, end, blank=start == sections[first].start)
    return text


def _runs(text: str, sections: list[Section]) -> Iterator[tuple[int, int, str]]:
    """Lines with statements and nothing but blanks between them, and the comments that stand behind those."""
    lines = [
        line
        for section in sections
        for line in (
            (section.start, section.header_end, section.body),
            *((entry.line_start, entry.value_end, entry.line_end) for entry in section.entries),
        )
    ]
    start, end, comments = lines[0][0], lines[0][0], ""
    for line_start, behind, line_end in lines:
        if text[end:line_start].strip():
            yield start, end, comments
            start, comments = line_start, ""
        comments += text[behind:line_end].lstrip() if text[behind:line_end].strip() else ""
        end = line_end
    yield start, end, comments


def _places(text: str, entry: Entry) -> ArrayText:
    return ArrayText(entry.value_start, entry.value_end, tuple(items_of(text, entry.value_start)))


def _style(text: str, value: object) -> Style:
    return Style(lambda _indent: literal_of(value), _after_comments, "#", _UNIT, eol_of(text))


def _after_comments(text: str, at: int) -> int:
    comment = _COMMENT.match(text, at)
    return comment.end() if comment else at
