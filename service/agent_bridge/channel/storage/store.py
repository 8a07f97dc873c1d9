"""The store: every write in order and in groups, reads beside them, sweeps in small batches."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import replace
from typing import TypeVar

import sqlalchemy as sa

from agent_bridge.channel.clock import Moment, Timeline
from agent_bridge.channel.errors import ChannelError, StorageError
from agent_bridge.channel.model import Conversation, Message
from agent_bridge.channel.storage import inbox, listing, reads, replay, rollups, sweeps
from agent_bridge.channel.storage.answers import (
    ConversationQuery,
    Page,
    StoreHealth,
    SweepResult,
    Thread,
    View,
)
from agent_bridge.channel.storage.apply import apply
from agent_bridge.channel.storage.engine import Database
from agent_bridge.channel.storage.pace import Pace
from agent_bridge.channel.storage.place import Place
from agent_bridge.channel.storage.schema import META, MIGRATIONS, read_moment
from agent_bridge.channel.storage.writer import Writer
from agent_bridge.channel.writes import Event, Outcome, Settled, Write

T = TypeVar("T")
Sweep = Callable[[sa.Connection, int], tuple[SweepResult, Sequence[Settled]]]
"""One batch of so many rows."""

SLOW_COUNT_S = 0.02
"""Seconds of work from which figures are kept for a while."""
JOB_S = 60.0
"""Seconds that a sweep's caller waits for one batch."""


class Store:
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
        self._timeline = timeline
        self.inbox_limit = inbox_limit
        """May be changed at any time; holds for the writes after that."""
        self._on_commit = on_commit
        self._epoch = ""
        self._paces = {name: Pace() for name in ("expire", "archive", "delete_old")}
        self._counting = threading.Lock()
        self._counts: dict[str, int] = {}
        self._count_again = 0.0
        self._database = Database(place, MIGRATIONS, opened=self._opened)
        self._writer = Writer(self._database, self._apply, self._committed, now=timeline.now)

    def open(self) -> None:
        """Open or make the database and start the writer.

        Raises StorageError; the writer runs all the same, and what comes later tries again by itself."""
        try:
            self._database.open()
        finally:
            self._writer.start()

    def close(self) -> None:
        """Carry out what was submitted, then stop."""
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
        try:
            return waiting.result(timeout)
        except TimeoutError:
            raise StorageError(
                "The message database doesn't answer", detail=f"waited {timeout:g} s"
            ) from None

    @property
    def epoch(self) -> str:
        """The database's own random id: a cursor holds only within one. Empty until it was opened once."""
        return self._epoch

    def last_seq(self) -> int:
        """The highest seq that was drawn."""
        return self._read(replay.last_seq)

    def message(self, identity: str, message_id: str) -> Message | None:
        """One message as it is now."""
        return self._read(lambda connection: reads.message(connection, identity, message_id))

    def conversations(self, query: ConversationQuery) -> Page[Conversation]:
        """A page of conversations, the one with the newest message first."""
        now = self._timeline.now().steady
        return self._read(lambda connection: listing.conversations(connection, query, now=now))

    def conversation_count(self, query: ConversationQuery) -> int:
        """How many there are on all pages; 10,000 stands for that many or more."""
        now = self._timeline.now().steady
        return self._read(lambda connection: listing.conversation_count(connection, query, now=now))

    def conversation(
        self,
        identity: str | None,
        conversation_id: str,
        agent_id: str | None = None,
        before: int | None = None,
        limit: int = 100,
    ) -> Thread:
        """A page of one conversation; `suppressed` as `agent_id` sees it. Raises UnknownError."""
        return self._read(
            lambda connection: reads.conversation(
                connection, identity, conversation_id, agent_id=agent_id, before=before, limit=limit
            )
        )

    def inbox(
        self,
        identity: str,
        agent_id: str,
        *,
        limit: int = 25,
        before: int | None = None,
        view: View = "open",
        newest_first: bool = False,
    ) -> Page[Message]:
        """A page of what awaits an agent, oldest first; `before` is the `next` of the page before it."""
        now = self._timeline.now().steady
        return self._read(
            lambda connection: inbox.inbox(
                connection,
                identity,
                agent_id,
                now=now,
                limit=limit,
                before=before,
                view=view,
                newest_first=newest_first,
            )
        )

    def inbox_count(self, identity: str, agent_id: str) -> int:
        """How many messages await an agent; 10,000 stands for that many or more, as do 1,000 broadcasts."""
        now = self._timeline.now().steady
        return self._read(lambda connection: inbox.inbox_count(connection, identity, agent_id, now=now))

    def events_since(self, identity: str | None, seq: int, limit: int = 1000) -> list[Event]:
        """Everything of an identity (None: of all) stored after `seq`, in order, as the sockets get it."""
        return self._read(lambda connection: replay.events_since(connection, identity, seq, limit))

    def counts(self) -> dict[str, int]:
        """Figures for `status`: messages, pending, conversations, archived, suppressed.

        Where counting takes long they may be as old as a hundred times that."""
        with self._counting:
            if time.monotonic() >= self._count_again:
                began = time.thread_time()
                self._counts = self._read(reads.counts)
                took = time.thread_time() - began
                self._count_again = time.monotonic() + (100 * took if took > SLOW_COUNT_S else 0)
            return dict(self._counts)

    def check(self) -> list[str]:
        """Compare what every write carries along with what all messages and acks say: a sentence for each
        difference. Reads everything."""
        return self._read(rollups.differences)

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
        """Take the write-ahead log into the file; `truncate` shortens it too and refreshes query plans."""
        if truncate:
            self._aside(self._database.optimize)
        self._aside(lambda: self._database.checkpoint(truncate=truncate))

    def health(self) -> StoreHealth:
        """How the database is; doesn't touch it."""
        return self._database.health()

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
        self._epoch = meta["epoch"]

    def _committed(self, settled: Sequence[Settled]) -> None:
        self._on_commit([replace(one, tag=None) if isinstance(one.tag, _Call) else one for one in settled])
        for one in settled:
            if isinstance(one.tag, _Call):
                one.tag.answer(one.outcome)

    def _read(self, work: Callable[[sa.Connection], T]) -> T:
        with self._database.reading() as connection:
            return work(connection)

    def _sweep(self, name: str, batch: int | None, sweep: Sweep) -> SweepResult:
        pace = self._paces[name]

        def work(connection: sa.Connection) -> tuple[SweepResult, Sequence[Settled]]:
            rows = batch or pace.rows
            began = time.monotonic()
            result, settled = sweep(connection, rows)
            if batch is None:
                pace.took(time.monotonic() - began, result.count)
            return result, settled

        return self._writer.sweep(work).result(JOB_S)

    def _aside(self, work: Callable[[], None]) -> None:
        self._writer.aside(work).result(JOB_S)


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
