"""Set and unset one key of somebody's TOML file; every other byte stays.

Edits are made in the text, at the key's own place; then the result is parsed and must be the old document
with just that key changed. Comments (also one behind the value), order, spelling, line ends, byte order mark
and a missing final newline stay. Unsetting what was set restores the bytes.
"""

from __future__ import annotations

import copy
import json
import re
import tomllib
from collections.abc import Sequence
from typing import Any

from agent_bridge.errors import RefusedError
from agent_bridge.harnesses.absent import ABSENT, Absent
from agent_bridge.harnesses.foreign_text import bytes_of, eol_of, text_of, unwritable
from agent_bridge.harnesses.toml_document import load_toml
from agent_bridge.harnesses.toml_text import Entry, Section, find, scan

Key = Sequence[str]

_BARE = re.compile(r"[A-Za-z0-9_-]+")
_PLACE = re.compile(r"\(at line (\d+), column (\d+)\)")


def toml_get(data: bytes, key: Key) -> object | Absent:
    """The value at a key path, or `ABSENT`. Raises RefusedError (line and column) for what isn't TOML."""
    return lookup(parsed_toml(text_of(data)), tuple(key))


def toml_set(data: bytes, key: Key, value: object) -> bytes:
    """The file with `key` set to a bool, number, string, list or table of such; equal bytes where it is so.

    A new key goes where its table is written already (header, dotted keys or inline table); a missing table
    comes at the end. Raises RefusedError where the file isn't TOML or a part of the path is no table.
    """
    path = tuple(key)
    text = text_of(data)
    document = parsed_toml(text)
    if same(lookup(document, path), value):
        return data
    _check_tables(document, path)
    sections = scan(text)
    entry = find(sections, path)
    literal = literal_of(value)
    if entry:
        changed = text[: entry.value_start] + literal + text[entry.value_end :]
    else:
        changed = _added(text, sections, path, literal)
    wanted = copy.deepcopy(document)
    table = wanted
    for part in path[:-1]:
        table = table.setdefault(part, {})
    table[path[-1]] = value
    return checked(data, changed, wanted, path)


def toml_unset(data: bytes, key: Key) -> bytes:
    """The file without `key`; a table header that `toml_set` added for it goes too. Raises RefusedError."""
    path = tuple(key)
    text = text_of(data)
    document = parsed_toml(text)
    if isinstance(lookup(document, path), Absent):
        return data
    sections = scan(text)
    entry = find(sections, path)
    if entry is None:
        raise unwritable(path, "It is a table of its own, or part of an array.")
    changed = _without_inline(text, sections, entry) if entry.inline else _without(text, sections, entry)
    wanted = copy.deepcopy(document)
    delete_key(wanted, path, prune=parsed_toml(changed))
    return checked(data, changed, wanted, path)


def _added(text: str, sections: list[Section], path: tuple[str, ...], literal: str) -> str:
    for depth in range(len(path) - 1, 0, -1):
        table = find(sections, path[:depth])
        if table is not None and table.entries is not None:
            return _added_inline(text, table, statement_of(path[depth:], literal))
    eol = eol_of(text)
    parent = path[:-1]
    dotted = [
        entry
        for section in sections
        if not section.array
        for entry in section.entries
        if len(entry.path) > len(parent) > len(section.path) and entry.path[: len(parent)] == parent
    ]
    if dotted:
        anchor = dotted[-1]
        return _line_after(text, anchor, statement_of(path[len(anchor.section) :], literal), eol)
    section = next((one for one in sections if one.path == parent and not one.array), None)
    if section is None:
        return table_appended(text, parent, [statement_of(path[-1:], literal)], eol)
    statement = statement_of(path[-1:], literal)
    if section.entries:
        return _line_after(text, section.entries[-1], statement, eol)
    if not parent:
        return statement + (eol + text if text else "\n")
    # One blank before the key tells `toml_unset` that the empty table was here before us.
    head = text[: section.body]
    return (
        head + (f" {statement}{eol}" if head.endswith("\n") else f"{eol} {statement}") + text[section.body :]
    )


def table_appended(
    text: str, path: tuple[str, ...], statements: Sequence[str], eol: str, *, array: bool = False
) -> str:
    """The text with a table at its end, behind an empty line; `array`: the next `[[…]]` of an array."""
    name = ".".join(map(_key_literal, path))
    table = eol.join((f"[[{name}]]" if array else f"[{name}]", *statements))
    if not text:
        return f"{table}{eol}"
    if text.endswith("\n"):
        return f"{text}{eol}{table}{eol}"
    return f"{text}{eol}{eol}{table}"


def _line_after(text: str, anchor: Entry, statement: str, eol: str) -> str:
    indent = text[anchor.line_start : anchor.key_start]
    head = text[: anchor.line_end]
    line = f"{indent}{statement}{eol}" if head.endswith("\n") else f"{eol}{indent}{statement}"
    return head + line + text[anchor.line_end :]


def _added_inline(text: str, table: Entry, statement: str) -> str:
    if table.entries:
        at = table.entries[-1].value_end
        return f"{text[:at]}, {statement}{text[at:]}"
    at = table.value_start + 1
    return f"{text[:at]} {statement}{text[at:]}"


def _without_inline(text: str, sections: list[Section], entry: Entry) -> str:
    table = find(sections, entry.path[:-1])
    siblings = table.entries if table and table.entries else _siblings(sections, entry)
    index = siblings.index(entry)
    if index > 0:
        return text[: siblings[index - 1].value_end] + text[entry.value_end :]
    if len(siblings) > 1:
        return text[: entry.key_start] + text[siblings[1].key_start :]
    start = entry.key_start
    return text[: start - 1 if text[start - 1] == " " else start] + text[entry.value_end :]


def _siblings(sections: list[Section], entry: Entry) -> tuple[Entry, ...]:
    for depth in range(len(entry.path) - 1, 0, -1):
        table = find(sections, entry.path[:depth])
        if table is not None and table.entries and entry in table.entries:
            return table.entries
    raise unwritable(entry.path, "Its inline table was not found.")


def _without(text: str, sections: list[Section], entry: Entry) -> str:
    section = next(one for one in sections if entry in one.entries)
    comment = text[entry.value_end : entry.line_end].strip()
    if comment:
        return (
            text[: entry.key_start] + text[entry.value_end : entry.line_end].lstrip() + text[entry.line_end :]
        )
    added_header = (
        section.path == entry.path[:-1] != ()
        and len(section.entries) == 1
        and text[section.start : section.body].strip().endswith("]")
        and not text[section.body : entry.line_start].strip()
        and not text[entry.line_end : section.end].strip()
        and text[entry.line_start : entry.key_start] == ""
    )
    start = section.start if added_header else entry.line_start
    return cut_lines(text, start, entry.line_end, blank=added_header)


def cut_lines(text: str, start: int, end: int, *, blank: bool) -> str:
    """Cut whole lines; where they end the text without a line end, the one before them goes instead.

    `blank`: one empty line before them goes too.
    """
    head = text[:start]
    if blank and head.endswith(("\n\n", "\n\r\n")):
        head = _without_last_line_end(head)
    if not text[:end].endswith("\n"):
        head = _without_last_line_end(head)
    tail = text[end:]
    if blank and not head:  # the file was empty before us, so the blank line parts us from a later section
        tail = tail[2:] if tail.startswith("\r\n") else tail.removeprefix("\n")
    return head + tail


def _without_last_line_end(text: str) -> str:
    return text[:-2] if text.endswith("\r\n") else text.removesuffix("\n")


def statement_of(key: tuple[str, ...], literal: str) -> str:
    """`key = literal`, with the key's parts quoted where they must be."""
    return f"{'.'.join(map(_key_literal, key))} = {literal}"


def _key_literal(part: str) -> str:
    return part if _BARE.fullmatch(part) else _string(part)


def literal_of(value: object) -> str:
    """A value as TOML on one line. Raises TypeError for what TOML doesn't have."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, str):
        return _string(value)
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(literal_of, value)) + "]"
    if isinstance(value, dict):
        inside = ", ".join(statement_of((str(key),), literal_of(part)) for key, part in value.items())
        return f"{{ {inside} }}" if inside else "{}"
    raise TypeError(f"no TOML value: {value!r}")


def _string(text: str) -> str:
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def parsed_toml(text: str) -> dict[str, Any]:
    """The document. Raises RefusedError with line and column."""
    try:
        return load_toml(text)
    except tomllib.TOMLDecodeError as error:
        message = str(error)
        place = _PLACE.search(message)
        lines = text.split("\n")
        line, column = (int(place[1]), int(place[2])) if place else (len(lines), len(lines[-1]) + 1)
        raise RefusedError(
            "The file isn't valid TOML.",
            detail=f"line {line}, column {column}: {message.partition(' (at ')[0]}",
            remedy="Repair it by hand.",
        ) from error
    except RecursionError as error:
        raise RefusedError("The file is nested too deeply.", remedy="Repair it by hand.") from error


def lookup(document: dict[str, Any], path: tuple[str, ...]) -> object | Absent:
    """What stands at a path through tables."""
    found: object = document
    for part in path:
        if not isinstance(found, dict) or part not in found:
            return ABSENT
        found = found[part]
    return found


def _check_tables(document: dict[str, Any], path: tuple[str, ...]) -> None:
    for depth in range(1, len(path)):
        found = lookup(document, path[:depth])
        if isinstance(found, Absent):
            return
        if not isinstance(found, dict):
            raise unwritable(path, f"`{'.'.join(path[:depth])}` is no table.")


def delete_key(document: dict[str, Any], path: tuple[str, ...], *, prune: dict[str, Any]) -> None:
    """Take `path` out, and those tables above it that are empty now and that `prune` doesn't have."""
    table = lookup(document, path[:-1])
    if isinstance(table, dict):
        table.pop(path[-1], None)
        if not table and len(path) > 1 and isinstance(lookup(prune, path[:-1]), Absent):
            delete_key(document, path[:-1], prune=prune)


def checked(data: bytes, changed: str, wanted: dict[str, Any], path: tuple[str, ...]) -> bytes:
    """The bytes of a changed text that says what is wanted and nothing else. Raises RefusedError."""
    try:
        parsed = tomllib.loads(changed)
    except tomllib.TOMLDecodeError as error:
        raise unwritable(path, f"The result would not be TOML: {error}") from error
    if not same(parsed, wanted):
        raise unwritable(path, "The result would change other keys too.")
    return bytes_of(changed, like=data)


def same(one: object, other: object) -> bool:
    """Equal with types: true isn't 1, 1 isn't 1.0; not-a-number equals itself; the order of keys is free."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list | tuple):
        return len(one) == len(other) and all(map(same, one, other))
    return type(one) is type(other) and (one == other or repr(one) == repr(other))
