"""Set and unset one key of somebody's JSON file; every other byte stays.

Edits are made in the text at the key's own place. Comments and trailing commas (JSONC) are kept,
indentation and line ends are followed, and the result is parsed again. Unsetting what was set restores the
bytes.
"""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Sequence

from agent_bridge.harnesses.absent import ABSENT, Absent
from agent_bridge.harnesses.array_text import line_indent, without_break
from agent_bridge.harnesses.foreign_text import bytes_of, eol_of, text_of, unwritable
from agent_bridge.harnesses.json_text import Member, Node, after_comments_on_line, parse

Key = Sequence[str]

_DEFAULT_INDENT = "  "
_SURROGATE = re.compile("[\ud800-\udfff]")


def json_get(data: bytes, key: Key) -> object | Absent:
    """The value at a key path, or `ABSENT`; an empty file is `{}`. Raises RefusedError (line and column)."""
    found: object = parsed_json(text_of(data)).value
    for part in key:
        if not isinstance(found, dict) or part not in found:
            return ABSENT
        found = found[part]
    return found


def json_set(data: bytes, key: Key, value: object) -> bytes:
    """The file with `key` set to any JSON value; equal bytes where it is so already.

    A new key comes last in its object; missing objects on the way are made. Raises RefusedError where the
    file isn't JSON, has a key twice, or a part of the path is no object.
    """
    path = tuple(key)
    found = json_get(data, path)
    if not isinstance(found, Absent) and same(found, value):
        return data
    text = text_of(data)
    text = text if text.strip() else "{}" + eol_of(text)
    root = parsed_json(text)
    eol = eol_of(text)
    node, depth = deepest(root, path)
    if depth == len(path):
        indent = line_indent(text, node.start)
        literal = literal_of(value, indent, unit_of(text, root), eol) if "\n" in text else dumps(value)
        changed = text[: node.start] + literal + text[node.end :]
    else:
        if node.members is None:
            raise unwritable(path, f"`{'.'.join(path[:depth]) or 'The whole file'}` is no object.")
        changed = _added(text, root, node, path[depth:], value)
    wanted = copy.deepcopy(root.value)
    table = wanted
    for part in path[:-1]:
        table = table.setdefault(part, {})  # type: ignore[attr-defined]
    table[path[-1]] = value  # type: ignore[index]
    return checked(data, changed, wanted, path)


def json_unset(data: bytes, key: Key) -> bytes:
    """The file without `key`, and without the objects that `json_set` made for it. Raises RefusedError."""
    path = tuple(key)
    if isinstance(json_get(data, path), Absent):
        return data
    text = text_of(data)
    root = parsed_json(text)
    while len(path) > 1 and _made_for(text, root, path):
        path = path[:-1]
    owner, _ = deepest(root, path[:-1])
    wanted = copy.deepcopy(root.value)
    table = wanted
    for part in path[:-1]:
        table = table[part]  # type: ignore[index]
    del table[path[-1]]  # type: ignore[attr-defined]
    return checked(data, _without(text, owner, path[-1]), wanted, path)


def _added(text: str, root: Node, owner: Node, path: tuple[str, ...], value: object) -> str:
    members = owner.members or ()
    eol = eol_of(text)
    unit = unit_of(text, root)
    name = dumps(path[0])

    def member(indent: str) -> str:
        if len(path) > 1:  # on one line, which tells `json_unset` that the object is there for this key only
            return f"{name}: {dumps(_nested(path[1:], value))}"
        return f"{name}: {literal_of(value, indent, unit, eol)}"

    if not members:
        outer = line_indent(text, owner.start)
        at = owner.start + 1
        return f"{text[:at]}{eol}{outer}{unit}{member(outer + unit)}{eol}{outer}{text[at:]}"
    last = members[-1]
    behind = last.node.end if last.comma is None else last.comma + 1
    place = after_comments_on_line(text, behind)
    if re.compile(r"[ \t]*\r?\n").match(text, place):
        indent = line_indent(text, last.start)
        new = f"{eol}{indent}{member(indent)}"
    else:
        place = behind
        one_line = len(path) == 1 and "\n" not in text
        new = f" {name}: {dumps(value)}" if one_line else f" {member('')}"
    if last.comma is None:
        return f"{text[: last.node.end]},{text[last.node.end : place]}{new}{text[place:]}"
    return f"{text[:place]}{new},{text[place:]}"


def _without(text: str, owner: Node, name: str) -> str:
    members = owner.members or ()
    index = next(number for number, one in enumerate(members) if one.name == name)
    gone = members[index]
    head = without_break(text[: gone.start])
    tail = text[gone.node.end if gone.comma is None else gone.comma + 1 :]
    if len(members) == 1:
        made = re.compile(r"\r?\n[ \t]*").match(tail)
        newline = "\n" in text[len(head) : gone.start]
        if made and newline:
            closing = line_indent(text, owner.start)
            cut = re.compile(r"\r?\n" + re.escape(closing)).match(tail)
            tail = tail[cut.end() :] if cut else tail
        elif not newline:
            head = text[: gone.start]
    elif index == len(members) - 1 and gone.comma is None:
        before = members[index - 1].comma
        if before is not None:
            head = head[:before] + head[before + 1 :]
    between = text[owner.start + 1 if index == 0 else members[index - 1].node.end : gone.start].rstrip()
    ends_in_comment = "//" in between[between.rfind("\n") + 1 :]
    if ends_in_comment and not re.compile(r"[ \t]*(?:\r?\n|\Z)").match(tail):
        tail = eol_of(text) + tail
    return head + tail


def _made_for(text: str, root: Node, path: tuple[str, ...]) -> bool:
    """Whether the object around `path`'s last part was made for it: nothing else in it, on one line."""
    owner, _ = deepest(root, path[:-1])
    return len(owner.members or ()) == 1 and "\n" not in text[owner.start : owner.end]


def deepest(root: Node, path: tuple[str, ...]) -> tuple[Node, int]:
    """The last node of `path` that is there, and how many parts of the path lead to it."""
    node = root
    for depth, part in enumerate(path):
        member: Member | None = node.member(part)
        if member is None:
            return node, depth
        node = member.node
    return node, len(path)


def _nested(path: tuple[str, ...], value: object) -> object:
    for part in reversed(path):
        value = {part: value}
    return value


def literal_of(value: object, indent: str, unit: str, eol: str) -> str:
    """A value as JSON; an object over several lines, which begin with `indent`."""
    return dumps(value, indent=unit if isinstance(value, dict) else None).replace("\n", eol + indent)


def dumps(value: object, indent: str | None = None) -> str:
    """A value as JSON, in letters as far as they can be written."""
    text = json.dumps(value, ensure_ascii=False, indent=indent)
    return text if text.isprintable() or not _SURROGATE.search(text) else json.dumps(value, indent=indent)


def unit_of(text: str, root: Node) -> str:
    """One step of indentation: that of the first member which begins a line, else two blanks."""
    for member in root.members or ():
        indent = line_indent(text, member.start)
        if indent and not text[text.rfind("\n", 0, member.start) + 1 : member.start].strip():
            return indent
    return _DEFAULT_INDENT


def parsed_json(text: str) -> Node:
    """The text's value with its places, an empty object for an empty text. Raises RefusedError."""
    return parse(text) if text.strip() else Node({}, 0, 0, ())


def checked(data: bytes, changed: str, wanted: object, path: tuple[str, ...]) -> bytes:
    """The bytes of a changed text that says what is wanted and nothing else. Raises RefusedError."""
    if not same(parse(changed).value, wanted):
        raise unwritable(path, "The result would change other keys too.")
    return bytes_of(changed, like=data)


def same(one: object, other: object) -> bool:
    """Equal with types: true isn't 1. The order of keys is free."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list | tuple):
        return len(one) == len(other) and all(map(same, one, other))
    return type(one) is type(other) and one == other
