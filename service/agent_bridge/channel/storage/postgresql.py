"""A PostgreSQL database that several registries share. Needs the extra `postgresql`.

Writers take turns by an advisory lock, so what is numbered in a transaction is committed in that order.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from typing import TypeVar, cast

from sqlalchemy import Connection, Engine, create_engine, text
from sqlalchemy.exc import DBAPIError

from agent_bridge.channel.storage.backend import Fate
from agent_bridge.channel.storage.place import Place
from agent_bridge.channel.storage.trouble import UnavailableError, UndecidedError

T = TypeVar("T")

LOCK_KEY = 0x6167_6272_6467
"""The advisory lock that a write transaction holds; per database."""
NOTICES = "agent_bridge_channel"
"""Where every committed write transaction leaves a notice, for the other registries (LISTEN)."""

CONNECT = {
    "connect_timeout": 5,
    "keepalives_idle": 30,
    "keepalives_interval": 10,
    "keepalives_count": 3,
    "tcp_user_timeout": 15_000,
}
"""For libpq, in seconds, the last in ms: a server whose machine has gone is given up within a
minute, rather than when TCP does."""

_UNDECIDED_S = 5.0
_ASK_AGAIN_S = 0.05
_OPTIONS = "-c lock_timeout=5s -c idle_in_transaction_session_timeout=60s"
_LOCK = text(
    "SELECT pg_current_xact_id()::text, pg_notify(CAST(:notices AS text), '')"
    " FROM pg_advisory_xact_lock(:key)"
)
_STATUS = text("SELECT pg_xact_status(CAST(CAST(:number AS text) AS xid8))")


class Server:
    """`Backend` for a database on a server."""

    dialect = "postgresql"
    journal_mode = ""
    notices: tuple[str, ...] = ()

    def __init__(self, place: Place, *, undecided_s: float = _UNDECIDED_S) -> None:
        self._place = place
        self._undecided_s = undecided_s
        self._engine: Engine | None = None
        self._readers: Engine | None = None
        self._writer: Connection | None = None

    def open(self, *, suspect: bool) -> None:  # noqa: ARG002 - a server looks after its files itself
        """See `Backend`."""
        try:
            self._engine = create_engine(
                self._place.url,
                pool_size=4,
                max_overflow=4,
                pool_timeout=10,
                pool_recycle=1800,
                pool_pre_ping=True,
                connect_args={**CONNECT, "options": _OPTIONS},
            )
        except ImportError as error:
            raise UnavailableError(
                "PostgreSQL needs the driver psycopg",
                detail=str(error),
                remedy="Install agent-bridge with the extra: agent-bridge[postgresql].",
            ) from error
        self._readers = self._engine.execution_options(
            isolation_level="REPEATABLE READ", postgresql_readonly=True
        )
        self._writer = self._engine.connect()

    def close(self) -> None:
        """See `Backend`."""
        self.drop_writer()
        if self._engine is not None:
            self._engine.dispose()
        self._engine = self._readers = None

    def fate(self) -> Fate:
        """See `Backend`."""
        return "same"

    def refuse_read_only(self) -> None:
        """See `Backend`: the server tells."""

    def transact(self, work: Callable[[Connection], T]) -> T:
        """See `Backend`. A connection lost during the commit: the server is asked what became of it.

        Raises UndecidedError where that can't be had: doing it again could do it twice."""
        if self._writer is None:
            self._writer = cast(Engine, self._engine).connect()
        with self._writer.begin() as transaction:
            number = self._writer.execute(_LOCK, {"key": LOCK_KEY, "notices": NOTICES}).scalar_one()
            result = work(self._writer)
            try:
                transaction.commit()
            except DBAPIError as error:
                if not (error.connection_invalidated and self._was_committed(number)):
                    raise
        return result

    @contextlib.contextmanager
    def reading(self) -> Iterator[Connection]:
        """See `Backend`."""
        with cast(Engine, self._readers).connect() as connection:
            yield connection

    def drop_writer(self) -> None:
        """See `Backend`."""
        if self._writer is not None:
            with contextlib.suppress(Exception):  # its connection is broken
                self._writer.invalidate()
                self._writer.close()
            self._writer = None

    def log_is_long(self) -> bool:
        """See `Backend`: not ours."""
        return False

    def checkpoint(self, *, truncate: bool) -> None:
        """See `Backend`: the server does it by itself."""

    def optimize(self) -> None:
        """See `Backend`: autovacuum does it."""

    def set_aside(self) -> tuple[str, ...]:
        """See `Backend`: none."""
        return ()

    def log_bytes(self) -> int:
        """See `Backend`: not ours."""
        return 0

    def _was_committed(self, number: str) -> bool:
        """Whether a transaction took effect. Raises UndecidedError where the server can't be asked."""
        give_up = time.monotonic() + self._undecided_s
        status: str | None
        while True:
            try:
                with cast(Engine, self._engine).connect() as connection:
                    status = connection.execute(_STATUS, {"number": number}).scalar()
            except DBAPIError:
                status = "unknown"
            if status in ("committed", "aborted"):
                return status == "committed"
            if time.monotonic() > give_up:
                raise UndecidedError(
                    "The database server was lost while it stored something",
                    path=self._place.shown,
                    detail="whether it is stored isn't known",
                    remedy="Look before you send it again.",
                )
            time.sleep(_ASK_AGAIN_S)
