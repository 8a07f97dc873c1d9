"""A database on a server: connections that break, a commit nobody knows of, turns between registries."""

from __future__ import annotations

import io
import logging
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace

import pytest
from sqlalchemy import Connection, text

from agent_bridge import log
from agent_bridge.channel.clock import Moment, Timeline
from agent_bridge.channel.errors import StorageError
from agent_bridge.channel.model import Draft, Kind
from agent_bridge.channel.storage.engine import Database
from agent_bridge.channel.storage.place import Place
from agent_bridge.channel.storage.postgresql import Server
from agent_bridge.channel.storage.trouble import LostError, UndecidedError
from agent_bridge.channel.storage.writer import Writer
from agent_bridge.channel.writes import Done, Send, Settled, Write
from integration.channel.cluster import PASSWORD, Cluster
from integration.channel.notes import MIGRATIONS, adding, bodies_in
from integration.channel.relay import Relay

PATIENCE = 30.0


@pytest.fixture
def database(postgresql_url: str) -> Iterator[Database]:
    """An open one."""
    opened = Database(Place.of(postgresql_url), MIGRATIONS)
    opened.open()
    yield opened
    opened.close()


def test_with_a_password(cluster: Cluster, database_name: str) -> None:
    database = Database(Place.of(cluster.address(database_name)), MIGRATIONS)
    database.write(adding("one"))
    assert bodies_in(database) == ["one"]
    assert PASSWORD not in str(database.health())
    database.close()


def test_a_wrong_password_is_told_and_not_shown(cluster: Cluster, database_name: str) -> None:
    stream = io.StringIO()
    log.configure("debug", to_terminal=False, stream=stream)
    database = Database(Place.of(cluster.address(database_name, "close sesame")), MIGRATIONS)
    try:
        with pytest.raises(LostError, match="password authentication failed") as caught:
            database.open()
        logging.getLogger("test").exception("it failed", exc_info=caught.value)
    finally:
        database.close()
        log.reset()
    said = f"{caught.value} {caught.value.as_dict()} {database.health()} {stream.getvalue()}"
    assert "it failed" in said
    for secret in ("sesame", "close%20"):
        assert secret not in said
    assert caught.value.__cause__ is None


def test_a_server_that_restarts_is_used_again(cluster: Cluster, database_name: str) -> None:
    database = Database(Place.of(cluster.url(database_name)), MIGRATIONS)
    database.write(adding("before"))
    assert bodies_in(database) == ["before"]
    cluster.stop()
    try:
        for use in (lambda: database.write(adding("x")), lambda: bodies_in(database)):
            with pytest.raises(LostError, match="can't be reached"):
                use()
            assert database.health().state == "failed"
    finally:
        cluster.start()
    database.write(adding("after"))
    assert bodies_in(database) == ["before", "after"]
    assert database.health().state == "ok"
    database.close()


def test_connections_that_the_server_ended_are_made_anew(database: Database, cluster: Cluster) -> None:
    database.write(adding("before"))
    assert bodies_in(database) == ["before"]
    _end_all(cluster, database)
    assert bodies_in(database) == ["before"]
    _end_all(cluster, database)
    database.write(adding("after"))
    assert bodies_in(database) == ["before", "after"]


def test_a_connection_lost_within_a_transaction(database: Database, cluster: Cluster) -> None:
    runs = 0

    def work(connection: Connection) -> int:
        nonlocal runs
        runs += 1
        adding("once")(connection)
        if runs == 1:
            _end_all(cluster, database)
        return adding("and more")(connection)

    assert database.write(work) == 2
    assert runs == 2
    assert bodies_in(database) == ["once", "and more"]


@pytest.mark.parametrize(("cut", "runs"), [("after", 1), ("before", 2)])
def test_a_commit_whose_answer_is_lost_is_neither_lost_nor_done_twice(
    cluster: Cluster, database_name: str, cut: str, runs: int
) -> None:
    relay = Relay(cluster.port)
    database = Database(_through(relay, cluster, database_name), MIGRATIONS)
    database.open()
    relay.cut = cut
    ran = 0

    def work(connection: Connection) -> int:
        nonlocal ran
        ran += 1
        return adding("answered")(connection)

    assert database.write(work) == 1
    assert (relay.cuts, ran) == (1, runs)
    database.write(adding("next"))
    assert bodies_in(database) == ["answered", "next"]
    database.close()
    relay.close()


def test_a_commit_that_nobody_can_be_asked_about_isnt_done_again(
    cluster: Cluster, database_name: str
) -> None:
    relay = Relay(cluster.port)
    place = _through(relay, cluster, database_name)
    database = Database(place, MIGRATIONS, backend=Server(place, undecided_s=0.2))
    database.open()
    relay.cut = "for good"
    ran: list[int] = []
    with pytest.raises(UndecidedError, match="isn't known"):
        database.write(lambda connection: ran.append(adding("maybe")(connection)))
    assert ran == [1]
    assert database.health().state == "failed"
    database.close()
    direct = Database(Place.of(cluster.url(database_name)), MIGRATIONS)
    assert bodies_in(direct) == ["maybe"]
    direct.close()
    relay.close()


def test_a_server_killed_under_the_writer_hands_every_write_back_once(
    cluster: Cluster, database_name: str
) -> None:
    database = Database(Place.of(cluster.url(database_name)), MIGRATIONS)
    database.open()
    settled: list[Settled] = []

    def apply(connection: Connection, writes: Sequence[Write], _moment: Moment) -> list[Done]:
        adding(*(write.draft.content for write in writes if isinstance(write, Send)))(connection)
        return [Done(True) for _ in writes]

    writer = Writer(database, apply, settled.extend, now=Timeline().now, group_writes=5)
    writer.start()
    bodies = [str(number) for number in range(600)]
    for body in bodies:
        writer.submit(Send(Draft(identity="global", from_agent_id="ann", kind=Kind.CHAT, content=body)), body)
    while len(settled) < 50:
        time.sleep(0.001)
    cluster.stop()
    cluster.start()
    writer.close()
    assert [each.tag for each in settled] == bodies
    stored = [each.tag for each in settled if isinstance(each.outcome, Done)]
    doubtful = [each.tag for each in settled if isinstance(each.outcome, UndecidedError)]
    assert len(stored) >= 50
    assert set(stored) <= set(bodies_in(database)) <= {*stored, *doubtful}
    database.close()


def test_a_server_that_hangs_doesnt_keep_the_service_from_ending(
    cluster: Cluster, database_name: str
) -> None:
    database = Database(Place.of(cluster.url(database_name)), MIGRATIONS, patience_s=0.2)
    database.open()
    inside, go_on = threading.Event(), threading.Event()

    def hang(*_: object) -> list[Done]:
        inside.set()
        go_on.wait(PATIENCE)
        return [Done(True)]

    writer = Writer(database, hang, lambda _settled: None, now=Timeline().now)
    writer.start()
    writer.submit(Send(Draft(identity="global", from_agent_id="ann", kind=Kind.CHAT, content="x")))
    assert inside.wait(PATIENCE)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("agent_bridge.channel.storage.writer._GRACE_S", 0.1)
        writer.close(timeout=0.1)
    database.close()
    go_on.set()
    writer._thread.join(PATIENCE)
    database.close()


def test_two_registries_take_turns(database: Database) -> None:
    """What is numbered in a transaction is committed in that order, whoever writes."""
    other = Database(replace(database.place), MIGRATIONS)
    failures: list[Exception] = []

    def number(connection: Connection) -> None:
        last = connection.execute(text("SELECT coalesce(max(id), 0) FROM notes")).scalar_one()
        connection.execute(
            text("INSERT INTO notes VALUES (:id, :body)"), {"id": last + 1, "body": f"number {last + 1}"}
        )

    def write_many(one: Database) -> None:
        try:
            for _ in range(40):
                one.write(number)
        except Exception as error:  # noqa: BLE001
            failures.append(error)

    threads = [threading.Thread(target=write_many, args=(one,)) for one in (database, other)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)
    assert failures == []
    assert bodies_in(other) == [f"number {number}" for number in range(1, 81)]
    other.close()


def test_without_the_driver_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    database = Database(Place.of("postgresql://ann@127.0.0.1:1/team"), MIGRATIONS)
    with pytest.raises(StorageError, match=r"agent-bridge\[postgresql\]"):
        database.open()


def _through(relay: Relay, cluster: Cluster, name: str) -> Place:
    address = cluster.address(name).replace(f":{cluster.port}/", f":{relay.port}/")
    return Place.of(f"{address}?sslmode=disable")


def _end_all(cluster: Cluster, database: Database) -> None:
    cluster.end_connections(database.place.shown.rsplit("/", 1)[1])
