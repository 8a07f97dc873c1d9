"""Codex's memory files as facts with the directories they belong to. Pure.

The formats, as Codex 0.171.0 asks its model to write them: MEMORY.md is a row of `# Task Group:` blocks with
`applies_to: cwd=…;`, tasks that name their rollouts (`cwd=…`), and lists of preferences and knowledge;
memory_summary.md has the user's preferences and an index; a rollout summary or a raw memory begins with
`key: value` lines, among them `cwd`. A model writes them, so everything here is read leniently.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice

MOST_DIRECTORIES = 32
"""Working directories taken from one item."""

NOTE_KEYS = frozenset(("cwd", "directory", "thread_id", "created_at", "updated_at"))
HEAD_KEYS = NOTE_KEYS | {
    *("rollout_path", "rollout_summary_file", "git_branch", "description", "keywords"),
    *("task", "task_group", "task_outcome"),
}
"""Keys that a head may have without `---` lines around it; any other line is text."""

_HEADING = re.compile(r"^(#{1,6})[ \t]+(.*)$")
_BULLET = re.compile(r"^(\s*)(?:[-*+]|\d{1,3}[.)])\s+(.*)$")
_LABEL = re.compile(r"^([A-Za-z][\w ,'/()-]{2,60}):\s*(.*)$")
_KEY = re.compile(r"^([A-Za-z_]{2,30}):\s?(.*)$")
_TASK_REFERENCES = re.compile(r"(?:\s*\[Task \d+\])+\s*$")
_TASK_REFERENCE = re.compile(r"\[Task (\d+)\]")
_TASK = re.compile(r"^Task (\d+)\b")
_CWD = re.compile(r"\bcwd\s*[=:]\s*")
_CWD_ENDS = re.compile(r";|, ?\w+=|\)\s|\n")
_SEVERAL = re.compile(r"[,(`'\"]|\b(?:and|or|family)\b|\s[/~]")
_PATH_WORD = re.compile(r"(?<![\w/.~])(?:~|/)[^\s,;()`'\"<>]*")
_THREAD = re.compile(r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b")
_ROUTING = re.compile(
    r"^(?:rollout_summary_files|extension_resource_files|keywords|references?)\b", re.IGNORECASE
)
_HISTORY = re.compile(r"^(?:key steps|references?|outcome|rollout context|task(?:_\w+)?)$", re.IGNORECASE)
_ONE_PARAGRAPH = re.compile(r"^(?:outcome|rollout context|task(?:_\w+)?)$", re.IGNORECASE)
_LEARNT = re.compile(
    r"^(?:preference signals|reusable knowledge|failures and how to do differently)$", re.IGNORECASE
)
_PLACEHOLDERS = ("none", "n/a", "na", "nothing", "unknown", "empty")

Directories = tuple[str, ...]
Lookup = Callable[[str], str | None]
"""From a thread id to the working directory of that thread."""


@dataclass(frozen=True, slots=True)
class Item:
    """One fact of a file. `directories` are absolute paths as written (`~` too); () means none is known."""

    text: str
    title: str = ""
    directories: Directories = ()


@dataclass(slots=True)
class _Section:
    """A heading with the lines below it, up to the next heading."""

    level: int
    title: str
    lines: list[str] = field(default_factory=list)


def handbook(text: str, lookup: Lookup) -> list[Item]:
    """The items of a MEMORY.md, group by group."""
    groups: list[list[_Section]] = [[]]
    for section in _sections(text):
        if section.level == 1:
            groups.append([])
        groups[-1].append(section)
    return [item for group in groups for item in _group(group, lookup)]


def summary(text: str, lookup: Lookup) -> list[Item]:
    """The items of a memory_summary.md: what holds everywhere, and the learnings in its index."""
    items: list[Item] = []
    scope: Directories = ()
    in_index = False
    for section in _sections(text.removeprefix("v1\n")):
        if section.level <= 2:
            in_index = section.title.lower().startswith("what's in memory")
            scope = ()
        elif in_index:
            scope = _paths(section.title) or (scope if section.level > 3 else ())
        if in_index:
            items += _learnings(section.lines, scope, lookup)
        else:
            items += _facts(section, lambda _text: ())
    return items


def note(text: str, lookup: Lookup) -> list[Item]:
    """The items of a note that the user asked Codex to keep: its list items or sections, else the whole."""
    head, body = _head(text, NOTE_KEYS)
    named = _directories_of(head, text, lookup)
    return [item for section in _sections(body) for item in _facts(section, lambda _text: named)]


def session(text: str, lookup: Lookup, thread: str = "") -> list[Item]:
    """The items of a rollout summary or a raw memory: what was learnt, not what was done."""
    head, body = _head(text)
    named = _directories_of(head, "", lookup) or _found(lookup(thread or head.get("thread_id", "")))
    sections = _sections(body)
    return [item for section in sections for item in _facts(section, lambda _text: named, skip=_HISTORY)]


def updated_at(text: str) -> str:
    """The `updated_at` of a rollout summary's head, "" where there is none."""
    return _head(text)[0].get("updated_at", "")


def _group(sections: list[_Section], lookup: Lookup) -> Iterator[Item]:
    if not sections:
        return
    applies = " ".join(line for line in sections[0].lines if line.lower().startswith("applies_to:"))
    own = _cwds(applies)
    tasks: dict[str, Directories] = {}
    current = ""
    for section in sections:
        match = _TASK.match(section.title)
        current = match[1] if match else (current if section.level > 2 else "")
        if current and _ROUTING.match(section.title):
            found = [path for line in section.lines for path in _cwds(line) or _by_thread(line, lookup)]
            tasks[current] = tuple(dict.fromkeys((*tasks.get(current, ()), *found)))
    every = tuple(dict.fromkeys(path for paths in tasks.values() for path in paths))

    def where(text: str) -> Directories:
        named = [path for number in _TASK_REFERENCE.findall(text) for path in tasks.get(number, ())]
        return _few(own or tuple(dict.fromkeys(named)) or every)

    head = sections[0]
    head.lines = [line for line in head.lines if not line.lower().startswith(("applies_to:", "scope:"))]
    for section in sections:
        if not _ROUTING.match(section.title):
            yield from _facts(section, where)


def _facts(
    section: _Section, where: Callable[[str], Directories], skip: re.Pattern[str] = _ROUTING
) -> Iterator[Item]:
    """One fact a list item; a part of a section without a list is one fact, under its heading."""
    for label, lines in _parts(section.lines):
        if label and skip.match(label):
            continue
        if any(_BULLET.match(line) for line in lines):
            for raw in _list_items(lines):
                text = _without_references(raw)
                if _says_something(text):
                    yield Item(text, "", where(raw))
        else:
            raw = "\n".join(lines).strip()
            text = _without_references(raw)
            if _says_something(text):
                yield Item(text, label or _plain_title(section.title), where(raw))


def _parts(lines: list[str]) -> Iterator[tuple[str, list[str]]]:
    """Lines under `Label:` lines; a label stands at the start of a line and a list or text follows."""
    label = ""
    part: list[str] = []
    for line in lines:
        match = _LABEL.match(line)
        if match and (not match[2] or _HISTORY.match(match[1]) or _LEARNT.match(match[1])):
            yield label, part
            label, part = match[1], [match[2]] if match[2] else []
        elif not line.strip() and _ONE_PARAGRAPH.match(label):
            yield label, part
            label, part = "", []
        else:
            part.append(line)
    yield label, part


def _list_items(lines: list[str]) -> Iterator[str]:
    """Each top-level list item with what hangs below it; text before the list is an item of its own."""
    indents = [len(match[1].expandtabs(4)) for line in lines if (match := _BULLET.match(line))]
    outermost = min(indents, default=0)
    current: list[str] = []
    for line in lines:
        match = _BULLET.match(line)
        if match and len(match[1].expandtabs(4)) <= outermost + 1:
            if current:
                yield "\n".join(current).strip()
            current = [match[2]]
        elif line.strip() or current:
            current.append(line)
    if current:
        yield "\n".join(current).strip()


def _learnings(lines: list[str], scope: Directories, lookup: Lookup) -> Iterator[Item]:
    """The `learnings:` of an index topic, where it is known to which directory the topic belongs."""
    for raw in _list_items(lines):
        named = _few(_cwds(raw) or scope or _by_thread(raw, lookup))
        first = raw.partition("\n")[0]
        topic = "" if "rollout_summaries/" in first else first.partition(":")[0].strip()
        for line in raw.splitlines()[1:]:
            match = _BULLET.match(line)
            if named and match and match[2].lower().startswith("learnings:"):
                text = match[2].partition(":")[2].strip()
                if _says_something(text):
                    yield Item(text, topic, named)


def _sections(text: str) -> list[_Section]:
    """The headings of a markdown text in order; text before the first one has level 0."""
    sections = [_Section(0, "")]
    fence = ""
    for line in text.splitlines():
        mark = line.lstrip()[:3]
        if fence or mark in ("```", "~~~"):
            fence = "" if fence and mark == fence else (fence or mark)
        elif match := _HEADING.match(line):
            sections.append(_Section(len(match[1]), match[2].rstrip("# \t")))
            continue
        sections[-1].lines.append(line)
    return sections


def _head(text: str, known: frozenset[str] = HEAD_KEYS) -> tuple[dict[str, str], str]:
    """The `key: value` lines that a text begins with, and the rest. Between `---` lines any key counts."""
    lines = text.splitlines()
    fence = next((at for at, line in enumerate(lines[1:], start=1) if line.strip() == "---"), 0)
    if fence and lines[0].strip() == "---":
        matches = [match for line in lines[1:fence] if (match := _KEY.match(line))]
        return {match[1].lower(): match[2].strip() for match in matches}, "\n".join(lines[fence + 1 :])
    keys: dict[str, str] = {}
    for line in lines:
        match = _KEY.match(line)
        if not match or match[1].lower() not in known:
            break
        keys.setdefault(match[1].lower(), match[2].strip())
    return keys, "\n".join(lines[len(keys) :])


def _directories_of(head: dict[str, str], text: str, lookup: Lookup) -> Directories:
    named = _whole_path(head.get("cwd", "")) or _whole_path(head.get("directory", ""))
    return named or _found(lookup(head.get("thread_id", ""))) or _few(_cwds(text))


def _cwds(text: str) -> Directories:
    """The directories behind each `cwd=`: one whole path, blanks and all, or every path among words."""
    found: dict[str, None] = {}
    for match in islice(_CWD.finditer(text), MOST_DIRECTORIES):
        value = _CWD_ENDS.split(text[match.end() : match.end() + 4096], maxsplit=1)[0].strip().rstrip(").")
        for path in _paths(value) if _SEVERAL.search(value) else _whole_path(value):
            found[path] = None
    return tuple(found)


def _paths(value: str) -> Directories:
    """The absolute paths in a few words; blanks are part of one only where it is quoted."""
    quoted = re.findall(r"[`'\"]((?:/|~)[^`'\"]*)[`'\"]", value)
    plain = _PATH_WORD.findall(re.sub(r"[`'\"](?:/|~)[^`'\"]*[`'\"]", " ", value))
    cleaned = (path.rstrip(".:*").rstrip("/") or "/" for path in (*quoted, *plain))
    return tuple(dict.fromkeys(path for path in cleaned if path.startswith(("/", "~/")) and path != "/"))


def _whole_path(value: str) -> Directories:
    """A value that is one path, with blanks in it or not."""
    path = value.strip().strip("`'\"")
    return (path.rstrip("/") or "/",) if path.startswith(("/", "~/")) and "\0" not in path else ()


def _by_thread(text: str, lookup: Lookup) -> Directories:
    return tuple(dict.fromkeys(path for thread in _THREAD.findall(text) for path in _found(lookup(thread))))


def _found(path: str | None) -> Directories:
    return () if path is None else (path,)


def _few(directories: Iterable[str]) -> Directories:
    return tuple(directories)[:MOST_DIRECTORIES]


def _without_references(text: str) -> str:
    """A text without the `[Task 1]` at its end; only so many that a hostile text costs nothing."""
    head, tail = text[:-300], text[-300:]
    return (head + _TASK_REFERENCES.sub("", tail)).strip()


def _says_something(text: str) -> bool:
    return any(map(str.isalnum, text)) and text.strip(" .-*()`").lower() not in _PLACEHOLDERS


def _plain_title(title: str) -> str:
    return re.sub(r"^(?:Task Group|Task \d+[^:]*):\s*", "", title).strip()
