"""Statements turned into text once, for either database."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import sqlalchemy as sa
from sqlalchemy import bindparam

from agent_bridge.channel.storage.prepared import Prepared, PreparedForIds
from agent_bridge.channel.storage.schema import insert_missing

NOTES = sa.Table(
    "notes",
    sa.MetaData(),
    sa.Column("number", sa.Integer, primary_key=True),
    sa.Column("text", sa.Text),
)


@pytest.fixture
def connection() -> Iterator[sa.Connection]:
    with sa.create_engine("sqlite://").connect() as opened:
        NOTES.create(opened)
        yield opened


def test_values_go_by_name(connection: sa.Connection) -> None:
    insert, by_number = (
        Prepared(sa.insert(NOTES)),
        Prepared(sa.select(NOTES.c.text).where(NOTES.c.number == bindparam("wanted"))),
    )

    insert.run(connection, [{"text": "one", "number": 1}])
    insert.run(connection, [{"text": "two", "number": 2}, {"number": 3, "text": None}])
    insert.run(connection, [])

    assert [tuple(by_number.all(connection, {"wanted": wanted})[0]) for wanted in (1, 2, 3)] == [
        ("one",),
        ("two",),
        (None,),
    ]
    assert len(Prepared(sa.select(NOTES)).all(connection, {})) == 3


def test_a_missing_value_is_an_error(connection: sa.Connection) -> None:
    with pytest.raises(KeyError):
        Prepared(sa.insert(NOTES)).run(connection, [{"number": 1}])


def test_what_is_there_is_passed_over(connection: sa.Connection) -> None:
    insert = Prepared(insert_missing(NOTES))

    insert.run(connection, [{"number": 1, "text": "first"}])
    insert.run(connection, [{"number": 1, "text": "second"}, {"number": 2, "text": "new"}])

    assert [tuple(row) for row in Prepared(sa.select(NOTES)).all(connection, {})] == [
        (1, "first"),
        (2, "new"),
    ]


def test_each_database_has_its_own_text() -> None:
    prepared = Prepared(sa.select(NOTES.c.text).where(NOTES.c.number == bindparam("wanted")))

    assert "number = ?" in prepared._compile("sqlite")[0]
    assert "number = %s" in prepared._compile("postgresql")[0]


@pytest.mark.parametrize("count", [1, 2, 4, 5, 500])
def test_a_list_of_ids_is_one_query(connection: sa.Connection, count: int) -> None:
    Prepared(sa.insert(NOTES)).run(
        connection, [{"number": number, "text": f"text {number}"} for number in range(600)]
    )
    asked = sa.select(NOTES.c.text, sa.func.count()).where(
        NOTES.c.text.in_(bindparam("ids", expanding=True)), NOTES.c.text != bindparam("identity")
    )
    wanted = [f"text {number}" for number in range(count)]

    found = PreparedForIds(asked.group_by(NOTES.c.text)).all(connection, "text 0", wanted)

    assert sorted(found) == sorted((text, 1) for text in wanted[1:])


def test_ids_in_either_database() -> None:
    prepared = PreparedForIds(
        sa.select(NOTES.c.number).where(NOTES.c.text.in_(bindparam("ids", expanding=True)))
    )

    assert "IN (?, ?, ?, ?)" in prepared._compile("sqlite", 4)[0]
    assert prepared._compile("postgresql", 4)[0].count("%s") == 4
