"""Change single keys of a frontmatter, or the body below it, without touching another byte. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping

from agent_bridge.memory.frontmatter import (
    LINE_END,
    LIST_ITEM,
    FactProblem,
    Value,
    fast_value,
    lookup,
    read_mapping,
    split,
)

_RESERVED = frozenset({"true", "false", "yes", "no", "on", "off", "null", "y", "n"})
_ID = re.compile(r"\d{8}-\d{4,9}-[a-z0-9-]*[a-z0-9]")  # no YAML reader takes it for a number or a date
_TIMESTAMP = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z")


def scalar(value: object) -> str:
    """A value as YAML on one line: flags, times and plain words bare, lists in brackets, the rest quoted."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(_item(str(item)) for item in value) + "]"
    text = str(value)
    if _TIMESTAMP.fullmatch(text) or _ID.fullmatch(text):
        return text
    bare = text[:1].isalpha() and text == text.strip() and text.isprintable() and fast_value(text) == text
    return text if bare and text.lower() not in _RESERVED else _quoted(text)


def _item(text: str) -> str:
    bare = text[:1].isalpha() and text == text.strip() and text.isprintable() and LIST_ITEM.fullmatch(text)
    return text if bare and text.lower() not in _RESERVED else _quoted(text)


def _quoted(text: str) -> str:
    return '"' + "".join(_escaped(char) for char in text) + '"'


def _escaped(char: str) -> str:
    if char in '"\\':
        return "\\" + char
    if char.isprintable():
        return char
    if "\ud800" <= char <= "\udfff":  # half a pair, or a byte of a name that is no UTF-8: no YAML
        return "?"
    return f"\\u{ord(char):04x}" if ord(char) < 0x10000 else f"\\U{ord(char):08x}"


def set_keys(text: str, changes: Mapping[str, object]) -> str:
    """The text with these keys set (None removes one); every other character stays as it is.

    A key is changed where it stands: at the top level, below `metadata`, or both. A new one goes below
    `metadata` where there is such a block, else to the end. A text without frontmatter gets one.
    Raises FactProblem where the result would not read as asked.
    """
    parts = split(text)
    before = read_mapping(text[parts.start : parts.end])
    lines = _keep_ends(text[parts.start : parts.end])
    for key, value in changes.items():
        lines = _set_one(lines, key, value, parts.eol)
    head = "".join(lines)
    if parts.closed:
        result = text[: parts.start] + head + text[parts.end :]
    elif head:
        fence = f"---{parts.eol}"
        result = f"{parts.bom}{fence}{head}{fence}{parts.eol}{text[parts.body :]}"
    else:
        return text
    _verify(before, read_mapping(head), changes)
    return result


def replace_body(text: str, body: str) -> str:
    """The text with another body: frontmatter, the gap below it, line ends and final newline stay."""
    parts = split(text)
    old = text[parts.body :]
    gap = old[: len(old) - len(old.lstrip("\r\n"))]
    if parts.closed and not gap:
        gap = "" if old.strip() else parts.eol
    tail = old[len(old.rstrip()) :] if old.strip() else parts.eol
    plain = LINE_END.sub("\n", body.lstrip("\ufeff")).lstrip("\n").rstrip()
    new = plain.replace("\n", parts.eol)
    head = text[: parts.body]
    if not parts.closed and plain.split("\n", 1)[0].rstrip(" \t") == "---":
        head, gap = f"{parts.bom}---{parts.eol}---{parts.eol}", parts.eol
    return head + gap + new + tail


def _keep_ends(text: str) -> list[str]:
    lines, at = [], 0
    for end in LINE_END.finditer(text):
        lines.append(text[at : end.end()])
        at = end.end()
    return [*lines, text[at:]] if at < len(text) else lines


def _set_one(lines: list[str], key: str, value: object, eol: str) -> list[str]:
    spans = _places(lines, key)
    for start, stop, indent in reversed(spans):
        new = [] if value is None else [f"{indent}{key}: {scalar(value)}{_end_of(lines[start], eol)}"]
        lines = [*lines[:start], *new, *lines[stop:]]
    if spans or value is None:
        return lines
    at, indent = _room_below_metadata(lines)
    return [*lines[:at], f"{indent}{key}: {scalar(value)}{eol}", *lines[at:]]


def _places(lines: list[str], key: str) -> list[tuple[int, int, str]]:
    """Where `key` stands: first line, line after its last, indentation; top level and below `metadata`."""
    found = []
    parent, inner = "", ""
    for number, line in enumerate(lines):
        match = re.match(r"([ ]*)([\"']?)([A-Za-z_][\w-]*)\2[ ]*:(?=[ \t\r\n]|$)", line)
        if match is None:
            continue
        if not match[1]:
            parent, inner = match[3], ""
        elif parent == "metadata" and not inner:
            inner = match[1]
        level = not match[1] or (parent == "metadata" and match[1] == inner)
        if level and match[3] == key:
            found.append((number, _stop(lines, number, len(match[1])), match[1]))
    return found


def _stop(lines: list[str], start: int, indent: int) -> int:
    """The line after a key's value: what is indented deeper belongs to it, and a list at its own level."""
    stop = last = start + 1
    while stop < len(lines):
        line = lines[stop].rstrip("\r\n")
        content = line.lstrip(" ")
        deeper = len(line) - len(content) > indent
        listed = len(line) - len(content) == indent and (content == "-" or content.startswith("- "))
        if content and not (deeper or listed):
            break
        stop += 1
        last = stop if content else last
    return last


def _room_below_metadata(lines: list[str]) -> tuple[int, str]:
    for number, line in enumerate(lines):
        if re.fullmatch(r"metadata:[ \t]*(?:[ \t]#.*)?", line.rstrip("\r\n")):
            stop = _stop(lines, number, 0)
            inner = re.match(r" +(?=[^ \r\n#])", lines[number + 1]) if stop > number + 1 else None
            return (stop, inner.group()) if inner else (number + 1, "  ")
    return len(lines), ""


def _end_of(line: str, eol: str) -> str:
    found = LINE_END.search(line)
    return found.group() if found else eol


def _verify(before: dict[str, Value], after: dict[str, Value], changes: Mapping[str, object]) -> None:
    """The asked-for keys read as asked, and no other key changed."""
    for key, value in changes.items():
        if lookup(after, key) != _as_read(value):
            raise FactProblem(f"`{key}` can't be set in this frontmatter", "Set it by hand.")
    if _others(before, changes) != _others(after, changes):
        raise FactProblem("changing its frontmatter would change other keys", "Change it by hand.")


def _as_read(value: object) -> Value | None:
    if value is None:
        return None
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (list, tuple)):
        return [str(item) for item in value]
    return str(value)


def _others(mapping: dict[str, Value], changes: Mapping[str, object]) -> dict[str, Value]:
    rest = {key: value for key, value in mapping.items() if key not in changes}
    metadata = rest.get("metadata")
    if isinstance(metadata, dict):
        rest["metadata"] = {key: value for key, value in metadata.items() if key not in changes}
    if not rest.get("metadata", "kept"):
        del rest["metadata"]
    return rest
