"""A damaged file is put aside with a name that is told, and a new one made."""

from __future__ import annotations

import re
import sqlite3
import threading
from pathlib import Path

import pytest

from agent_bridge.channel.storage import repair
from agent_bridge.channel.storage.engine import Database
from agent_bridge.channel.storage.place import Place
from integration.channel.notes import MIGRATIONS, adding, bodies_in


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A file with some megabytes of texts."""
    found = tmp_path / "channel" / "channel.sqlite"
    database = Database(Place.file(found), MIGRATIONS)
    database.write(adding(*(f"{number}:" + "x" * 2000 for number in range(1000))))
    database.close()
    return found


def _garbage(path: Path) -> None:
    path.write_bytes(b"this was never a database\n" * 500)


def _damaged_page(path: Path) -> None:
    with path.open("r+b") as file:
        for page in range(2, 200):
            file.seek(page * 4096)
            file.write(b"\xff" * 200)


def _cut_off(path: Path) -> None:
    with path.open("r+b") as file:
        file.truncate(100 * 4096 + 17)


@pytest.mark.parametrize("spoil", [_garbage, _damaged_page, _cut_off])
def test_at_start(path: Path, spoil: object) -> None:
    spoil(path)  # type: ignore[operator]
    bytes_before = path.read_bytes()
    database = Database(Place.file(path), MIGRATIONS)
    database.open()
    assert bodies_in(database) == []
    database.write(adding("new"))
    assert bodies_in(database) == ["new"]
    health = database.health()
    assert (health.state, health.reasons) == ("ok", ())
    (aside,) = health.set_aside
    assert re.fullmatch(re.escape(str(path)) + r"\.damaged-\d{8}T\d{6}Z", aside)
    assert Path(aside).read_bytes() == bytes_before
    database.close()

    again = Database(Place.file(path), MIGRATIONS)
    again.open()
    assert again.health().set_aside == (aside,)
    assert bodies_in(again) == ["new"]
    again.close()


def test_its_log_goes_with_it_and_several_have_names_of_their_own(tmp_path: Path) -> None:
    path = tmp_path / "channel.sqlite"
    kept = []
    for number in range(3):
        for side in ("", "-wal", "-shm"):
            Path(f"{path}{side}").write_text(f"{number}{side}")
        kept.append(repair.put_aside(path))
        assert not path.exists()
        assert not any(tmp_path.glob("channel.sqlite-*"))
    assert repair.kept_aside(path) == tuple(str(name) for name in sorted(kept))
    for number, name in enumerate(kept):
        assert [Path(f"{name}{side}").read_text() for side in ("", "-wal", "-shm")] == [
            f"{number}",
            f"{number}-wal",
            f"{number}-shm",
        ]


def test_a_sound_file_stays(path: Path) -> None:
    database = Database(Place.file(path), MIGRATIONS)
    database.open()
    assert len(bodies_in(database)) == 1000
    assert database.health().set_aside == ()
    database.close()


def test_an_empty_file_is_a_new_database(tmp_path: Path) -> None:
    path = tmp_path / "channel" / "channel.sqlite"
    path.parent.mkdir()
    path.touch()
    database = Database(Place.file(path), MIGRATIONS)
    database.write(adding("one"))
    assert database.health().set_aside == ()
    database.close()


@pytest.mark.parametrize("use", ["read", "write"])
def test_damage_that_shows_while_it_is_in_use(path: Path, use: str) -> None:
    database = Database(Place.file(path), MIGRATIONS)
    database.open()
    _damaged_page(path)
    if use == "write":
        # The unique index is looked up, page after page.
        for number in range(50):
            database.write(adding(f"{number}:after"))
    else:
        with pytest.raises(Exception, match="damaged"):
            bodies_in(database)
        assert database.health().state == "failed"
        assert bodies_in(database) == []
    database.write(adding("new"))
    assert "new" in bodies_in(database)
    assert len(database.health().set_aside) == 1
    assert database.health().state == "ok"
    database.close()


def test_the_check_at_start_is_bounded(path: Path) -> None:
    connection = sqlite3.connect(path)
    root = _many_rows(connection)
    connection.close()
    with path.open("r+b") as file:
        file.seek((root + 1) * 4096)  # its first rows, which the check comes to last
        file.write(b"\xff" * 4096)
    connection = sqlite3.connect(path)
    assert repair.damage(connection, seconds=0.005) is None
    assert repair.damage(connection, seconds=60) is not None
    connection.close()


def test_the_check_can_be_thorough(path: Path) -> None:
    content = path.read_bytes()
    assert content.count(b"500:xx") == 2  # in the table, and in its index
    path.write_bytes(content.replace(b"500:xx", b"5.0:xx", 1))
    connection = sqlite3.connect(path)
    assert repair.damage(connection, seconds=10) is None
    assert "missing from index" in str(repair.damage(connection, seconds=None))
    connection.close()


def test_a_database_held_by_another_process_isnt_taken_for_damaged(path: Path) -> None:
    other = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    other.execute("PRAGMA locking_mode=EXCLUSIVE")
    other.execute("BEGIN EXCLUSIVE")
    release = threading.Timer(0.5, other.close)
    release.start()
    database = Database(Place.file(path), MIGRATIONS)
    database.write(adding("new"))
    release.join()
    assert len(bodies_in(database)) == 1001
    assert database.health().set_aside == ()
    database.close()


def _many_rows(connection: sqlite3.Connection) -> int:
    """A table too big to be walked in a few milliseconds; the page where it begins."""
    connection.execute("CREATE TABLE many(number, body)")
    connection.execute(
        "WITH RECURSIVE numbers(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers LIMIT 400000)"
        " INSERT INTO many SELECT n, zeroblob(100) FROM numbers"
    )
    connection.commit()
    root: int = connection.execute("SELECT rootpage FROM sqlite_schema WHERE name = 'many'").fetchone()[0]
    return root
