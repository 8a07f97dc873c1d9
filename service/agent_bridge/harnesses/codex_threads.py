"""In which directory a Codex thread worked, and what its databases hold. Reads the disk, changes nothing.

Source: Codex 0.171.0. `state_5.sqlite` has `threads(id, cwd, …)`; `memories_1.sqlite` and
`memories_v2_1.sqlite` have `stage1_outputs`; the numbers are schema versions. All are in WAL mode: even a
reader's connection may write beside them, so a copy in a temporary directory is opened.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

SIZE_LIMIT = 512 * 1024 * 1024
"""Bytes: a larger database is left alone."""

ROW_LIMIT = 100_000
_TRIES = 3
_THREAD = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_STATE = re.compile(r"state_(\d+)\.sqlite")
_MEMORIES = re.compile(r"memories_(?:v2_)?(\d+)\.sqlite")


@dataclass(frozen=True, slots=True)
class Stage1:
    """One row of `stage1_outputs`: what one session taught, before it is consolidated."""

    thread: str
    raw_memory: str
    rollout_summary: str
    consolidated: bool
    updated_at: int
    """Seconds since 1970."""
    source: Path


class Threads:
    """Looks up the working directory of a thread; asks the disk once, when first needed."""

    def __init__(self, home: Path, databases: Path) -> None:
        self._home = home
        self._databases = databases
        self._known: dict[str, str] | None = None
        self._rollouts: dict[str, Path] | None = None

    def directory(self, thread: str) -> str | None:
        """The cwd of a thread, None when nothing tells."""
        thread = thread.strip().lower()
        if not _THREAD.fullmatch(thread):
            return None
        if self._known is None:
            self._known = dict(_threads(self._databases))
        found = self._known.get(thread) or self._from_rollout(thread)
        return found if found and found.startswith("/") else None

    def _from_rollout(self, thread: str) -> str | None:
        if self._rollouts is None:
            self._rollouts = dict(_rollouts(self._home))
        path = self._rollouts.get(thread)
        return None if path is None else _session_directory(path)


def stage1_outputs(databases: Path) -> list[Stage1]:
    """All rows of the newest memory database of each layout."""
    found: list[Stage1] = []
    for path in _newest(databases, _MEMORIES, per_layout=True):
        for row in _rows(path, "stage1_outputs", ("thread_id", "raw_memory", "rollout_summary")):
            found.append(
                Stage1(
                    thread=_text(row.get("thread_id")),
                    raw_memory=_text(row.get("raw_memory")),
                    rollout_summary=_text(row.get("rollout_summary")),
                    consolidated=bool(row.get("selected_for_phase2")),
                    updated_at=_number(row.get("source_updated_at")),
                    source=path,
                )
            )
    return found


def memory_databases(databases: Path) -> tuple[Path, ...]:
    """The databases that `stage1_outputs` reads, each with its write-ahead log, there or not."""
    found = _newest(databases, _MEMORIES, per_layout=True)
    return tuple(path.with_name(path.name + end) for path in found for end in ("", "-wal"))


def _threads(databases: Path) -> Iterator[tuple[str, str]]:
    for path in _newest(databases, _STATE, per_layout=False):
        for row in _rows(path, "threads", ("id", "cwd")):
            yield _text(row.get("id")).lower(), _text(row.get("cwd"))


def _rollouts(home: Path) -> Iterator[tuple[str, Path]]:
    for top in ("sessions", "archived_sessions"):
        for folder, _, names in os.walk(home / top):
            for name in names:
                thread = name.removesuffix(".jsonl")[-36:]
                if name.startswith("rollout-") and name.endswith(".jsonl") and _THREAD.fullmatch(thread):
                    yield thread, Path(folder) / name


def _session_directory(rollout: Path) -> str | None:
    """The cwd in a rollout's first line, `{"type": "session_meta", "payload": {"cwd": …}}`."""
    try:
        if not rollout.is_file():
            return None
        with rollout.open("rb") as stream:
            entry = json.loads(stream.readline(4 * 1024 * 1024))
        found = entry["payload"]["cwd"]
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None
    return found if isinstance(found, str) else None


def _newest(folder: Path, pattern: re.Pattern[str], *, per_layout: bool) -> list[Path]:
    best: dict[str, tuple[int, str]] = {}
    try:
        names = [entry.name for entry in os.scandir(folder)]
    except OSError:
        return []
    for name in names:
        if match := pattern.fullmatch(name):
            layout = name[: match.start(1)] if per_layout else ""
            best[layout] = max(best.get(layout, (-1, "")), (int(match[1]), name))
    return [folder / name for _, name in sorted(best.values(), key=lambda item: item[1])]


def _rows(path: Path, table: str, needed: tuple[str, ...]) -> list[dict[str, object]]:
    """A table's rows; [] where the database is missing, foreign, damaged, too large, or never at rest."""
    with tempfile.TemporaryDirectory(prefix="agent-bridge-") as temporary:
        for _ in range(_TRIES):
            copy = _copied(path, Path(temporary))
            if copy is None:
                continue
            try:
                with closing(sqlite3.connect(copy)) as connection:
                    connection.row_factory = sqlite3.Row
                    columns = {str(row["name"]) for row in connection.execute(f"PRAGMA table_info({table})")}
                    if not columns.issuperset(needed):
                        return []
                    rows = connection.execute(f"SELECT * FROM {table} LIMIT ?", (ROW_LIMIT,))  # noqa: S608 - ours
                    return [dict(row) for row in rows]
            except sqlite3.Error:
                continue
    return []


def _copied(path: Path, into: Path) -> Path | None:
    """A copy of a database and its log, None unless both stayed the same while they were copied."""
    log = path.with_name(path.name + "-wal")
    copy, log_copy = into / path.name, into / log.name
    for left in into.iterdir():
        left.unlink()
    before = _stamp(path), _stamp(log)
    if before[0] is None or before[0][1] + (before[1] or (0, 0))[1] > SIZE_LIMIT:
        return None
    try:
        shutil.copyfile(path, copy)
        if before[1] is not None:
            shutil.copyfile(log, log_copy)
    except OSError:
        return None
    return copy if (_stamp(path), _stamp(log)) == before else None


def _stamp(path: Path) -> tuple[int, int] | None:
    """(mtime_ns, size) of a regular file, None for anything else."""
    try:
        if not path.is_file():
            return None
        seen = path.stat()
    except OSError:
        return None
    return seen.st_mtime_ns, seen.st_size


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _number(value: object) -> int:
    return value if isinstance(value, int) else 0
