"""Steps are carried out once, each whole or not at all; a newer database is left alone."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Sequence
from pathlib import Path

import pytest
from sqlalchemy import Connection, inspect, text
from sqlalchemy.engine.interfaces import ReflectedIndex

from agent_bridge.channel.errors import StorageError
from agent_bridge.channel.storage import schema
from agent_bridge.channel.storage.engine import Database
from agent_bridge.channel.storage.migrations import VERSIONS, NewerDatabaseError, version_of
from agent_bridge.channel.storage.place import Place
from integration.channel.cluster import Cluster

PATIENCE = 20.0


def first(connection: Connection) -> None:
    """Makes a table."""
    connection.execute(text("CREATE TABLE birds (name TEXT PRIMARY KEY)"))


def second(connection: Connection) -> None:
    """Adds a column."""
    connection.execute(text("ALTER TABLE birds ADD COLUMN song TEXT"))


def failing(connection: Connection) -> None:
    """Adds a column and then fails."""
    second(connection)
    connection.execute(text("INSERT INTO nests VALUES (1)"))


def _columns(database: Database) -> list[str]:
    with database.reading() as connection:
        return [column["name"] for column in inspect(connection).get_columns("birds")]


def _version(database: Database) -> int:
    with database.reading() as connection:
        return version_of(connection)


def test_step_by_step_with_what_is_there_kept(each_place: Place) -> None:
    database = Database(each_place, [first])
    database.open()
    assert (_version(database), _columns(database)) == (1, ["name"])
    database.write(lambda connection: connection.execute(text("INSERT INTO birds VALUES ('wren')")))
    database.close()

    later = Database(each_place, [first, second])
    later.open()
    assert (_version(later), _columns(later)) == (2, ["name", "song"])
    with later.reading() as connection:
        assert connection.execute(text("SELECT name, song FROM birds")).all() == [("wren", None)]
    later.close()

    again = Database(each_place, [first, second])
    again.open()
    assert _version(again) == 2
    again.close()


def test_a_step_that_fails_leaves_nothing_and_can_be_tried_again(each_place: Place) -> None:
    database = Database(each_place, [first, failing])
    with pytest.raises(StorageError, match="nests"):
        database.open()
    database.close()
    before = Database(each_place, [first])
    before.open()
    assert (_version(before), _columns(before)) == (1, ["name"])
    before.close()
    mended = Database(each_place, [first, second])
    mended.open()
    assert _version(mended) == 2
    mended.close()


def test_a_newer_database_is_left_alone(each_place: Place) -> None:
    newer = Database(each_place, [first, second])
    newer.open()
    newer.close()
    bytes_before = each_place.path.read_bytes() if each_place.path else b""
    database = Database(each_place, [first])
    for use in (database.open, lambda: database.write(first), lambda: _version(database)):
        with pytest.raises(NewerDatabaseError) as caught:
            use()
        assert caught.value.code == "newer_database"
        assert "version 2, this program knows 1" in str(caught.value)
        assert each_place.shown in str(caught.value)
    assert database.health().state == "failed"
    database.close()
    if each_place.path:
        assert each_place.path.read_bytes() == bytes_before


def test_a_database_of_somebody_elses_is_added_to_not_emptied(tmp_path: Path) -> None:
    path = tmp_path / "channel" / "channel.sqlite"
    path.parent.mkdir()
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE letters (body TEXT)")
    connection.execute("INSERT INTO letters VALUES ('dear all')")
    connection.commit()
    connection.close()
    database = Database(Place.file(path), [first])
    database.open()
    with database.reading() as reading:
        assert reading.execute(text("SELECT body FROM letters")).scalar() == "dear all"
    database.close()


def test_two_that_start_at_once_do_each_step_once(each_place: Place) -> None:
    ran: list[int] = []
    failures: list[Exception] = []

    def counted(connection: Connection) -> None:
        first(connection)
        ran.append(1)

    def start(database: Database, go: threading.Barrier) -> None:
        go.wait()
        try:
            database.write(lambda connection: connection.execute(text("SELECT 1")))
        except Exception as error:  # noqa: BLE001
            failures.append(error)

    databases = [Database(each_place, [counted, second]) for _ in range(2)]
    go = threading.Barrier(2, timeout=PATIENCE)
    threads = [threading.Thread(target=start, args=(database, go)) for database in databases]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)
    assert failures == []
    assert ran == [1]
    assert _columns(databases[0]) == ["name", "song"]
    for database in databases:
        database.close()


def test_todays_tables_are_what_the_migrations_make(
    each_place: Place, request: pytest.FixtureRequest
) -> None:
    migrated = Database(each_place, schema.MIGRATIONS)
    made = Database(_beside(each_place, request), [schema.METADATA.create_all])
    assert _fingerprint(migrated) == _fingerprint(made)
    assert set(_fingerprint(migrated)) == set(schema.METADATA.tables)
    migrated.close()
    made.close()


def _beside(place: Place, request: pytest.FixtureRequest) -> Place:
    if place.path is not None:
        return Place.file(place.path.with_name("made.sqlite"))
    cluster: Cluster = request.getfixturevalue("cluster")
    return Place.of(cluster.url(cluster.new_database()))


def _fingerprint(database: Database) -> dict[str, object]:
    """All that can be seen of each table from outside; without the table of versions."""
    with database.reading() as connection:
        seen = inspect(connection)
        without_ids: Sequence[str] = ()
        if database.dialect == "sqlite":
            query = text("SELECT name FROM sqlite_schema WHERE sql LIKE '%WITHOUT ROWID%'")
            without_ids = connection.scalars(query).all()
        return {
            name: {
                "columns": [
                    {**column, "type": column["type"].compile(connection.dialect)}
                    for column in seen.get_columns(name)
                ],
                "key": seen.get_pk_constraint(name)["constrained_columns"],
                "without row ids": name in without_ids,
                "indexes": sorted(
                    (index["name"] or "", str(index["column_names"]), str(index["unique"]), _condition(index))
                    for index in seen.get_indexes(name)
                ),
            }
            for name in seen.get_table_names()
            if name != VERSIONS.name
        }


def _condition(index: ReflectedIndex) -> str:
    options = index.get("dialect_options", {})
    return str(options.get("sqlite_where", options.get("postgresql_where", "")))
