"""The database: opened, checked, migrated, written by one thread and read by many, whatever happens to it.

No failure is final. Each read and write looks whether the database is still the one that was opened, and
opens it anew where it was deleted, replaced, damaged, or couldn't be opened before; so the service goes on
as soon as a cause has gone, without being told.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from typing import Literal, TypeVar

from sqlalchemy import Connection

from agent_bridge.channel.errors import DiskFullError, StorageError
from agent_bridge.channel.storage.answers import StoreHealth
from agent_bridge.channel.storage.backend import Backend
from agent_bridge.channel.storage.gate import Gate
from agent_bridge.channel.storage.migrations import Migration, migrate
from agent_bridge.channel.storage.place import Place
from agent_bridge.channel.storage.postgresql import Server
from agent_bridge.channel.storage.sqlite import SqliteFile
from agent_bridge.channel.storage.trouble import BusyError, DamagedError, LostError, ReadOnlyError, told
from agent_bridge.log import get_logger

T = TypeVar("T")

PATIENCE_S = 10.0
"""Seconds that a write waits for another process that holds the database."""

_FIRST_PAUSE_S = 0.01
_LONGEST_PAUSE_S = 0.25
_RESTARTS = 2
_LONG_ATTEMPT_S = 0.5
_KEPT_EVENTS = 5

_log = get_logger("storage")


class Database:
    """One database. `opened` is called after each opening, in a write transaction, with today's schema there;
    it may run on any thread, and again when a file was deleted or replaced.

    Neither `reading` nor `write` may be used within one another on one thread.
    """

    def __init__(
        self,
        place: Place,
        migrations: Sequence[Migration],
        *,
        opened: Callable[[Connection], object] | None = None,
        backend: Backend | None = None,
        patience_s: float = PATIENCE_S,
    ) -> None:
        self.place = place
        self._migrations = migrations
        self._opened = opened
        self._backend = backend or (SqliteFile(place) if place.is_sqlite else Server(place))
        self._patience_s = patience_s
        self._gate = Gate()
        self._one_writer = threading.Lock()
        self._is_open = self._is_closed = False
        self._is_lost = False
        self._is_suspect = False
        self._not_before = 0.0
        self._read_failure: StorageError | None = None
        self._write_failure: StorageError | None = None
        self._happened: tuple[str, ...] = ()

    @property
    def dialect(self) -> str:
        """`sqlite` or `postgresql`."""
        return self._backend.dialect

    def open(self) -> None:
        """Open, check and migrate. Raises StorageError; later reads and writes try again by themselves."""
        self._is_closed = False
        self._ensure_open()

    def close(self) -> None:
        """Wait for whoever reads or writes, then close; later reads and writes are refused.

        Who hangs in a server or disk that doesn't answer isn't waited for longer than `patience_s`."""
        self._is_closed = True
        try:
            with self._gate.alone(self._patience_s):
                self._backend.close()
                self._is_open = False
        except TimeoutError:
            _log.error("the message database doesn't answer and is left as it is", path=self.place.shown)

    @contextlib.contextmanager
    def reading(self) -> Iterator[Connection]:
        """A connection for reading, with one consistent view; for any thread. Keep the block short: a view
        that is held open lets the log grow. Raises StorageError, also for what goes wrong in the block."""
        try:
            self._ensure_open()
            with self._gate.shared(), told(self.place), self._backend.reading() as connection:
                yield connection
        except StorageError as error:
            self._read_failure = error
            self._doubt(error)
            raise
        self._read_failure = None

    def write(self, work: Callable[[Connection], T]) -> T:
        """Call `work` in one write transaction and commit: when this returns, it is on disk.

        `work` is called again after a roll-back that isn't its fault, so it must keep nothing elsewhere. What
        it raises itself is raised after a roll-back. Raises StorageError, DiskFullError: nothing was stored.
        """
        give_up = time.monotonic() + self._patience_s
        pause, restarts = _FIRST_PAUSE_S, 0
        with self._one_writer:
            if self._backend.log_is_long():
                self._cut_log()
            while True:
                try:
                    result = self._write_once(work)
                except BusyError as error:
                    self._write_failure = error
                    if time.monotonic() + pause > give_up:
                        raise
                    time.sleep(pause)
                    pause = min(2 * pause, _LONGEST_PAUSE_S)
                except (LostError, DamagedError) as error:
                    self._write_failure = error
                    self._doubt(error)
                    restarts += 1
                    if restarts > _RESTARTS:
                        raise
                except StorageError as error:
                    self._write_failure = error
                    raise
                else:
                    self._write_failure = None
                    return result

    def checkpoint(self, *, truncate: bool = False) -> None:
        """Take the write-ahead log into the file; `truncate` waits for readers and shortens the log too, and
        only for that writes wait. One at a time.

        Raises StorageError. Nothing to do on PostgreSQL."""
        if truncate:
            self._tend(lambda: self._backend.checkpoint(truncate=True))
            return
        self._ensure_open()
        with self._gate.shared(), told(self.place):
            self._backend.checkpoint(truncate=False)

    def optimize(self) -> None:
        """Give free pages back, a part each time. Raises StorageError. Nothing to do on PostgreSQL."""
        self._tend(self._backend.optimize)

    def health(self) -> StoreHealth:
        """How it is, as of the last read and write; doesn't touch the database."""
        failure = self._write_failure or self._read_failure
        return StoreHealth(
            state=_state(failure),
            reasons=(failure.sentence(),) if failure is not None else (),
            notices=(*self._backend.notices, *self._happened),
            path=self.place.path,
            journal_mode=self._backend.journal_mode,
            set_aside=self._backend.set_aside(),
            wal_bytes=self._backend.log_bytes(),
        )

    def _write_once(self, work: Callable[[Connection], T]) -> T:
        self._ensure_open()
        with self._gate.shared(), told(self.place):
            self._backend.refuse_read_only()
            result = self._backend.transact(work)
            if self._backend.fate() == "gone":
                # It went into a file that has no name any more: done again, in the new one.
                raise LostError("The message database was deleted or replaced", path=self.place.shown)
            return result

    def _cut_log(self) -> None:
        try:
            with self._gate.alone(), told(self.place):
                self._backend.checkpoint(truncate=True)
        except StorageError as error:
            # The write that comes next meets the same cause, and is the one to tell.
            _log.warning("the log of the message database can't be cut back", reason=error.sentence())

    def _tend(self, work: Callable[[], None]) -> None:
        self._ensure_open()
        with self._one_writer, self._gate.shared(), told(self.place):
            work()

    def _doubt(self, error: StorageError) -> None:
        self._is_lost = self._is_lost or isinstance(error, LostError)
        self._is_suspect = self._is_suspect or isinstance(error, DamagedError)

    def _ensure_open(self) -> None:
        if self._is_sound():
            return
        with self._gate.alone():
            if not self._is_sound():
                self._reopen()

    def _is_sound(self) -> bool:
        return self._is_open and not (self._is_lost or self._is_suspect) and self._backend.fate() == "same"

    def _reopen(self) -> None:
        """Alone. All connections are closed first: what one of them does to the log, it does by its name."""
        if self._is_closed:
            raise StorageError("The message database is closed", path=self.place.shown)
        began = time.monotonic()
        if self._write_failure is not None and began < self._not_before:
            raise self._write_failure.with_traceback(None)
        if self._is_open and self._backend.fate() == "gone":
            self._tell(
                "The message database was deleted or replaced while it was in use; what is there now is used."
            )
        self._is_open = False
        self._backend.close()
        try:
            with told(self.place):
                self._backend.open(suspect=self._is_suspect)
                migrate(self._backend.transact, self._migrations, self.place.shown)
                if self._opened is not None:
                    self._backend.transact(self._opened)
        except BaseException as error:
            self._backend.close()
            self._write_failure = error if isinstance(error, StorageError) else self._write_failure
            # An attempt that took long (a server that doesn't answer) isn't made again at once.
            took = time.monotonic() - began
            self._not_before = time.monotonic() + took if took > _LONG_ATTEMPT_S else 0.0
            raise
        self._is_open = True
        self._is_lost = self._is_suspect = False
        self._write_failure = None

    def _tell(self, sentence: str) -> None:
        _log.warning(sentence, path=self.place.shown)
        stamped = f"{datetime.now(UTC).isoformat(timespec='seconds')}: {sentence}"
        self._happened = (*self._happened, stamped)[-_KEPT_EVENTS:]


def _state(failure: StorageError | None) -> Literal["ok", "read_only", "full", "failed"]:
    if failure is None:
        return "ok"
    if isinstance(failure, DiskFullError):
        return "full"
    return "read_only" if isinstance(failure, ReadOnlyError) else "failed"
