"""Brings a database to today's schema, step by numbered step, each in a transaction of its own.

A step is a function that takes a connection within a transaction; its number is its position, from 1. A
step that was ever released is never changed: the next one changes what it made.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from sqlalchemy import BigInteger, Column, Connection, Integer, MetaData, Table, func, insert, inspect, select

from agent_bridge.channel.storage.trouble import UnavailableError

Migration = Callable[[Connection], None]
Transaction = Callable[[Callable[[Connection], object]], object]
"""Runs a function in one write transaction."""

VERSIONS = Table(
    "schema_versions",
    MetaData(),
    Column("version", Integer, primary_key=True, autoincrement=False),
    Column("applied_at", BigInteger, nullable=False),  # wall time, ms
)


class NewerDatabaseError(UnavailableError):
    """A newer agent-bridge made this database; this one leaves it alone."""

    code = "newer_database"


def migrate(transaction: Transaction, migrations: Sequence[Migration], shown: str) -> None:
    """Carry out what is missing. `shown` names the database in errors.

    Raises NewerDatabaseError where more was carried out than is known here; a failing step's error, with
    nothing of that step done.
    """
    while transaction(lambda connection: _next_step(connection, migrations, shown)):
        pass


def version_of(connection: Connection) -> int:
    """The number of the last step that was carried out; 0 for none."""
    if not inspect(connection).has_table(VERSIONS.name):
        return 0
    return connection.execute(select(func.max(VERSIONS.c.version))).scalar() or 0


def _next_step(connection: Connection, migrations: Sequence[Migration], shown: str) -> bool:
    """Looked up anew each time, under the lock: another process may migrate the same database."""
    done = version_of(connection)
    if done > len(migrations):
        raise NewerDatabaseError(
            "The message database was made by a newer agent-bridge",
            path=shown,
            detail=f"its schema has version {done}, this program knows {len(migrations)}",
            remedy="Install that version again, or move the database away.",
        )
    if done == len(migrations):
        return False
    if done == 0:
        VERSIONS.create(connection, checkfirst=True)
    migrations[done](connection)
    connection.execute(insert(VERSIONS).values(version=done + 1, applied_at=time.time_ns() // 1_000_000))
    return True
