"""Frontmatter of markdown files: find it and read it.

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
    from yaml.nodes import Node

MAX_HEAD = 64 * 1024
"""Characters of a frontmatter; a larger one is refused."""

MAX_DEPTH = 20
"""Collections within one another, as the store's rules say."""

Value = str | list["Value"] | dict[str, "Value"]

_KEY_LINE = re.compile(r"( *)([A-Za-z_][A-Za-z0-9_-]{0,99}):(?: +(.*))?")
LIST_ITEM = re.compile(r"\w[\w./+ -]*")
_INDICATORS = frozenset("-?:,[]{}#&*!|>'\"%@` ")
_ENTRY_KEYS = frozenset({"id", "type", "created_at", "updated_at", "source"})
_UNQUOTED_TAGS = re.compile(r"^tags: \[([^\"'\r\n\x00-\x1f]*)\](?=\r|\n|\Z)", re.MULTILINE)
LINE_END = re.compile(r"\r\n|\r|\n")


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
    found = LINE_END.search(text)
    eol = found.group() if found else "\n"
    none = Parts(bom, len(bom), len(bom), len(bom), closed=False, opened=False, eol=eol)
    if found is None or text[len(bom) : found.start()].rstrip(" \t") != "---":
        return none
    start = at = found.end()
    while at < len(text):
        line_end = LINE_END.search(text, at)
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
    if fast is None:
        fast = _memory_bridges(head)
    return load_mapping(head) if fast is None else fast


def fast_mapping(head: str) -> dict[str, Value] | None:
    """The keys, read by hand; None where anything is less than plain (equal to `load_mapping` otherwise)."""
    top: dict[str, Value] = {}
    block: dict[str, Value] | None = None  # the mapping being filled one level down
    indent = 0
    last = ""  # the key whose value is still open to a block below it
    for line in LINE_END.split(head):
        if not line:
            continue
        match = _KEY_LINE.fullmatch(line)
        if match is None or not line.isprintable():
            return None
        spaces, key, raw = len(match[1]), match[2], (match[3] or "").rstrip(" ")
        value = fast_value(raw)
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


def _memory_bridges(head: str) -> dict[str, Value] | None:
    """The keys of an entry as memory-bridge 0.1 writes it; None for any other.

    It puts tags between brackets as they are, also those with a colon or a bracket, which is no YAML then.
    """
    tags = _UNQUOTED_TAGS.search(head)
    if tags is None:
        return None
    others = fast_mapping(head[: tags.start()] + "tags:" + head[tags.end() :])
    if others is None or not others.keys() >= _ENTRY_KEYS:
        return None
    named = (tag.strip(" ") for tag in tags[1].split(","))
    return {**others, "tags": [tag for tag in named if tag]}


def fast_value(raw: str) -> Value | None:
    """A value on one line, read by hand; None where it needs libyaml."""
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
    return list(items) if all(LIST_ITEM.fullmatch(item) for item in items) else None


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
        root = yaml.compose(head, Loader=loader)
    except yaml.YAMLError as error:
        raise FactProblem(
            f"its frontmatter is not valid YAML{_where(error)}", "Mend the frontmatter, or quote the value."
        ) from error
    loaded = {} if root is None else _built(root)
    if not isinstance(loaded, dict):
        raise FactProblem("its frontmatter is not a list of keys", "Write `key: value` lines, or remove it.")
    return loaded


def _built(node: Node) -> Value:
    """A node's value, scalars as text. A key that stands twice could hide a mark: it is refused."""
    import yaml

    if isinstance(node.value, str):
        return node.value
    if isinstance(node, yaml.SequenceNode):
        return [_built(item) for item in node.value]
    found: dict[str, Value] = {}
    for key_node, value_node in node.value:
        key = _built(key_node)
        if not isinstance(key, str):
            raise FactProblem("its frontmatter has a list or a block as a key", "Use words as keys.")
        if key in found:
            raise FactProblem(f"its frontmatter has the key {one_line(key)[:40]} twice", "Leave one of them.")
        found[key] = _built(value_node)
    return found


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


def one_line(value: Value | None) -> str:
    """A scalar as one line of text; lists and mappings count as nothing."""
    return " ".join(value.split()) if isinstance(value, str) else ""


def uncommented(value: Value | None) -> str:
    """A scalar without the comment that Claude Code makes a part of it."""
    return one_line(value).split(" #", 1)[0].strip()
