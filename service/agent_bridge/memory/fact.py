"""A fact: one memory, one markdown file. Pure: bytes in, values out.

Formats read: our own, Claude Code's (`name`, `description`, `metadata.type`, `metadata.originSessionId`,
`metadata.modified`; 2.1.332 moves unknown keys below `metadata` and turns a comment behind a value into part
of the value), memory-bridge 0.1's entries, and markdown without frontmatter.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from agent_bridge.memory import frontmatter, frontmatter_edit
from agent_bridge.memory.frontmatter import FactProblem, Value, lookup, one_line, uncommented
from agent_bridge.memory.secrets import find_secrets
from agent_bridge.memory.similarity import normalise, text_hash
from agent_bridge.memory.times import iso, timestamp
from agent_bridge.memory.visible import shortened

__all__ = [
    "MAX_BYTES",
    "EmptyFact",
    "Fact",
    "FactProblem",
    "new_fact_bytes",
    "order_key",
    "parse_fact",
    "replace_body",
    "set_keys",
    "with_heading",
]

MAX_BYTES = 1024 * 1024
"""A larger file is not read."""

TITLE_LENGTH = 60
HOOK_LENGTH = 100

_TYPE_ORDER = {"feedback": 0, "user": 1, "project": 2, "memory": 2, "decision": 3, "reference": 4}
_REVERSED = str.maketrans("0123456789", "9876543210")  # times of one format then sort newest first
_FALSE = frozenset({"false", "no", "off", "0", "n"})
_TRUE = frozenset({"true", "yes", "on", "1", "y"})
_HEADING = re.compile(r" {0,3}#{1,6}[ \t]+(\S.*)")
_UNCLOSED_PRIVATE = re.compile(
    r"^[ ]*(?:private[ ]*:|type[ ]*:[ ]*[\"']?user\b)", re.MULTILINE | re.IGNORECASE
)
_BAD_ID = re.compile(r"[\x00-\x1f\x7f\[\]<>`\u2028\u2029]")


class EmptyFact(FactProblem):
    """Nothing stands in the file: no fact, and nothing to report either."""


@dataclass(frozen=True, slots=True)
class Fact:
    """One memory. Texts have LF line ends; times are ISO 8601 UTC with milliseconds, or empty.

    `path` is POSIX, relative to the store. `private` is the file's own mark (`private`, or type `user`); what
    was judged earlier is the store's business. `native`: Claude Code wrote the file's frontmatter last.
    `secrets` names the kinds of credentials found anywhere in the file. `text_hash` is of the normalised
    body, `digest` of the file's bytes (both SHA-256, hex).
    """

    path: str
    id: str
    title: str
    hook: str
    body: str
    type: str = "project"
    tags: tuple[str, ...] = ()
    pinned: bool = False
    private: bool = False
    source: str = ""
    created_at: str = ""
    updated_at: str = ""
    origin_session: str = ""
    name: str = ""
    description: str = ""
    native: bool = False
    secrets: tuple[str, ...] = ()
    text_hash: str = ""
    digest: str = ""


def parse_fact(path: str, data: bytes) -> Fact:
    """Read a fact out of a file's bytes; `path` is relative to the store. Raises FactProblem, EmptyFact."""
    text = decode(data)
    parts = frontmatter.split(text)
    keys = frontmatter.read_mapping(text[parts.start : parts.end])
    body = plain_body(text[parts.body :])
    name = one_line(lookup(keys, "name"))
    description = one_line(lookup(keys, "description"))
    body = body or description
    if not body:
        raise EmptyFact("the file is empty")
    if has_conflict(body):
        raise FactProblem("it holds Git's conflict markers", "Resolve the conflict.")
    kind = _kind(lookup(keys, "type")) or ("decision" if path.startswith("decisions/") else "project")
    unclosed_private = parts.opened and not parts.closed and bool(_UNCLOSED_PRIVATE.search(body[:4096]))
    metadata = keys.get("metadata")
    return Fact(
        path=path,
        id=_id(lookup(keys, "id"), path),
        title=_title(body, name),
        hook=_hook(body, description),
        body=body,
        type=kind,
        tags=_tags(lookup(keys, "tags")),
        pinned=_word(lookup(keys, "pinned")) in _TRUE,
        private=is_private(lookup(keys, "private", "Private", "PRIVATE"), kind) or unclosed_private,
        source=one_line(lookup(keys, "source")),
        created_at=timestamp(lookup(keys, "created_at", "createdAt")),
        updated_at=max(
            timestamp(lookup(keys, "updated_at", "updatedAt")), timestamp(lookup(keys, "modified"))
        ),
        origin_session=one_line(lookup(keys, "originSessionId", "origin_session_id")),
        name=name,
        description=description,
        native=isinstance(metadata, dict) and metadata.get("node_type") == "memory",
        secrets=tuple(dict.fromkeys(secret.kind for secret in find_secrets(f"{path}\n{text}"))),
        text_hash=text_hash(body),
        digest=hashlib.sha256(data).hexdigest(),
    )


OrderKey = tuple[bool, int, str, str, str]


def order_key(fact: Fact) -> OrderKey:
    """Sorts facts by importance: pinned, type, newest first, id. Never the file's own time."""
    newest = max(fact.updated_at, fact.created_at).translate(_REVERSED)
    return (not fact.pinned, _TYPE_ORDER.get(fact.type, 5), newest or "~", fact.id, fact.path)


def new_fact_bytes(
    text: str,
    *,
    fact_id: str,
    now: datetime,
    type: str = "project",  # noqa: A002 - the key's own name
    tags: tuple[str, ...] = (),
    source: str = "cli",
    private: bool = False,
    pinned: bool = False,
    title: str | None = None,
    origin: str = "",
) -> bytes:
    """A new fact's file in Claude Code's shape: our keys below `metadata`, where Claude would move them.

    `origin`: the file that the text was found in. Half a surrogate pair, which some program's JSON may bring,
    becomes `?`.
    """
    lines = ["---", *([f"name: {frontmatter_edit.scalar(title)}"] if title else []), "metadata:"]
    values: list[tuple[str, object]] = [("type", type), ("id", fact_id)]
    values += [("tags", tags)] if tags else []
    values += [("pinned", True)] if pinned else []
    values += [("private", True)] if private else []
    values += [("source", source), *([("origin", origin)] if origin else []), ("created_at", iso(now))]
    lines += [f"  {key}: {frontmatter_edit.scalar(value)}" for key, value in values]
    return ("\n".join([*lines, "---", "", plain_body(text)]) + "\n").encode("utf-8", "replace")


def set_keys(data: bytes, changes: Mapping[str, object]) -> bytes:
    """The file with these frontmatter keys set (None removes); no other byte changes. Raises FactProblem."""
    return frontmatter_edit.set_keys(decode(data), changes).encode()


def replace_body(data: bytes, text: str) -> bytes:
    """The file with another body; frontmatter, line ends, BOM and final newline stay. Raises FactProblem."""
    return frontmatter_edit.replace_body(decode(data), text).encode()


def with_heading(body: str, title: str) -> str | None:
    """The body with another text in the heading that is its title; None where it has none."""
    lines = body.split("\n")
    at = _heading_line(lines)
    if at is None:
        return None
    marks = lines[at][: len(lines[at]) - len(lines[at].lstrip(" #\t"))].rstrip()
    return "\n".join([*lines[:at], f"{marks} {title}", *lines[at + 1 :]])


def decode(data: bytes) -> str:
    """The file's text, BOM included. Raises FactProblem for what is no UTF-8 text of at most 1 MiB."""
    if len(data) > MAX_BYTES:
        raise FactProblem("it is larger than 1 MiB", "Split it, or move it out of the store.")
    if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
        raise FactProblem("it is UTF-16 text", "Save it as UTF-8.")
    if b"\0" in data:
        raise FactProblem("it holds NUL bytes (a binary file, or UTF-16)", "Save it as UTF-8 text.")
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise FactProblem(f"it is not UTF-8 text (byte {error.start})", "Save it as UTF-8.") from error


def plain_body(text: str) -> str:
    """A body: LF line ends, no empty lines before, no white space behind."""
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    return text.lstrip("\ufeff\n").rstrip()


def has_conflict(body: str) -> bool:
    """Git's three marker lines, in their order."""
    at = -1
    for mark in ("\n<<<<<<< ", "\n=======\n", "\n>>>>>>> "):
        at = f"\n{body}".find(mark, at + 1) if mark in body or at < 0 else -1
        if at < 0:
            return False
    return True


def _word(value: Value | None) -> str:
    return uncommented(value).casefold()


def is_private(value: Value | None, kind: str) -> bool:
    """Whatever is not clearly false is private; without a mark only type `user` is."""
    return kind.casefold() == "user" if value is None else _word(value) not in _FALSE


def _kind(value: Value | None) -> str:
    if isinstance(value, list) and len(value) == 1:
        value = value[0]
    text = uncommented(value)[:40]
    return text.casefold() if text.casefold() in _TYPE_ORDER else text


def _id(value: Value | None, path: str) -> str:
    text = uncommented(value)
    if text and len(text) <= 200 and not _BAD_ID.search(text):
        return text
    return _BAD_ID.sub("_", path.removesuffix(".md"))


def _tags(value: Value | None) -> tuple[str, ...]:
    if isinstance(value, str):
        items: list[Value] = list(uncommented(value).removeprefix("[").removesuffix("]").split(","))
    else:
        items = value if isinstance(value, list) else []
    named = (one_line(item).strip("\"'") for item in items)
    return tuple(dict.fromkeys(tag for tag in named if tag))


def _title(body: str, name: str) -> str:
    lines = body.split("\n")
    at = _heading_line(lines)
    if at is not None and (heading := _HEADING.fullmatch(lines[at])) is not None:
        words = heading[1].split()
        closing = len(words) > 1 and not words[-1].strip("#")
        return shortened(" ".join(words[:-1] if closing else words), 2 * TITLE_LENGTH)
    return shortened(name, 2 * TITLE_LENGTH) or shortened(_first_line(body), TITLE_LENGTH)


def _heading_line(lines: list[str]) -> int | None:
    """Where the first heading stands that isn't in a fenced block."""
    fenced = False
    for at, line in enumerate(lines):
        if line.lstrip().startswith(("```", "~~~")):
            fenced = not fenced
        if not fenced and _HEADING.fullmatch(line):
            return at
    return None


def _first_line(body: str) -> str:
    for line in body.split("\n"):
        bare = re.sub(r"^[ \t]*(?:[-*+>][ \t]+)?", "", line).strip()
        if bare:
            return bare
    return ""


def _hook(body: str, description: str) -> str:
    hook = shortened(description or _first_sentence(body), HOOK_LENGTH)
    return "" if hook == normalise(body) else hook


def _first_sentence(body: str) -> str:
    paragraph: list[str] = []
    fenced = False
    for line in body.split("\n"):
        fence = line.lstrip().startswith(("```", "~~~"))
        fenced = fenced != fence
        if fence or fenced or not line.strip() or _HEADING.fullmatch(line):
            if paragraph:
                break
            continue
        paragraph.append(line.strip())
    text = re.sub(r"^(?:[-*+>][ \t]+)", "", " ".join(paragraph))
    end = re.search(r"[.!?](?=\s)", text)
    return text[: end.end()] if end else text


def is_fact_name(name: str) -> bool:
    """Whether a file of this name (no directories) can be a fact."""
    return name.endswith(".md") and not name.startswith(".") and name != "MEMORY.md" and name != ".md"
