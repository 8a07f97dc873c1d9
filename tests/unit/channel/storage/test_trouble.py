"""What a driver raises, as errors of ours."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import psycopg
import pytest
from psycopg import errors
from sqlalchemy.exc import DBAPIError, OperationalError
from sqlalchemy.exc import TimeoutError as NoConnectionLeft

from agent_bridge.channel.errors import DiskFullError, StorageError
from agent_bridge.channel.storage.place import Place
from agent_bridge.channel.storage.trouble import (
    BusyError,
    DamagedError,
    LostError,
    ReadOnlyError,
    explained,
    told,
)

FILE = Place.file(Path("/state/channel.sqlite"))
SERVER = Place.of("postgresql://ann:sesame@db/team", {})


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("SQLITE_FULL", DiskFullError),
        ("SQLITE_READONLY", ReadOnlyError),
        ("SQLITE_READONLY_DIRECTORY", ReadOnlyError),
        ("SQLITE_READONLY_DBMOVED", LostError),
        ("SQLITE_BUSY", BusyError),
        ("SQLITE_BUSY_SNAPSHOT", BusyError),
        ("SQLITE_LOCKED_SHAREDCACHE", BusyError),
        ("SQLITE_CORRUPT", DamagedError),
        ("SQLITE_CORRUPT_INDEX", DamagedError),
        ("SQLITE_NOTADB", DamagedError),
        ("SQLITE_IOERR_WRITE", LostError),
        ("SQLITE_CANTOPEN", LostError),
        ("SQLITE_CONSTRAINT_UNIQUE", StorageError),
        ("", StorageError),
    ],
)
@pytest.mark.parametrize("wrapped", [True, False])
def test_sqlite(name: str, kind: type[StorageError], wrapped: bool) -> None:
    cause = sqlite3.OperationalError("what it says")
    if name:
        cause.sqlite_errorname = name
    error = explained(OperationalError("INSERT", {}, cause) if wrapped else cause, FILE)
    assert type(error) is kind
    assert "what it says" in error.sentence()
    assert "/state/channel.sqlite" in error.sentence()


@pytest.mark.parametrize(
    ("cause", "lost", "kind"),
    [
        (errors.DiskFull("no space"), False, DiskFullError),
        (errors.ReadOnlySqlTransaction("standby"), False, ReadOnlyError),
        (errors.LockNotAvailable("timeout"), False, BusyError),
        (errors.DeadlockDetected("deadlock"), False, BusyError),
        (errors.AdminShutdown("terminating"), False, LostError),
        (psycopg.OperationalError("server closed the connection"), True, LostError),
        (errors.UniqueViolation("duplicate key"), False, StorageError),
    ],
)
def test_postgresql(cause: psycopg.Error, lost: bool, kind: type[StorageError]) -> None:
    error = explained(DBAPIError("INSERT", {}, cause, connection_invalidated=lost), SERVER)
    assert type(error) is kind
    assert str(cause) in error.sentence()
    assert "postgresql://ann@db/team" in error.sentence()


def test_a_password_in_a_drivers_words_is_taken_out() -> None:
    cause = psycopg.OperationalError('invalid connection option "sesame"')
    with pytest.raises(LostError) as caught, told(SERVER):
        raise DBAPIError("", {}, cause, connection_invalidated=True)
    assert "invalid connection option" in str(caught.value)
    assert "sesame" not in str(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__


def test_a_pool_that_has_no_connection_left_is_told() -> None:
    for place in (FILE, SERVER):
        with pytest.raises(StorageError, match="QueuePool limit"), told(place):
            raise NoConnectionLeft("QueuePool limit reached")


def test_other_errors_pass() -> None:
    with pytest.raises(ZeroDivisionError), told(FILE):
        raise ZeroDivisionError
    with pytest.raises(BusyError, match="mine"), told(FILE):
        raise BusyError("mine")
