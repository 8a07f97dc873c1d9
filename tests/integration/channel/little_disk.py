"""Run in a mount namespace of its own: a database on a disk of 1 MiB that fills up, and turns read-only.

Prints the state of the store's health after each step.
"""

from __future__ import annotations

import subprocess
import tempfile
from pathlib import Path

from agent_bridge.channel.errors import DiskFullError
from agent_bridge.channel.storage.engine import Database
from agent_bridge.channel.storage.place import Place
from agent_bridge.channel.storage.trouble import ReadOnlyError
from integration.channel.notes import MIGRATIONS, adding, bodies_in


def main() -> None:
    """Fill, free, lock, unlock."""
    disk = Path(tempfile.mkdtemp())
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", disk], check=True)
    database = Database(Place.file(disk / "channel" / "channel.sqlite"), MIGRATIONS)
    stored = _fill(database)
    print(database.health().state)
    assert bodies_in(database) == stored

    (disk / "ballast").unlink()
    _store(database, stored, "after")
    print(database.health().state)

    database.close()  # while a file is open for writing the kernel refuses what comes next
    subprocess.run(["mount", "-o", "remount,ro", disk], check=True)
    try:
        database.open()
    except ReadOnlyError:
        print(database.health().state)
    subprocess.run(["mount", "-o", "remount,rw", disk], check=True)
    _store(database, stored, "at the end")
    print(database.health().state)
    assert bodies_in(database) == stored
    database.close()


def _fill(database: Database) -> list[str]:
    """Write until the disk is full; what was stored until then."""
    stored: list[str] = []
    _store(database, stored, "first")
    path = database.place.path
    assert path is not None
    (path.parent.parent / "ballast").write_bytes(b"x" * 400_000)
    for number in range(1000):
        try:
            _store(database, stored, f"{number}:" + "x" * 10_000)
        except DiskFullError:
            return stored
    raise AssertionError("the disk didn't fill up")


def _store(database: Database, stored: list[str], body: str) -> None:
    database.write(adding(body))
    stored.append(body)


main()
