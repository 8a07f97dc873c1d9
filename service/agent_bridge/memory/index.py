"""Render MEMORY.md, which Claude Code loads at each start, and index.json, for memory-bridge's readers.

MEMORY.md has one line a fact, the most important first, then whatever else people wrote into the file. Which
lines are ours is told by the file itself: a comment behind the index holds a short hash of each. Claude Code
2.1.332 loads 200 lines or 25,000 characters of it and shows no comments to its model.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import lru_cache

from agent_bridge.memory.fact import Fact
from agent_bridge.memory.visible import INVISIBLE, one_line

MAX_LINES = 200
MAX_CHARACTERS = 25_000
"""As JavaScript counts them: UTF-16 units."""

LEAST_LINES = 20
LEAST_CHARACTERS = 2_500
"""The index gets this much also where other text fills the file."""

DEFAULT_GRACE = 30.0

_ENTRY = re.compile(
    r"[ \t]*[-*+][ \t]+\[(?:\\.|[^\\\]]|\](?!\())*\]"
    r"\((?:<(?P<angled>[^<>]*)>|(?P<bare>[^()<>\s]*(?:\([^()\s]*\)[^()<>\s]*)*))\).*"
)
_LINK_UNSAFE = re.compile(f"[{INVISIBLE}%<>\t\n\\\\\x85\u2028\u2029]")
_ESCAPED = re.compile("(?:%[0-9A-Fa-f]{2})+")
_TOKENS = re.compile(r"<!-- agent-bridge:index ((?:[A-Za-z0-9_-]{4})*) -->\s*")
_CONFLICT = re.compile(r"(?:<{7}|={7}|>{7}|\|{7})(?: .*)?")
_TOKEN_LENGTH = 4  # 24 bits: a person's line is taken for ours once in 80,000 full files
_FRAME = 250  # characters of the comment, the line that tells what was left out, and the empty line
_HOOK_MARK = " — "


@dataclass(frozen=True, slots=True)
class IndexText:
    """MEMORY.md's text; `pending` is when to look again for lines that Claude may yet add (UTC), or None.

    `left_out` counts the facts for which there was no room.
    """

    text: str
    pending: datetime | None
    left_out: int = 0


def render_index(
    current: str | None,
    facts: Sequence[Fact],
    *,
    now: datetime,
    grace: float = DEFAULT_GRACE,
    unreadable: frozenset[str] = frozenset(),
) -> IndexText:
    """MEMORY.md for `facts` (in order of importance), given its `current` text (None: there is no file).

    A line is ours if we wrote it or if it is what Claude generates; any other line for a fact wins over ours.
    Lines of facts that are gone are dropped, theirs too, except for paths in `unreadable`. Other text is kept
    after the index. For a fact that Claude wrote within the last `grace` seconds nothing is added or changed.
    Facts with secrets get no line. Rendering the result again changes nothing.
    """
    shown = [fact for fact in facts if not fact.secrets]
    found = _read(current or "", {fact.path: fact for fact in shown}, unreadable)
    room = _Room(found)
    lines: list[str] = []
    tokens: list[str] = []
    pending: datetime | None = None
    left_out = 0
    for fact in shown:
        theirs = found.theirs.get(fact.path)
        if theirs:
            lines += theirs
            tokens.append(_token(f"path {fact.path}"))
            continue
        if room.full:
            left_out += 1
            continue
        line = _line(fact)
        until = _written(fact, now, grace)
        if until:
            pending = until if pending is None else min(pending, until)
            line = found.ours.get(fact.path, "")
            if not line:
                continue
        if not room.takes(line):
            left_out += 1
            continue
        lines.append(line)
        tokens.append(_token(line))
    if left_out:
        lines.append(_more(left_out))
        tokens.append(_token(lines[-1]))
    return IndexText(_joined(lines, tokens, found.text), pending, left_out)


def index_json(facts: Iterable[Fact]) -> bytes:
    """index.json in memory-bridge's schema, version 1: oldest first; facts with secrets are not in it."""
    entries = [_json_entry(fact) for fact in facts if not fact.secrets]
    entries.sort(key=lambda entry: (entry["createdAt"], entry["id"]))
    text = json.dumps({"version": 1, "entries": entries}, indent=2, ensure_ascii=False)
    return f"{text}\n".encode("utf-8", "replace")


@dataclass(slots=True)
class _Found:
    """What stands in the file: other people's lines and our own, by the fact's path, and the other text."""

    text: str
    theirs: dict[str, list[str]] = field(default_factory=dict)
    ours: dict[str, str] = field(default_factory=dict)


class _Room:
    """How much the index may still grow; the lines of others and the kept text count first."""

    def __init__(self, found: _Found) -> None:
        theirs = [line for lines in found.theirs.values() for line in lines]
        below = found.text.count("\n") + 2 if found.text else 0
        comment_and_notice = 2
        self.lines = max(MAX_LINES - below - len(theirs) - comment_and_notice, LEAST_LINES)
        used = _size(found.text) + sum(map(_cost, theirs)) + _FRAME
        self.characters = max(MAX_CHARACTERS - used, LEAST_CHARACTERS)

    @property
    def full(self) -> bool:
        """Whether no line has room any more."""
        return self.lines < 1

    def takes(self, line: str) -> bool:
        """Whether the line has room; then the room is taken."""
        if self.full or _cost(line) > self.characters:
            return False
        self.lines -= 1
        self.characters -= _cost(line)
        return True


def _read(current: str, facts: dict[str, Fact], unreadable: frozenset[str]) -> _Found:
    lines = current.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n").split("\n")
    if any(line.startswith(("<<<<<<< ", ">>>>>>> ")) for line in lines):
        lines = [line for line in lines if not _CONFLICT.fullmatch(line)]
    known: set[str] = set()
    for line in lines:
        if tokens := _TOKENS.fullmatch(line):
            known.update(re.findall(f".{{{_TOKEN_LENGTH}}}", tokens[1]))
    found = _Found("")
    kept: list[str] = []
    for line in lines:
        if _TOKENS.fullmatch(line):
            continue
        entry = _ENTRY.fullmatch(line.rstrip())
        path = _target(entry, facts) if entry else ""
        fact = facts.get(path)
        bare = line.rstrip()
        if (known and _token(bare) in known) or (fact and _is_derived(fact, bare)):
            found.ours.setdefault(path, bare)
        elif fact:
            theirs = found.theirs.setdefault(path, [])
            if bare not in theirs:
                theirs.append(bare)
        elif not (entry and path not in unreadable and _token(f"path {path}") in known):
            kept.append(line)
    found.text = "\n".join(kept).strip("\n")
    return found


def _line(fact: Fact) -> str:
    return _formatted(fact.title, fact.path, fact.hook)


@lru_cache(maxsize=4096)
def _formatted(title: str, path: str, hook: str) -> str:
    shown = re.sub(r"([\[\]])", r"\\\1", one_line(title)) or one_line(path)
    words = one_line(hook)
    return f"- [{shown}]({_link(path)}){_HOOK_MARK + words if words else ''}"


def _is_derived(fact: Fact, line: str) -> bool:
    """Whether it is what we write for the fact, or what Claude Code 2.1.332 makes without MEMORY.md."""
    if line == _line(fact):
        return True
    stem = fact.path.rpartition("/")[2].removesuffix(".md")
    description = " ".join(fact.description.split())
    hooks = {"", f"{_HOOK_MARK}{description}"} if description else {""}
    names = {stem, fact.path.removesuffix(".md"), fact.name}
    return any(line == f"- [{name}]({fact.path}){hook}" for name in names for hook in hooks)


def _link(path: str) -> str:
    safe = _LINK_UNSAFE.sub(lambda found: _percent(found[0]), path)
    return f"<{safe}>" if set(safe) & set(" ()") else safe


def _target(entry: re.Match[str], facts: dict[str, Fact]) -> str:
    """The path that an index line names; as it stands, or with its escapes undone."""
    target = (entry["bare"] if entry["angled"] is None else entry["angled"]).removeprefix("./")
    return target if target in facts else _ESCAPED.sub(_unpercent, target)


def _percent(char: str) -> str:
    escaped = "surrogateescape" if "\udc80" <= char <= "\udcff" else "surrogatepass"
    return "".join(f"%{byte:02X}" for byte in char.encode("utf-8", escaped))


def _unpercent(found: re.Match[str]) -> str:
    return bytes.fromhex(found[0].replace("%", "")).decode("utf-8", "surrogateescape")


def _written(fact: Fact, now: datetime, grace: float) -> datetime | None:
    """Until when Claude, which has just written the fact, may be left to add its line; None: not any more."""
    if not fact.native or not fact.updated_at:
        return None
    try:
        at = datetime.fromisoformat(fact.updated_at)
    except ValueError:
        return None
    at = at if at.tzinfo else at.replace(tzinfo=UTC)
    span = timedelta(seconds=grace)
    return at + span if now - span < at < now + span else None


def _more(count: int) -> str:
    return f"- {count} more: `agent-bridge search WORDS` finds them, `agent-bridge show ID` prints one."


def _joined(lines: list[str], tokens: list[str], text: str) -> str:
    index = [*lines, f"<!-- agent-bridge:index {''.join(tokens)} -->"] if tokens else []
    parts = ["\n".join(index)] if index else []
    parts += [text] if text else []
    return "\n\n".join(parts) + "\n" if parts else ""


def _token(line: str) -> str:
    digest = hashlib.sha256(line.encode("utf-8", "surrogatepass")).digest()
    return base64.urlsafe_b64encode(digest)[:_TOKEN_LENGTH].decode()


def _cost(line: str) -> int:
    return _size(line) + 1 + _TOKEN_LENGTH


def _size(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-16-le", "surrogatepass")) // 2


def _json_entry(fact: Fact) -> dict[str, object]:
    created = fact.created_at or fact.updated_at
    return {
        "id": fact.id,
        "type": "decision" if fact.type == "decision" else "memory",
        "tags": list(fact.tags),
        "summary": fact.body.strip(),
        "createdAt": created,
        "updatedAt": fact.updated_at or created,
        "source": fact.source,
        "path": fact.path,
    }
