"""Statements that are turned into text once, for the way of every single message.

SQLAlchemy looks up its compiled form and works through each row's values anew; for a few small rows that
takes ten times as long as SQLite does. SQLite is asked by its driver; the errors of either are told by
`trouble`.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Mapping, Sequence
from operator import itemgetter
from typing import Any, Final, cast

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import psycopg
from sqlalchemy.dialects.sqlite import pysqlite

from agent_bridge.channel.storage.keys import AT_ONCE

InOrder = Callable[[Mapping[str, Any]], tuple[Any, ...]]

_DIALECTS = {
    "sqlite": pysqlite.dialect(paramstyle="qmark"),
    "postgresql": psycopg.dialect(paramstyle="format"),  # type: ignore[no-untyped-call]
}
_SIZES: Final = (1, 4, 16, 64, 256, AT_ONCE)


class Prepared:
    """A statement whose values are all bound by name, integers and texts; without lists (`IN`)."""

    def __init__(self, statement: sa.Executable | Mapping[str, sa.Executable]) -> None:
        self._statement = statement
        self._compiled: dict[str, tuple[str, InOrder]] = {}

    def all(self, connection: sa.Connection, values: Mapping[str, Any]) -> Sequence[Any]:
        """The rows of a query."""
        text, in_order = self._for(connection)
        return _rows(connection, text, in_order(values))

    def run(self, connection: sa.Connection, rows: Sequence[Mapping[str, Any]]) -> None:
        """Carry it out for each of `rows`; nothing where there are none."""
        if not rows:
            return
        text, in_order = self._for(connection)
        if connection.dialect.name == "sqlite":
            _driver(connection).executemany(text, map(in_order, rows))
        elif len(rows) == 1:
            connection.exec_driver_sql(text, in_order(rows[0]))
        else:
            connection.exec_driver_sql(text, [in_order(row) for row in rows])

    def _for(self, connection: sa.Connection) -> tuple[str, InOrder]:
        name = connection.dialect.name
        found = self._compiled.get(name)
        if found is None:
            found = self._compiled[name] = self._compile(name)
        return found

    def _compile(self, dialect: str) -> tuple[str, InOrder]:
        statement = self._statement
        if isinstance(statement, Mapping):
            statement = statement[dialect]
        compiled: Any = statement.compile(dialect=_DIALECTS[dialect])  # type: ignore[attr-defined]
        return str(compiled), _in_order(compiled.positiontup)


class PreparedForIds:
    """A query for the rows of one identity whose ids stand in a list: bound as `identity` and `ids`.

    There is a text for each of a few sizes; a shorter list is filled up with its last id."""

    def __init__(self, statement: sa.Select[Any]) -> None:
        self.statement = statement
        self._compiled: dict[tuple[str, int], tuple[str, InOrder]] = {}

    def all(self, connection: sa.Connection, identity: str, ids: Sequence[str]) -> Sequence[Any]:
        """The rows for these ids, of which there is at least one and at most `AT_ONCE`."""
        size = next(size for size in _SIZES if size >= len(ids))
        key = connection.dialect.name, size
        found = self._compiled.get(key)
        if found is None:
            found = self._compiled[key] = self._compile(*key)
        text, in_order = found
        values: dict[str, Any] = {f"ids_{number}": name for number, name in enumerate(ids, 1)}
        values |= {f"ids_{number}": ids[-1] for number in range(len(ids) + 1, size + 1)}
        return _rows(connection, text, in_order(values | {"identity": identity}))

    def _compile(self, dialect: str, size: int) -> tuple[str, InOrder]:
        compiled: Any = self.statement.compile(dialect=_DIALECTS[dialect])
        state = compiled.construct_expanded_state({"identity": "", "ids": [""] * size})
        return state.statement, _in_order(state.positiontup)


def _rows(connection: sa.Connection, text: str, values: tuple[Any, ...]) -> Sequence[Any]:
    if connection.dialect.name == "sqlite":
        return _driver(connection).execute(text, values).fetchall()
    return connection.exec_driver_sql(text, values).fetchall()


def _driver(connection: sa.Connection) -> sqlite3.Connection:
    return cast("sqlite3.Connection", connection.connection.dbapi_connection)


def _in_order(names: Sequence[str]) -> InOrder:
    """Puts values in the statement's order."""
    if len(names) > 1:
        return itemgetter(*names)
    return lambda values: tuple(values[name] for name in names)
