"""The SQLite file: how it is opened, kept an eye on, and put aside when it is damaged.

Two kinds of connections: one that writes and is kept, a few that only read. A commit is on disk when it
returns (synchronous=FULL).
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import stat
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar, cast

from sqlalchemy import Connection, Engine, create_engine, event
from sqlalchemy.pool import NullPool, QueuePool

from agent_bridge import paths
from agent_bridge.channel.storage import repair
from agent_bridge.channel.storage.backend import Fate
from agent_bridge.channel.storage.place import Place
from agent_bridge.channel.storage.trouble import UnavailableError, read_only
from agent_bridge.errors import AgentBridgeError
from agent_bridge.files.filesystems import read_mounts, remote_type
from agent_bridge.log import get_logger

T = TypeVar("T")
Mark = tuple[int, int]

LOG_LIMIT = 16 << 20
"""Bytes to which the write-ahead log is cut back once it was taken into the file."""

LOG_CEILING = 2 * LOG_LIMIT
"""Bytes from which the log is cut back while readers wait: as long as they come and go without a gap, SQLite
never finds the moment to begin it anew (4 readers, a busy writer: 8 MB more each second, without end)."""

CHECKPOINT_PAGES = LOG_LIMIT // 4096
"""Pages in the log after which a commit takes it into the file. With SQLite's 1,000 every sixtieth message
alone paid for that, and the pages that all messages change were written anew each time."""

BUSY_S = 0.25
"""Seconds that a writing connection waits for another process before `Database` asks again."""

READ_BUSY_S = 5.0
"""Seconds that a reading one waits, which is only without a write-ahead log."""

_READERS = 4
_VACUUM_PAGES = 1000
_NOT_WRITABLE = "nobody has permission to write it"

_log = get_logger("storage")


class SqliteFile:
    """`Backend` for a file. `network_type` tells the type of a remote file system, None for a local one."""

    dialect = "sqlite"

    def __init__(
        self,
        place: Place,
        *,
        check_s: float = repair.CHECK_S,
        log_ceiling: int = LOG_CEILING,
        network_type: Callable[[Path], str | None] | None = None,
    ) -> None:
        assert place.path is not None  # noqa: S101 - `Database` chose by it
        self._place = place
        self._given = place.path
        self._path = place.path
        self._name = self._log_name = ""
        self._check_s = check_s
        self._network_type = network_type or (lambda path: remote_type(path, read_mounts()))
        self._main: Mark | None = None
        self._mode = 0
        self._log_mark: Mark | None = None
        self._log_size = 0
        self._log_ceiling = self._cut_at = log_ceiling
        self._readers: Engine | None = None
        self._writers: Engine | None = None
        self._writer: Connection | None = None
        self._helper: sqlite3.Connection | None = None
        self._asked_mode = "wal"
        self.journal_mode = ""
        self.notices: tuple[str, ...] = ()

    def open(self, *, suspect: bool) -> None:
        """See `Backend`. A damaged file is put aside and a new one made."""
        self._path = self._ready_file()
        damage = self._damage(suspect=suspect)
        if damage is not None:
            kept = repair.put_aside(self._path)
            _log.error("the message database is damaged and was put aside", path=str(kept), detail=damage)
            self._path = self._ready_file()
        self._writers = _engine(self._connect_writer, None, NullPool)
        self._readers = _engine(self._connect_reader, "BEGIN", QueuePool)
        self._writer = self._writers.connect()
        self._helper = self._connect()
        self.journal_mode = str(_raw(self._writer).execute("PRAGMA journal_mode").fetchone()[0])
        # The log is made by the first look at a table.
        _raw(self._writer).execute("SELECT 1 FROM sqlite_schema LIMIT 1").fetchall()
        self._name, self._log_name = str(self._path), f"{self._path}-wal"
        self._main, self._log_mark = _mark(self._name), _mark(self._log_name)
        self._log_size, self._cut_at = 0, self._log_ceiling

    def close(self) -> None:
        """See `Backend`."""
        is_gone = self._main is not None and self.fate() == "gone"
        self.drop_writer()
        if self._helper is not None:
            self._helper.close()
            self._helper = None
        for engine in (self._readers, self._writers):
            if engine is not None:
                engine.dispose()
        self._readers = self._writers = None
        if is_gone and self._log_mark is not None and _mark(self._log_name) == self._log_mark:
            # SQLite leaves the log of a file that has gone, and would play it into the file that replaced it.
            for left in (self._log_name, f"{self._name}-shm"):
                with contextlib.suppress(OSError):
                    os.unlink(left)  # noqa: PTH108 - a name with a suffix behind
        self._main = self._log_mark = None

    def fate(self) -> Fate:
        """See `Backend`. By device and inode: two looks, a few microseconds."""
        try:
            found = os.stat(self._name)  # noqa: PTH116 - on the way of every write
        except OSError:
            return "gone"
        self._mode = found.st_mode
        if (found.st_dev, found.st_ino) != self._main:
            return "gone"
        if self.journal_mode != "wal":
            return "same"
        try:
            found = os.stat(self._log_name)  # noqa: PTH116 - on the way of every write
        except OSError:
            return "log_gone"
        self._log_size = found.st_size
        return "same" if (found.st_dev, found.st_ino) == self._log_mark else "log_gone"

    def log_is_long(self) -> bool:
        """See `Backend`."""
        return self._log_size > self._cut_at

    def refuse_read_only(self) -> None:
        """See `Backend`. An open file could still be written; whoever took the permission away meant it."""
        if not self._mode & 0o222:
            raise read_only(self._place, _NOT_WRITABLE)

    def transact(self, work: Callable[[Connection], T]) -> T:
        """See `Backend`."""
        if self._writer is None:
            self._writer = cast(Engine, self._writers).connect()
        raw = _raw(self._writer)
        raw.execute("BEGIN IMMEDIATE")
        try:
            result = work(self._writer)
            raw.execute("COMMIT")
        except BaseException:
            raw.rollback()
            raise
        finally:
            if self._writer.in_transaction():
                self._writer.rollback()  # SQLAlchemy's own notion of one; ours has ended
        return result

    @contextlib.contextmanager
    def reading(self) -> Iterator[Connection]:
        """See `Backend`."""
        with cast(Engine, self._readers).connect() as connection:
            yield connection

    def drop_writer(self) -> None:
        """See `Backend`."""
        if self._writer is not None:
            with contextlib.suppress(Exception):  # it is broken, or its file is
                self._writer.close()
            self._writer = None

    def checkpoint(self, *, truncate: bool) -> None:
        """See `Backend`. What doesn't truncate has a connection of its own: commits go on meanwhile."""
        if self.journal_mode != "wal":
            return
        if not truncate:
            cast(sqlite3.Connection, self._helper).execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()
        elif self._writer is not None:
            _raw(self._writer).execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
            # Where another process reads on and on it stays: then not tried again with every write.
            self._log_size = self.log_bytes()
            self._cut_at = self._log_size + self._log_ceiling

    def optimize(self) -> None:
        """See `Backend`. Gives free pages back where they are more than a quarter, a thousand each time.

        No statistics are made: of a sample SQLite believes that no column after the identity narrows a
        search down, and walks through whole identities. The indexes are made to be chosen without any."""
        if self._writer is None:
            return
        raw = _raw(self._writer)
        free, pages = (
            raw.execute(f"PRAGMA {name}").fetchone()[0] for name in ("freelist_count", "page_count")
        )
        if free * 4 > pages:
            # Each page is a row without columns, after the first of which `execute` would stop.
            raw.executescript(f"PRAGMA incremental_vacuum({_VACUUM_PAGES})")

    def set_aside(self) -> tuple[str, ...]:
        """See `Backend`."""
        return repair.kept_aside(self._path)

    def log_bytes(self) -> int:
        """See `Backend`."""
        try:
            return Path(f"{self._path}-wal").stat().st_size
        except OSError:
            return 0

    def _ready_file(self) -> Path:
        """The real file, made if missing, and only this user's to read."""
        try:
            paths.ensure_private_dir(self._given.parent)
            path = self._given.resolve()
            with contextlib.suppress(FileExistsError):
                os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
            found = path.stat()
            if not stat.S_ISREG(found.st_mode):
                raise UnavailableError("The message database isn't a file", path=path, remedy="Move it away.")
            self._mode = found.st_mode
            self.refuse_read_only()
            if found.st_mode & 0o077:
                path.chmod(found.st_mode & 0o700)
        except UnavailableError:
            raise
        except AgentBridgeError as error:
            raise UnavailableError(
                error.title, path=error.path, detail=error.detail, remedy=error.remedy
            ) from error
        except OSError as error:
            raise UnavailableError(
                "The message database can't be made",
                path=self._given,
                detail=error.strerror or str(error),
            ) from error
        kind = self._network_type(path)
        self._asked_mode = "wal" if kind is None else "delete"
        self.notices = () if kind is None else (_on_network(kind),)
        return path

    def _damage(self, *, suspect: bool) -> str | None:
        """What is wrong with the file. Switches the journal mode too, which needs a moment alone."""
        connection = self._connect()
        try:
            damage = repair.damage(connection, seconds=None if suspect else self._check_s)
            if damage is None:
                if not connection.execute("PRAGMA page_count").fetchone()[0]:
                    connection.execute("PRAGMA auto_vacuum=INCREMENTAL")
                connection.execute(f"PRAGMA journal_mode={self._asked_mode}").fetchall()
            return damage
        finally:
            connection.close()

    def _connect(self, wait_s: float = BUSY_S) -> sqlite3.Connection:
        # mode=rw: a file that has gone isn't made anew by a connection, which would find no tables.
        connection = sqlite3.connect(
            f"{self._path.as_uri()}?mode=rw",
            uri=True,
            timeout=wait_s,
            isolation_level=None,
            check_same_thread=False,
            cached_statements=256,
        )
        connection.execute("PRAGMA trusted_schema=OFF")
        return connection

    def _connect_writer(self) -> sqlite3.Connection:
        connection = self._connect()
        for setting in (
            "synchronous=FULL",
            "foreign_keys=ON",
            "temp_store=MEMORY",
            "cache_size=-16000",
            f"journal_size_limit={LOG_LIMIT}",
            f"wal_autocheckpoint={CHECKPOINT_PAGES}",
        ):
            connection.execute(f"PRAGMA {setting}")
        return connection

    def _connect_reader(self) -> sqlite3.Connection:
        connection = self._connect(READ_BUSY_S)
        for setting in ("query_only=ON", "temp_store=MEMORY", "cache_size=-4000"):
            connection.execute(f"PRAGMA {setting}")
        return connection


def _engine(connect: Callable[[], sqlite3.Connection], begin: str | None, pool: type[Any]) -> Engine:
    sizes = {"pool_size": _READERS, "max_overflow": _READERS, "pool_timeout": 10} if pool is QueuePool else {}
    engine = create_engine("sqlite+pysqlite://", creator=connect, poolclass=pool, **sizes)
    if begin is not None:
        event.listen(engine, "begin", lambda connection: _raw(connection).execute(begin))
    return engine


def _raw(connection: Connection) -> sqlite3.Connection:
    return cast(sqlite3.Connection, connection.connection.dbapi_connection)


def _mark(name: str) -> Mark | None:
    try:
        found = os.stat(name)  # noqa: PTH116 - on the way of every write
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _on_network(kind: str) -> str:
    return (
        f"The message database lies on a network file system ({kind}): it is kept without a write-ahead log, "
        "which is slower. AGENT_BRIDGE_STATE_DIR can name a local directory."
    )
