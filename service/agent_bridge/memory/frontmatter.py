"""Frontmatter of markdown files: find it, read it, and change single keys without touching another byte.

Pure: text in, values out. Every scalar is read as the text that stands there (`yes`, `007` and
`2026-01-01` stay text), so nothing depends on YAML's guesses about types; who needs a flag or a time
reads it out of the text.

Reading has a fast path by hand for what nearly all facts look like (`key: scalar`, `[a, b]`, one block
one level down); the rest goes to libyaml. The loader written in Python is never used: it is ten times
slower. Anchors, aliases and tags are refused before anything is built, so an alias bomb costs nothing.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from agent_bridge.errors import AgentBridgeError

if TYPE_CHECKING:
    from yaml.events import Event

MAX_HEAD = 64 * 1024
"""Characters of a frontmatter; a larger one is refused."""

MAX_DEPTH = 20
"""Collections within one another, as the store's rules say."""

Value = str | list["Value"] | dict[str, "Value"]

_KEY_LINE = re.compile(r"( *)([A-Za-z_][A-Za-z0-9_-]{0,99}):(?: +(.*))?")
_LIST_ITEM = re.compile(r"\w[\w./+ -]*")
_INDICATORS = frozenset("-?:,[]{}#&*!|>'\"%@` ")
_LINE_END = re.compile(r"\r\n|\r|\n")


class FactProblem(Exception):  # noqa: N818 - a finding about a file, told and never fatal
    """A file can't be read as a fact: `reason` says why, `remedy` what to do."""

    def __init__(self, reason: str, remedy: str = "Mend the file by hand.") -> None:
        super().__init__(reason)
        self.reason = reason
        self.remedy = remedy


@dataclass(frozen=True, slots=True)
class Parts:
    """Where the frontmatter of a text lies; all offsets are in characters.

    `bom` is what stands before everything (a byte order mark or nothing), `start` and `end` enclose the
    lines between the fences, `body` is where the line after the closing fence begins. Without
    frontmatter `closed` is False and all three equal the BOM's length.
    """

    bom: str
    start: int
    end: int
    body: int
    closed: bool
    opened: bool
    eol: str


def split(text: str) -> Parts:
    """Find the frontmatter: a first line `---` up to the next such line; unclosed, it is body text."""
    bom = "\ufeff" if text.startswith("\ufeff") else ""
    found = _LINE_END.search(text)
    eol = found.group() if found else "\n"
    none = Parts(bom, len(bom), len(bom), len(bom), closed=False, opened=False, eol=eol)
    if found is None or text[len(bom) : found.start()].rstrip(" \t") != "---":
        return none
    start = at = found.end()
    while at < len(text):
        line_end = _LINE_END.search(text, at)
        stop, following = (line_end.start(), line_end.end()) if line_end else (len(text), len(text))
        if text.startswith("---", at) and text[at:stop].rstrip(" \t") == "---":
            if at - start > MAX_HEAD:
                raise FactProblem(
                    f"its frontmatter is larger than {MAX_HEAD // 1024} KiB", "Shorten the frontmatter."
                )
            return Parts(bom, start, at, following, closed=True, opened=True, eol=eol)
        at = following
    return Parts(bom, len(bom), len(bom), len(bom), closed=False, opened=True, eol=eol)


def read_mapping(head: str) -> dict[str, Value]:
    """The keys between the fences. Raises FactProblem for broken YAML, aliases, tags, too much nesting."""
    fast = fast_mapping(head)
    return load_mapping(head) if fast is None else fast


def fast_mapping(head: str) -> dict[str, Value] | None:
    """The keys, read by hand; None where anything is less than plain (equal to `load_mapping` otherwise)."""
    top: dict[str, Value] = {}
    block: dict[str, Value] | None = None  # the mapping being filled one level down
    indent = 0
    last = ""  # the key whose value is still open to a block below it
    for line in _LINE_END.split(head):
        if not line:
            continue
        match = _KEY_LINE.fullmatch(line)
        if match is None or not line.isprintable():
            return None
        spaces, key, raw = len(match[1]), match[2], (match[3] or "").rstrip(" ")
        value = _fast_value(raw)
        if value is None:
            return None
        if spaces == 0:
            if key in top:
                return None
            top[key] = value
            block, last = None, "" if raw else key
            continue
        if block is None:
            if not last:
                return None
            block, indent = {}, spaces
            top[last] = block
        if spaces != indent or key in block:
            return None
        block[key] = value
    return top


def _fast_value(raw: str) -> Value | None:
    if not raw:
        return ""
    first = raw[0]
    if first in "\"'":
        inner = raw[1:-1]
        plain = len(raw) > 1 and raw[-1] == first and first not in inner and "\\" not in inner
        return inner if plain else None
    if first == "[":
        return _fast_list(raw)
    if first in _INDICATORS or ": " in raw or " #" in raw or raw[-1] == ":":
        return None
    return raw


def _fast_list(raw: str) -> Value | None:
    if raw[-1] != "]":
        return None
    inner = raw[1:-1].strip(" ")
    if not inner:
        return []
    items = [item.strip(" ") for item in inner.split(",")]
    return list(items) if all(_LIST_ITEM.fullmatch(item) for item in items) else None


def load_mapping(head: str) -> dict[str, Value]:
    """The keys, read by libyaml with every scalar kept as text. Raises FactProblem."""
    import yaml

    loader = getattr(yaml, "CBaseLoader", None)
    if loader is None:
        raise AgentBridgeError(
            "PyYAML was installed without its C library.",
            detail="The loader written in Python is too slow for a service and isn't used.",
            remedy="Install PyYAML from a wheel, or build it where libyaml's headers are.",
        )
    if len(head) > MAX_HEAD:
        raise FactProblem(
            f"its frontmatter is larger than {MAX_HEAD // 1024} KiB", "Shorten the frontmatter."
        )
    try:
        depth = 0
        for event in yaml.parse(head, Loader=loader):
            depth = _check(event, depth)
        loaded = yaml.load(head, Loader=loader)  # noqa: S506 - a base loader builds text, lists and mappings only
    except yaml.YAMLError as error:
        raise FactProblem(
            f"its frontmatter is not valid YAML{_where(error)}", "Mend the frontmatter, or quote the value."
        ) from error
    if loaded is None or loaded == "":
        return {}
    if not isinstance(loaded, dict):
        raise FactProblem("its frontmatter is not a list of keys", "Write `key: value` lines, or remove it.")
    return {str(key): value for key, value in loaded.items()}


def _check(event: Event, depth: int) -> int:
    """Refuse what must not be expanded; returns the nesting after this event."""
    import yaml

    if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None) is not None:
        raise FactProblem("its frontmatter uses YAML anchors or aliases", "Write the value out.")
    if getattr(event, "tag", None) is not None:
        raise FactProblem("its frontmatter uses YAML tags", "Remove the tag (the word that begins with `!`).")
    if isinstance(event, yaml.CollectionStartEvent):
        if depth >= MAX_DEPTH:
            raise FactProblem(f"its frontmatter is nested deeper than {MAX_DEPTH}", "Flatten it.")
        return depth + 1
    return depth - 1 if isinstance(event, yaml.CollectionEndEvent) else depth


def _where(error: Exception) -> str:
    mark = getattr(error, "problem_mark", None)
    return "" if mark is None else f" (line {mark.line + 2})"


# --- writing ---------------------------------------------------------------------------------------------

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
    bare = text[:1].isalpha() and text == text.strip() and text.isprintable() and _fast_value(text) == text
    return text if bare and text.lower() not in _RESERVED else _quoted(text)


def _item(text: str) -> str:
    bare = text[:1].isalpha() and text == text.strip() and text.isprintable() and _LIST_ITEM.fullmatch(text)
    return text if bare and text.lower() not in _RESERVED else _quoted(text)


def _quoted(text: str) -> str:
    return '"' + "".join(_escaped(char) for char in text) + '"'


def _escaped(char: str) -> str:
    if char in '"\\':
        return "\\" + char
    if char.isprintable():
        return char
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
    plain = _LINE_END.sub("\n", body.lstrip("\ufeff")).lstrip("\n").rstrip()
    new = plain.replace("\n", parts.eol)
    head = text[: parts.body]
    if not parts.closed and plain.split("\n", 1)[0].rstrip(" \t") == "---":
        head, gap = f"{parts.bom}---{parts.eol}---{parts.eol}", parts.eol
    return head + gap + new + tail


def _keep_ends(text: str) -> list[str]:
    lines, at = [], 0
    for end in _LINE_END.finditer(text):
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
    found = _LINE_END.search(line)
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


def lookup(mapping: Mapping[str, Value], *names: str) -> Value | None:
    """The first of these keys: at the top level, else below `metadata`; None where there is none."""
    for name in names:
        if name in mapping:
            return mapping[name]
    metadata = mapping.get("metadata")
    if isinstance(metadata, dict):
        for name in names:
            if name in metadata:
                return metadata[name]
    return None
