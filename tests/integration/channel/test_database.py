"""The database under everything that may happen to its file or server."""

from __future__ import annotations

import os
import shutil
import sqlite3
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import Connection, insert, text
from sqlalchemy.exc import IntegrityError

from agent_bridge.channel.errors import DiskFullError, InvalidError, StorageError
from agent_bridge.channel.storage.engine import Database
from agent_bridge.channel.storage.place import Place
from agent_bridge.channel.storage.sqlite import LOG_LIMIT, SqliteFile
from agent_bridge.channel.storage.trouble import BusyError, ReadOnlyError
from integration.channel.notes import MIGRATIONS, NOTES, adding, bodies_in
from integration.daemon.conftest import need_unshare

PATIENCE = 20.0


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where the database's file is to lie, in a directory that isn't there yet."""
    return tmp_path / "channel" / "channel.sqlite"


@pytest.fixture
def database(path: Path) -> Iterator[Database]:
    """An open one."""
    opened = Database(Place.file(path), MIGRATIONS, patience_s=0.3)
    opened.open()
    yield opened
    opened.close()


@pytest.fixture
def any_database(each_place: Place) -> Iterator[Database]:
    """An open one of each kind."""
    opened = Database(each_place, MIGRATIONS)
    opened.open()
    yield opened
    opened.close()


def test_what_was_written_is_read_and_is_there_after_a_restart(each_place: Place) -> None:
    database = Database(each_place, MIGRATIONS)
    database.open()
    assert database.dialect == ("sqlite" if each_place.is_sqlite else "postgresql")
    assert database.write(adding("one", "two")) == 2
    assert bodies_in(database) == ["one", "two"]
    assert database.health().state == "ok"
    assert database.health().reasons == ()
    database.close()

    again = Database(each_place, MIGRATIONS)
    again.open()
    assert bodies_in(again) == ["one", "two"]
    again.close()


def test_a_failing_work_leaves_nothing_behind(any_database: Database) -> None:
    def fail(connection: Connection) -> None:
        adding("half")(connection)
        raise InvalidError("no")

    with pytest.raises(InvalidError):
        any_database.write(fail)
    with pytest.raises(StorageError) as caught:
        any_database.write(adding("twice", "twice"))
    assert isinstance(caught.value.__cause__, IntegrityError) or caught.value.path != str(
        any_database.place.path
    )
    any_database.write(adding("whole"))
    assert bodies_in(any_database) == ["whole"]
    assert any_database.health().state == "ok"


def test_reading_sees_one_state_and_may_not_write(any_database: Database) -> None:
    any_database.write(adding("one"))
    with any_database.reading() as connection:
        before = connection.execute(NOTES.select()).all()
        any_database.write(adding("two"))
        assert connection.execute(NOTES.select()).all() == before
    assert bodies_in(any_database) == ["one", "two"]
    with pytest.raises(ReadOnlyError), any_database.reading() as connection:
        connection.execute(insert(NOTES), [{"body": "three"}])
    assert bodies_in(any_database) == ["one", "two"]


def test_opened_is_called_in_a_transaction_that_may_write(each_place: Place) -> None:
    database = Database(each_place, MIGRATIONS, opened=adding("hello"))
    database.open()
    assert bodies_in(database) == ["hello"]
    database.close()


def test_after_close_nothing_is_read_or_written_until_it_is_opened(any_database: Database) -> None:
    any_database.write(adding("one"))
    any_database.close()
    for use in (lambda: any_database.write(adding("two")), lambda: bodies_in(any_database)):
        with pytest.raises(StorageError, match="closed"):
            use()
    any_database.open()
    assert bodies_in(any_database) == ["one"]


def test_the_file_is_private_and_every_commit_is_on_disk(database: Database, path: Path) -> None:
    database.write(adding("one"))
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    for side in ("", "-wal", "-shm"):
        assert stat.S_IMODE(Path(f"{path}{side}").stat().st_mode) == 0o600
    settings = database.write(
        lambda connection: [
            connection.exec_driver_sql(f"PRAGMA {name}").scalar()
            for name in ("journal_mode", "synchronous", "foreign_keys", "journal_size_limit", "auto_vacuum")
        ]
    )
    assert settings == ["wal", 2, 1, LOG_LIMIT, 2]
    health = database.health()
    assert (health.path, health.journal_mode, health.set_aside) == (path, "wal", ())
    assert health.wal_bytes == Path(f"{path}-wal").stat().st_size > 0


def test_a_file_that_others_may_read_is_made_private(path: Path) -> None:
    path.parent.mkdir(mode=0o755)
    path.touch(0o644)
    path.chmod(0o644)
    database = Database(Place.file(path), MIGRATIONS)
    database.open()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    database.close()


def test_a_file_deleted_under_the_process_is_made_anew(path: Path) -> None:
    openings: list[int] = []
    database = Database(Place.file(path), MIGRATIONS, opened=lambda connection: openings.append(1))
    database.write(adding("before"))
    _delete(path)
    database.write(adding("after"))
    assert bodies_in(database) == ["after"]
    assert path.exists()
    assert len(openings) == 2
    health = database.health()
    assert (health.state, health.reasons) == ("ok", ())
    assert any("deleted or replaced" in notice for notice in health.notices)
    database.close()
    assert _rows(path) == ["after"]


@pytest.mark.parametrize("sides", [("",), ("", "-wal"), ("", "-wal", "-shm")])
def test_reading_notices_it_too(database: Database, path: Path, sides: tuple[str, ...]) -> None:
    database.write(adding("before"))
    for side in sides:
        Path(f"{path}{side}").unlink()
    assert bodies_in(database) == []
    database.write(adding("after"))
    assert bodies_in(database) == ["after"]
    database.close()
    assert _rows(path) == ["after"]


def test_a_commit_into_a_file_that_was_deleted_meanwhile_is_done_again(
    database: Database, path: Path
) -> None:
    database.write(adding("before"))
    runs = 0

    def work(connection: Connection) -> int:
        nonlocal runs
        runs += 1
        if runs == 1:
            _delete(path)
        return adding("answered")(connection)

    assert database.write(work) == 1
    assert runs == 2
    database.close()
    assert _rows(path) == ["answered"]


def test_a_file_replaced_under_the_process_is_used(database: Database, path: Path, tmp_path: Path) -> None:
    database.write(adding("ours"))
    other = Database(Place.file(tmp_path / "other" / "other.sqlite"), MIGRATIONS)
    other.write(adding("theirs"))
    other.close()
    (tmp_path / "other" / "other.sqlite").replace(path)
    database.write(adding("more"))
    assert bodies_in(database) == ["theirs", "more"]
    database.close()
    assert _rows(path) == ["theirs", "more"]


def test_a_log_that_was_deleted_under_the_process_loses_nothing(database: Database, path: Path) -> None:
    database.write(adding("one"))
    Path(f"{path}-wal").unlink()
    database.write(adding("two"))
    Path(f"{path}-wal").unlink()
    assert bodies_in(database) == ["one", "two"]
    database.close()
    assert _rows(path) == ["one", "two"]


def test_a_directory_that_has_gone_is_made_anew(database: Database, path: Path) -> None:
    database.write(adding("before"))
    shutil.rmtree(path.parent)
    database.write(adding("after"))
    assert bodies_in(database) == ["after"]


def test_where_it_cant_be_made_it_is_told_and_tried_again(database: Database, path: Path) -> None:
    database.write(adding("before"))
    shutil.rmtree(path.parent)
    path.parent.write_text("in the way")
    for use in (lambda: database.write(adding("x")), lambda: bodies_in(database)):
        with pytest.raises(StorageError, match=str(path.parent)):
            use()
        assert database.health().state == "failed"
        assert str(path.parent) in database.health().reasons[0]
    path.parent.unlink()
    database.write(adding("after"))
    assert bodies_in(database) == ["after"]
    assert database.health().state == "ok"


@pytest.mark.parametrize("kind", ["directory", "fifo"])
def test_what_is_no_file_is_left_alone(path: Path, kind: str) -> None:
    path.parent.mkdir()
    if kind == "directory":
        path.mkdir()
    else:
        os.mkfifo(path)
    database = Database(Place.file(path), MIGRATIONS)
    with pytest.raises(StorageError, match="isn't a file"):
        database.open()
    assert database.health().state == "failed"
    assert list(path.parent.iterdir()) == [path]


def test_a_symlink_leads_to_the_file(path: Path, tmp_path: Path) -> None:
    real = tmp_path / "elsewhere.sqlite"
    path.parent.mkdir()
    path.symlink_to(real)
    database = Database(Place.file(path), MIGRATIONS)
    database.write(adding("one"))
    database.close()
    assert path.is_symlink()
    assert _rows(real) == ["one"]


def test_a_file_made_read_only_is_read_and_written_again_once_it_may_be(
    database: Database, path: Path
) -> None:
    database.write(adding("before"))
    path.chmod(0o400)
    with pytest.raises(ReadOnlyError, match="read-only"):
        database.write(adding("refused"))
    assert database.health().state == "read_only"
    assert bodies_in(database) == ["before"]
    assert database.health().state == "read_only"
    path.chmod(0o600)
    database.write(adding("after"))
    assert bodies_in(database) == ["before", "after"]
    assert database.health().state == "ok"


def test_a_read_only_file_at_start(database: Database, path: Path) -> None:
    database.write(adding("before"))
    database.close()
    path.chmod(0o400)
    again = Database(Place.file(path), MIGRATIONS)
    with pytest.raises(ReadOnlyError):
        again.open()
    path.chmod(0o600)
    again.write(adding("after"))
    assert bodies_in(again) == ["before", "after"]
    again.close()


def test_a_full_database_is_told_and_used_again_when_there_is_room(database: Database) -> None:
    database.write(adding("before"))
    _limit_pages(database, to_now=True)
    with pytest.raises(DiskFullError, match="no room left"):
        database.write(adding("x" * 100_000))
    assert database.health().state == "full"
    assert bodies_in(database) == ["before"]
    assert database.health().state == "full"
    _limit_pages(database, to_now=False)
    database.write(adding("after"))
    assert bodies_in(database) == ["before", "after"]
    assert database.health().state == "ok"


@pytest.mark.usefixtures(need_unshare.__name__)
def test_a_disk_that_is_really_full_or_read_only() -> None:
    done = subprocess.run(
        ["unshare", "-Urm", sys.executable, "-m", "integration.channel.little_disk"],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["full", "ok", "read_only", "ok"]


def test_another_process_that_holds_the_database_is_waited_for(path: Path) -> None:
    database = Database(Place.file(path), MIGRATIONS)
    database.open()
    other = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    other.execute("BEGIN IMMEDIATE")
    release = threading.Timer(0.6, lambda: other.execute("ROLLBACK"))
    release.start()
    assert database.write(adding("one")) == 1
    release.join()
    other.close()
    database.close()


def test_but_not_for_ever(database: Database, path: Path) -> None:
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(BusyError, match="Another process"):
        database.write(adding("one"))
    assert database.health().state == "failed"
    assert bodies_in(database) == []
    other.execute("ROLLBACK")
    assert database.write(adding("one")) == 1
    assert database.health().state == "ok"
    other.close()


def test_on_a_network_file_system_it_does_without_a_log_and_says_so(database: Database, path: Path) -> None:
    database.write(adding("local"))
    assert database.health().journal_mode == "wal"
    database.close()
    place = Place.file(path)
    remote = Database(place, MIGRATIONS, backend=SqliteFile(place, network_type=lambda _path: "nfs4"))
    remote.write(adding("remote"))
    health = remote.health()
    assert (health.state, health.reasons, health.journal_mode) == ("ok", (), "delete")
    assert "nfs4" in health.notices[0]
    assert bodies_in(remote) == ["local", "remote"]
    assert not Path(f"{path}-wal").exists()
    remote.close()


def test_a_checkpoint_takes_the_log_into_the_file(database: Database, path: Path) -> None:
    for number in range(20):
        database.write(adding(f"{number}" * 5000))
    assert database.health().wal_bytes > 100_000
    size = path.stat().st_size
    database.checkpoint()
    assert path.stat().st_size > size
    database.checkpoint(truncate=True)
    assert database.health().wal_bytes == 0


def test_a_checkpoint_goes_on_beside_a_write(database: Database, path: Path) -> None:
    database.open()
    database.write(adding("before" * 50_000))

    def work(connection: Connection) -> None:
        beside = threading.Thread(target=database.checkpoint)
        beside.start()
        beside.join(10)
        assert not beside.is_alive()
        adding("meanwhile")(connection)

    size = path.stat().st_size
    database.write(work)

    assert path.stat().st_size > size + 200_000
    assert bodies_in(database)[1:] == ["meanwhile"]


@pytest.mark.parametrize(("ceiling", "is_bounded"), [(1 << 20, True), (1 << 30, False)])
def test_readers_that_come_and_go_dont_let_the_log_grow(path: Path, ceiling: int, is_bounded: bool) -> None:
    place = Place.file(path)
    database = Database(place, MIGRATIONS, backend=SqliteFile(place, log_ceiling=ceiling))
    database.open()
    stop = threading.Event()

    def read() -> None:
        while not stop.is_set():
            with database.reading() as connection:
                connection.execute(text("SELECT count(*) FROM notes")).all()
                time.sleep(0.004)

    readers = [threading.Thread(target=read) for _ in range(4)]
    for reader in readers:
        reader.start()
    most = 0
    for number in range(80):
        database.write(adding(*(f"{number}-{part}" + "x" * 10_000 for part in range(10))))
        most = max(most, database.health().wal_bytes)
    stop.set()
    for reader in readers:
        reader.join(PATIENCE)
    assert (most < 2 << 20) is is_bounded
    assert len(bodies_in(database)) == 800
    database.close()


def test_optimizing_gives_free_pages_back(database: Database, path: Path) -> None:
    database.write(adding(*(f"{number}" + "x" * 5000 for number in range(500))))
    database.write(lambda connection: connection.execute(NOTES.delete()))
    database.checkpoint(truncate=True)
    size = path.stat().st_size
    database.optimize()
    database.checkpoint(truncate=True)
    assert path.stat().st_size < size / 2


def test_upkeep_is_no_matter_on_a_server(any_database: Database) -> None:
    any_database.checkpoint(truncate=True)
    any_database.optimize()
    any_database.write(adding("one"))
    assert bodies_in(any_database) == ["one"]


def test_many_readers_beside_a_writer_while_the_file_is_deleted(database: Database, path: Path) -> None:
    stop = threading.Event()
    failures: list[Exception] = []

    def read() -> None:
        while not stop.is_set():
            try:
                found = bodies_in(database)
                assert (
                    found == [str(number) for number in range(int(found[0]), int(found[0]) + len(found))]
                    if found
                    else True
                )
            except Exception as error:  # noqa: BLE001
                failures.append(error)
                return

    readers = [threading.Thread(target=read) for _ in range(3)]
    for reader in readers:
        reader.start()
    for number in range(100):
        if number % 25 == 24:
            _delete(path)
        database.write(adding(str(number)))
    stop.set()
    for reader in readers:
        reader.join(PATIENCE)
    assert failures == []
    assert bodies_in(database)[-1] == "99"


def _delete(path: Path) -> None:
    for side in ("", "-wal", "-shm"):
        Path(f"{path}{side}").unlink(missing_ok=True)


def _rows(path: Path) -> list[str]:
    """What another program finds in the file."""
    connection = sqlite3.connect(path)
    try:
        return [row[0] for row in connection.execute("SELECT body FROM notes ORDER BY id")]
    finally:
        connection.close()


def _limit_pages(database: Database, *, to_now: bool) -> None:
    def limit(connection: Connection) -> None:
        pages = connection.execute(text("PRAGMA page_count")).scalar() if to_now else 1_000_000
        connection.exec_driver_sql(f"PRAGMA max_page_count={pages}")

    database.write(limit)
