"""What a database driver raises, as errors that a person can act on."""

from __future__ import annotations

import contextlib
import os
import shutil
import sqlite3
from collections.abc import Iterator

from sqlalchemy.exc import DBAPIError, SQLAlchemyError

from agent_bridge.channel.errors import DiskFullError, StorageError
from agent_bridge.channel.storage.place import Place

_NEARLY_FULL = 256 * 1024
"""Free bytes below which an unexplained I/O error of SQLite counts as a full disk."""

_PG_DISK_FULL = "53100"
_PG_READ_ONLY = "25006"
_PG_BUSY = frozenset({"55P03", "40001", "40P01"})  # lock not available, serialization failure, deadlock


class UnavailableError(StorageError):
    """The database as a whole can't be used: no other write would fare better."""


class ReadOnlyError(UnavailableError):
    """The database can be read, not written."""


class BusyError(UnavailableError):
    """Another process holds the database."""


class DamagedError(UnavailableError):
    """SQLite finds the file damaged, or no database at all."""


class LostError(UnavailableError):
    """The connection or the file under it has gone; a new one may well work."""


class UndecidedError(UnavailableError):
    """A server was lost during a commit, and couldn't be asked whether that took effect."""


@contextlib.contextmanager
def told(place: Place) -> Iterator[None]:
    """Raise a driver's errors as StorageError or one of its kinds; others pass."""
    try:
        yield
    except (SQLAlchemyError, sqlite3.Error) as error:
        raise explained(error, place) from _without_secrets(error, place)


def explained(error: Exception, place: Place) -> StorageError:
    """The typed error for what a driver or SQLAlchemy raised."""
    cause = error.orig if isinstance(error, DBAPIError) and error.orig is not None else error
    if isinstance(cause, sqlite3.Error):
        return _of_sqlite(cause, place)
    if place.is_sqlite:
        return StorageError("The message database can't be used", path=place.path, detail=str(cause))
    return _of_postgresql(cause, place, lost=isinstance(error, DBAPIError) and error.connection_invalidated)


def _of_sqlite(error: sqlite3.Error, place: Place) -> StorageError:
    name = getattr(error, "sqlite_errorname", "") or type(error).__name__
    said = f"{error} ({name})"
    if name.startswith("SQLITE_FULL") or (name.startswith("SQLITE_IOERR") and _is_full(place)):
        return DiskFullError(
            "There is no room left for the message database",
            path=place.path,
            detail=said,
            remedy="Free space.",
        )
    if name.startswith("SQLITE_READONLY_DBMOVED"):
        return LostError("The message database was moved or deleted", path=place.path, detail=said)
    if name.startswith("SQLITE_READONLY"):
        return read_only(place, said)
    if name.startswith(("SQLITE_BUSY", "SQLITE_LOCKED")):
        return BusyError(
            "Another process holds the message database",
            path=place.path,
            detail=said,
            remedy="End the program that has it open.",
        )
    if name.startswith(("SQLITE_CORRUPT", "SQLITE_NOTADB")):
        return DamagedError("The message database is damaged", path=place.path, detail=said)
    if name.startswith(("SQLITE_IOERR", "SQLITE_CANTOPEN")) and _is_locked_away(place):
        return read_only(place, f"its directory can't be written: {said}")
    if name.startswith(("SQLITE_IOERR", "SQLITE_CANTOPEN", "SQLITE_PROTOCOL")):
        return LostError("The message database can't be used", path=place.path, detail=said)
    return StorageError("The message database refused", path=place.path, detail=said)


def _of_postgresql(error: BaseException, place: Place, *, lost: bool) -> StorageError:
    said = " ".join(place.without_secrets(str(error)).split()) or type(error).__name__
    state = getattr(error, "sqlstate", None) or ""
    if state == _PG_DISK_FULL:
        return DiskFullError(
            "The database server has no room left", path=place.shown, detail=said, remedy="Free space there."
        )
    if state == _PG_READ_ONLY:
        return read_only(place, said)
    if state in _PG_BUSY:
        return BusyError("The message database is busy", path=place.shown, detail=said)
    if lost or not state or state.startswith(("08", "57P")):
        return LostError(
            "The database server can't be reached",
            path=place.shown,
            detail=said,
            remedy="Check database_url.",
        )
    return StorageError("The database server refused", path=place.shown, detail=said)


def read_only(place: Place, detail: str) -> ReadOnlyError:
    """The error for a database that may not be written."""
    return ReadOnlyError(
        "The message database is read-only",
        path=place.shown,
        detail=detail,
        remedy="Make it writable; it is tried again with the next message.",
    )


def _is_full(place: Place) -> bool:
    if place.path is None:
        return False
    try:
        return shutil.disk_usage(place.path.parent).free < _NEARLY_FULL
    except OSError:
        return False


def _is_locked_away(place: Place) -> bool:
    """Whether files beside the database can't be made: a read-only file system, or no permission."""
    return place.path is not None and place.path.parent.exists() and not os.access(place.path.parent, os.W_OK)


def _without_secrets(error: Exception, place: Place) -> Exception | None:
    """The cause for a traceback in the log: not where a driver's own words may hold a password."""
    return error if place.is_sqlite else None
