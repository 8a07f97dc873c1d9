"""What `Database` asks of a kind of database; `sqlite` and `postgresql` answer."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Literal, Protocol, TypeVar

from sqlalchemy import Connection

T = TypeVar("T")

Fate = Literal["same", "log_gone", "gone"]
"""Of the file that is open: in its place; its log was taken away; itself deleted or replaced."""


class Backend(Protocol):
    """One kind of database. `open` and `close` are called while nobody uses it, the rest by several threads;
    of `transact`, `optimize` and a `checkpoint` that truncates one at a time."""

    @property
    def dialect(self) -> str:
        """SQLAlchemy's name for it."""

    @property
    def journal_mode(self) -> str:
        """SQLite's journal mode; empty elsewhere."""

    @property
    def notices(self) -> tuple[str, ...]:
        """What a person should know of it, as sentences."""

    def open(self, *, suspect: bool) -> None:
        """Connect, and check what is there; thoroughly if it is suspected of being damaged."""

    def close(self) -> None:
        """Close all connections; never raises."""

    def fate(self) -> Fate:
        """Whether what is open is still what its place holds."""

    def refuse_read_only(self) -> None:
        """Raise ReadOnlyError where a look tells that nothing may be written."""

    def transact(self, work: Callable[[Connection], T]) -> T:
        """`work` in one write transaction, committed."""

    def reading(self) -> AbstractContextManager[Connection]:
        """A connection with one consistent view, for reading only."""

    def drop_writer(self) -> None:
        """Close the connection for writing; the next transaction makes a new one."""

    def log_is_long(self) -> bool:
        """Whether the log should be cut back now, with nobody reading; as of the last `fate`."""

    def checkpoint(self, *, truncate: bool) -> None:
        """Take the log into the file; `truncate` shortens it too."""

    def optimize(self) -> None:
        """Give free pages back, a part each time."""

    def set_aside(self) -> tuple[str, ...]:
        """Damaged files that were kept."""

    def log_bytes(self) -> int:
        """Size of the write-ahead log."""
