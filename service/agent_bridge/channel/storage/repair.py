"""A damaged SQLite file is found at start and put aside, never deleted and never written again."""

from __future__ import annotations

import os
import sqlite3
import threading
from datetime import UTC, datetime
from pathlib import Path

from agent_bridge.channel.storage.trouble import UnavailableError

CHECK_S = 2.0
"""Seconds that the check at start may take: it reads the whole file, 600 MB/s from memory."""

_MARK = ".damaged-"
_SIDES = ("", "-wal", "-shm")


def damage(connection: sqlite3.Connection, *, seconds: float | None) -> str | None:
    """What SQLite finds wrong with the file, None for nothing found.

    `seconds` bounds a quick check, of which a sound beginning then counts as sound; None asks for the full
    check, however long it takes. Raises sqlite3.Error for anything but damage.
    """
    try:
        if seconds is None:
            answer = connection.execute("PRAGMA integrity_check(1)").fetchone()[0]
        else:
            answer = _bounded(connection, seconds)
    except sqlite3.DatabaseError as error:
        if getattr(error, "sqlite_errorname", "").startswith(("SQLITE_CORRUPT", "SQLITE_NOTADB")):
            return str(error)
        raise
    return None if answer == "ok" else str(answer)


def put_aside(path: Path) -> Path:
    """Rename a database and what belongs to it to a dated name, and return that.

    Must be called with no connection open: closing the last one deletes the log by its name. Raises
    UnavailableError.
    """
    stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%SZ")
    target = path.with_name(f"{path.name}{_MARK}{stamp}")
    number = 1
    while target.exists():
        number += 1
        target = path.with_name(f"{path.name}{_MARK}{stamp}-{number}")
    try:
        for side in _SIDES:
            if os.path.lexists(f"{path}{side}"):
                os.rename(f"{path}{side}", f"{target}{side}")  # noqa: PTH104 - names with a suffix behind
    except OSError as error:
        raise UnavailableError(
            "The damaged message database can't be put aside",
            path=path,
            detail=error.strerror or str(error),
            remedy="Move it away by hand.",
        ) from error
    return target


def kept_aside(path: Path) -> tuple[str, ...]:
    """The databases that were put aside here and are still there, oldest first."""
    try:
        names = sorted(entry for entry in os.listdir(path.parent) if entry.startswith(path.name + _MARK))  # noqa: PTH208
    except OSError:
        return ()
    return tuple(str(path.with_name(name)) for name in names if not name.endswith(_SIDES[1:]))


def _bounded(connection: sqlite3.Connection, seconds: float) -> str:
    # Not a progress handler: until SQLite 3.41 it isn't asked while the pages are walked.
    done = threading.Event()
    alarm = threading.Thread(target=_interrupt, args=(connection, seconds, done), daemon=True)
    alarm.start()
    try:
        return str(connection.execute("PRAGMA quick_check(1)").fetchone()[0])
    except sqlite3.OperationalError as error:
        if getattr(error, "sqlite_errorname", "") == "SQLITE_INTERRUPT":
            return "ok"
        raise
    finally:
        done.set()
        alarm.join()


def _interrupt(connection: sqlite3.Connection, seconds: float, done: threading.Event) -> None:
    """After `seconds`, and again: a call before the statement has begun has no effect."""
    while not done.wait(seconds):
        connection.interrupt()
        seconds = 0.005
