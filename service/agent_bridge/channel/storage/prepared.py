"""Statements that are turned into text once, for the way of every single message.

SQLAlchemy looks up its compiled form and works through each row's values anew; for a few hundred small rows
that takes as long as the database does.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from operator import itemgetter
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import psycopg
from sqlalchemy.dialects.sqlite import pysqlite

InOrder = Callable[[Mapping[str, Any]], tuple[Any, ...]]

_DIALECTS = {
    "sqlite": pysqlite.dialect(paramstyle="qmark"),
    "postgresql": psycopg.dialect(paramstyle="format"),  # type: ignore[no-untyped-call]
}


class Prepared:
    """A statement whose values are all bound by name, integers and texts; without lists (`IN`)."""

    def __init__(self, statement: sa.Executable | Mapping[str, sa.Executable]) -> None:
        self._statement = statement
        self._compiled: dict[str, tuple[str, InOrder]] = {}

    def all(self, connection: sa.Connection, values: Mapping[str, Any]) -> Sequence[Any]:
        """The rows of a query."""
        text, in_order = self._for(connection)
        return connection.exec_driver_sql(text, in_order(values)).fetchall()

    def run(self, connection: sa.Connection, rows: Sequence[Mapping[str, Any]]) -> None:
        """Carry it out for each of `rows`; nothing where there are none."""
        if not rows:
            return
        text, in_order = self._for(connection)
        if len(rows) == 1:
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


def _in_order(names: Sequence[str]) -> InOrder:
    """Puts values in the statement's order."""
    if len(names) > 1:
        return itemgetter(*names)
    return lambda values: tuple(values[name] for name in names)
