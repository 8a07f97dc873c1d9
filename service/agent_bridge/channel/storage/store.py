"""The store: every write in order and in groups, reads beside them, sweeps in small batches."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import replace
from typing import TypeVar

import sqlalchemy as sa

from agent_bridge.channel.clock import Moment, Timeline
from agent_bridge.channel.errors import ChannelError, StorageError
from agent_bridge.channel.storage import schema, sweeps
from agent_bridge.channel.storage.answers import (
    StoreHealth,
    SweepResult,
)
from agent_bridge.channel.storage.apply import apply
from agent_bridge.channel.storage.engine import Database
from agent_bridge.channel.storage.listener import Listener
from agent_bridge.channel.storage.pace import Pace
from agent_bridge.channel.storage.place import Place
from agent_bridge.channel.storage.reader import Reader
from agent_bridge.channel.storage.schema import META, MIGRATIONS, read_moment
from agent_bridge.channel.storage.writer import Writer
from agent_bridge.channel.writes import Event, Outcome, Settled, Write

T = TypeVar("T")
Sweep = Callable[[sa.Connection, int], tuple[SweepResult, Sequence[Settled]]]
"""One batch of so many rows."""

JOB_S = 60.0
"""Seconds that a sweep's caller waits for one batch."""


class Store(Reader):
    """Messages, acks and conversations. Every method may be called from any thread.

    `on_commit` gets what was settled, in the order of submission, on the writer's thread; it must not block,
    nor call the store. Reads and sweeps raise StorageError where the database can't be used.
    """

    def __init__(
        self,
        place: Place,
        timeline: Timeline,
        *,
        inbox_limit: int = 1000,
        on_commit: Callable[[Sequence[Settled]], None],
    ) -> None:
        super().__init__(Database(place, MIGRATIONS, opened=self._opened), timeline)
        self.inbox_limit = inbox_limit
        """May be changed at any time; holds for the writes after that."""
        self._on_commit = on_commit
        self._epoch = ""
        self._reached: dict[str, int] = {}
        self._paces = {name: Pace() for name in ("expire", "archive", "delete_old")}
        self._writer = Writer(self._database, self._apply, self._committed, now=timeline.now)
        self._listener: Listener | None = None

    def open(self) -> None:
        """Open or make the database and start the writer.

        Raises StorageError; the writer runs all the same, and what comes later tries again by itself."""
        try:
            self._database.open()
        finally:
            self._writer.start()

    def follow(self, heard: Callable[[], None]) -> None:
        """Have `heard` called, on a thread of its own, whenever others may have stored something.

        Nothing to hear where the database is a file: that is this process's own."""
        if not self._database.place.is_sqlite:
            self._listener = Listener(self._database.place, heard)
            self._listener.start()

    def close(self) -> None:
        """Carry out what was submitted, then stop."""
        if self._listener is not None:
            self._listener.stop()
        self._writer.close()
        self._database.close()

    def submit(self, write: Write, tag: object = None) -> None:
        """Have `write` carried out; never blocks. `on_commit` gets it back with `tag`.

        Raises StorageError after `close`."""
        self._writer.submit(write, tag)

    def call(self, write: Write, timeout: float = 30) -> Outcome:
        """Carry out `write` and wait for it, at most `timeout` s; `on_commit` is told too.

        Raises ChannelError. Not for the writer's thread."""
        waiting: Future[Outcome] = Future()
        self._writer.submit(write, _Call(waiting))
        return _waited_for(waiting, timeout)

    @property
    def epoch(self) -> str:
        """The database's own random id: a cursor holds only within one. Empty until it was opened once."""
        return self._epoch

    @property
    def reached(self) -> int:
        """The highest seq that is known to be stored, without a look at the database."""
        return self._reached.get(self._epoch, 0)

    def expire(self, now: Moment, batch: int | None = None) -> SweepResult:
        """Give open messages whose time is over a `failed` ack by the registry.

        One batch; `batch` None: as many as a write may wait for. So with the other sweeps."""
        return self._sweep(
            "expire",
            batch,
            lambda connection, rows: sweeps.expire(connection, now, rows, self.inbox_limit),
        )

    def archive(self, now: Moment, older_than_ms: int, batch: int | None = None) -> SweepResult:
        """Take finished conversations out of the list, whose last word is older than `older_than_ms`."""
        return self._sweep(
            "archive",
            batch,
            lambda connection, rows: (sweeps.archive(connection, now, older_than_ms, rows), ()),
        )

    def delete_old(self, now: Moment, older_than_ms: int, batch: int | None = None) -> SweepResult:
        """Delete conversations whose last word is older than `older_than_ms`; counts messages."""
        return self._sweep(
            "delete_old",
            batch,
            lambda connection, rows: (sweeps.delete_old(connection, now, older_than_ms, rows), ()),
        )

    def upkeep(self, *, truncate: bool = False) -> None:
        """Take the write-ahead log into the file beside the writes that come; `truncate` shortens it too, and
        gives free pages back. Not for two threads at once."""
        if truncate:
            self._aside(self._database.optimize)
        self._database.checkpoint()
        if truncate:
            # Little is left to do while writes wait.
            self._aside(lambda: self._database.checkpoint(truncate=True))

    def health(self) -> StoreHealth:
        """How the database is; doesn't touch it."""
        health = self._database.health()
        problem = None if self._listener is None else self._listener.problem
        # Where nothing can be stored either, that says why.
        return health if problem is None or health.reasons else replace(health, reasons=(problem,))

    def waiting(self) -> int:
        """About how many writes wait."""
        return self._writer.waiting()

    def _apply(
        self, connection: sa.Connection, writes: Sequence[Write], moment: Moment
    ) -> list[Outcome | ChannelError]:
        return apply(connection, writes, moment, inbox_limit=self.inbox_limit)

    def _opened(self, connection: sa.Connection) -> None:
        meta = dict(connection.execute(sa.select(META.c.name, META.c.value)).all())
        if not self._epoch:
            last = read_moment(meta["moment"])
            self._timeline.resume(last if last.steady else None)
        epoch, last_seq = meta["epoch"], int(meta["last_seq"])
        if last_seq < self._reached.get(epoch, 0):
            # An older copy was put in its place: it will draw numbers that were drawn before.
            epoch = schema.renew_epoch(connection)
        self._reached[epoch] = last_seq
        self._epoch = epoch

    def _committed(self, settled: Sequence[Settled]) -> None:
        reached = max((event.seq or 0 for one in settled for event in _events_of(one)), default=0)
        self._reached[self._epoch] = max(self.reached, reached)
        told = [replace(one, tag=None) if isinstance(one.tag, _Call) else one for one in settled]
        try:
            self._on_commit(told)
        finally:
            for one in settled:
                if isinstance(one.tag, _Call):
                    one.tag.answer(one.outcome)

    def _sweep(self, name: str, batch: int | None, sweep: Sweep) -> SweepResult:
        pace = self._paces[name]
        rows = batch or pace.rows
        began = 0.0

        def work(connection: sa.Connection) -> tuple[SweepResult, Sequence[Settled]]:
            nonlocal began
            began = time.monotonic()
            return sweep(connection, rows)

        result = _waited_for(self._writer.sweep(work), JOB_S)
        if batch is None:
            # With its commit, which a write waits for too.
            pace.took(time.monotonic() - began, result.count)
        return result

    def _aside(self, work: Callable[[], None]) -> None:
        _waited_for(self._writer.aside(work), JOB_S)


def _events_of(settled: Settled) -> tuple[Event, ...]:
    return () if isinstance(settled.outcome, ChannelError) else settled.outcome.events


def _waited_for(waiting: Future[T], seconds: float) -> T:
    try:
        return waiting.result(seconds)
    except TimeoutError:
        raise StorageError("The message database doesn't answer", detail=f"waited {seconds:g} s") from None


class _Call:
    """The tag of a write whose caller waits."""

    __slots__ = ("_waiting",)

    def __init__(self, waiting: Future[Outcome]) -> None:
        self._waiting = waiting

    def answer(self, outcome: Outcome | ChannelError) -> None:
        if isinstance(outcome, ChannelError):
            self._waiting.set_exception(outcome)
        else:
            self._waiting.set_result(outcome)
