"""A little schema for the tests of the database itself: one table of texts."""

from __future__ import annotations

from collections.abc import Callable

from sqlalchemy import Column, Connection, Integer, MetaData, Table, Text, insert, select

from agent_bridge.channel.storage.engine import Database
from agent_bridge.channel.storage.migrations import Migration

NOTES = Table(
    "notes",
    MetaData(),
    Column("id", Integer, primary_key=True),
    Column("body", Text, nullable=False, unique=True),
)


def make_notes(connection: Connection) -> None:
    """The first migration."""
    NOTES.create(connection)


MIGRATIONS: tuple[Migration, ...] = (make_notes,)


def adding(*bodies: str) -> Callable[[Connection], int]:
    """A piece of work for `Database.write`: adds texts, answers how many there are then."""

    def add(connection: Connection) -> int:
        connection.execute(insert(NOTES), [{"body": body} for body in bodies])
        return len(connection.execute(select(NOTES.c.id)).all())

    return add


def bodies_in(database: Database) -> list[str]:
    """All texts, in the order in which they were added."""
    with database.reading() as connection:
        return list(connection.scalars(select(NOTES.c.body).order_by(NOTES.c.id)))
