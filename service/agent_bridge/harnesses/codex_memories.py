"""The memories that Codex keeps by itself, for the whole user: where they lie, and all of them as items.

Source: Codex 0.171.0. Two layouts, `memories/` and `memories_v2/`, may stand side by side; what isn't
consolidated yet is in `stage1_outputs`. Nothing here changes a file of Codex's.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path

from agent_bridge import files, paths
from agent_bridge.errors import RefusedError
from agent_bridge.harnesses import codex_memory_text, codex_threads
from agent_bridge.harnesses.base import NativeItem, Site
from agent_bridge.harnesses.codex_memory_text import Item, Lookup
from agent_bridge.memory.similarity import normalise

LAYOUTS = ("memories", "memories_v2")
SUMMARY = "memory_summary.md"
HANDBOOK = "MEMORY.md"
NOTES = "extensions/ad_hoc/notes"
SESSIONS = "rollout_summaries"

FILE_LIMIT = 4 * 1024 * 1024
"""Bytes of one file."""
FILES_LIMIT = 5000
"""Files taken from one directory."""
ITEM_LIMIT = 20_000

_STAMP = re.compile(r"(\d{4}-\d{2}-\d{2})T(\d{2})-(\d{2})-(\d{2})")


def directories(home: Path) -> tuple[Path, ...]:
    """The flat directories of both layouts in which memories appear."""
    return tuple(home / layout / below for layout in LAYOUTS for below in ("", NOTES, SESSIONS))


def places(env: Mapping[str, str]) -> tuple[Path, ...]:
    """Where new memories show: the directories of both layouts, the databases of what isn't consolidated."""
    home = paths.codex_home(env)
    return (*directories(home), *codex_threads.memory_databases(Path(env.get("CODEX_SQLITE_HOME") or home)))


def holds_anything(site: Site) -> bool:
    """Whether any file with memories is there, by the names that were listed."""
    home = paths.codex_home(site.env)
    for place in directories(home):
        names = site.listings.get(str(place), ())
        top = place.name in LAYOUTS
        if any(name in (SUMMARY, HANDBOOK) if top else name.endswith(".md") for name in names):
            return True
    return False


def read(env: Mapping[str, str]) -> list[NativeItem]:
    """Every memory of both layouts, once for each directory it belongs to, in a stable order.

    Equal texts (normalised) of one directory are given once. Files that can't be read are passed over.
    """
    home = paths.codex_home(env)
    if not home.is_dir():
        return []
    databases = Path(env.get("CODEX_SQLITE_HOME") or home)
    threads = codex_threads.Threads(home, databases)
    user = paths.home(env)
    found: dict[tuple[str, Path | None], NativeItem] = {}
    for item, source, created in _all(home, databases, threads.directory):
        for directory in _places(item, user):
            if len(found) >= ITEM_LIMIT:
                return list(found.values())
            found.setdefault(
                (normalise(item.text), directory),
                NativeItem(item.text, item.title, directory, source, created),
            )
    return list(found.values())


def _all(home: Path, databases: Path, lookup: Lookup) -> Iterator[tuple[Item, Path, str]]:
    for layout in LAYOUTS:
        base = home / layout
        yield from _file(base / HANDBOOK, base, lambda text: codex_memory_text.handbook(text, lookup))
        yield from _file(base / SUMMARY, base, lambda text: codex_memory_text.summary(text, lookup))
        for path in _markdown(base / NOTES):
            yield from _file(path, base, lambda text: codex_memory_text.note(text, lookup))
        for path in _markdown(base / SESSIONS):
            yield from _file(path, base, lambda text: codex_memory_text.session(text, lookup))
    for row in codex_threads.stage1_outputs(databases):
        if row.consolidated:
            continue
        created = _iso(row.updated_at)
        for item in codex_memory_text.session(row.raw_memory or row.rollout_summary, lookup, row.thread):
            yield item, row.source, created


def _file(path: Path, base: Path, parse: Callable[[str], Iterable[Item]]) -> Iterator[tuple[Item, Path, str]]:
    try:
        image = files.read_image(path, within=Path(os.path.realpath(base)), limit=FILE_LIMIT)
    except RefusedError:
        return
    text = image.data.decode("utf-8-sig", "replace").replace("\r\n", "\n").replace("\0", "")
    created = _created(path.name, text)
    for item in parse(text):
        yield item, path, created


def _markdown(place: Path) -> list[Path]:
    try:
        names = sorted(entry.name for entry in os.scandir(place) if entry.name.endswith(".md"))
    except OSError:
        return []
    return [place / name for name in names[:FILES_LIMIT]]


def _places(item: Item, user: Path) -> list[Path | None]:
    """The item's directories as real paths; [None] for an item without any."""
    found = dict.fromkeys(_settled(written, user) for written in item.directories)
    return [*found] or [None]


def _settled(written: str, user: Path) -> Path:
    """A directory as Codex's model wrote it, `~` expanded and without words that aren't part of the path."""
    path = str(user) + written[1:] if written.startswith("~/") else written
    words = path.split(" ")
    for count in range(len(words), 0, -1):
        shorter = " ".join(words[:count]).rstrip(" .,:")
        try:
            if Path(shorter).is_dir():
                return Path(os.path.realpath(shorter))
        except (OSError, ValueError):
            continue
    return Path(os.path.normpath(path))


def _created(name: str, text: str) -> str:
    match = _STAMP.match(name)
    if match:
        return f"{match[1]}T{match[2]}:{match[3]}:{match[4]}Z"
    return codex_memory_text.updated_at(text)


def _iso(seconds: int) -> str:
    try:
        return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ") if seconds > 0 else ""
    except (OverflowError, OSError, ValueError):
        return ""
