"""One thread that writes: everything that waits goes into one transaction, so a commit's price is shared.

A caller's write is handed back after its commit, in the order of submission, exactly once, whatever happens:
with its outcome, or with the error for which it wasn't done.
"""

from __future__ import annotations

import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from queue import Empty, SimpleQueue
from typing import Any, TypeVar

from sqlalchemy import Connection

from agent_bridge.channel.clock import Moment
from agent_bridge.channel.errors import ChannelError, StorageError
from agent_bridge.channel.storage.engine import Database
from agent_bridge.channel.storage.trouble import UnavailableError
from agent_bridge.channel.writes import Outcome, Send, Settled, Write
from agent_bridge.log import get_logger

T = TypeVar("T")

Apply = Callable[[Connection, Sequence[Write], Moment], Sequence[Outcome | ChannelError]]
"""Carries out writes in one transaction: an outcome or a refusal for each, in their order."""

GROUP_WRITES = 500
GROUP_BYTES = 8 << 20
"""What one transaction takes at most; a single larger write goes alone."""

SWITCH_S = 0.0002
"""Seconds after which a busy thread hands the interpreter over. SQLite's calls let go of it, and those that
touch the disk get it back only after this time beside a busy event loop: with Python's 5 ms a group of 20
writes took 40 ms, with 0.2 ms 3 ms."""

_GRACE_S = 15.0
_LONG_ATTEMPT_S = 0.2

_log = get_logger("storage")


class Writer:
    """The thread. `apply` and `on_commit` are called on it; `on_commit` must not block.

    An exception out of `apply` is rolled back and each of the writes is tried alone, so that one can't take
    the others down; `apply` must therefore keep nothing outside of the transaction.
    """

    def __init__(
        self,
        database: Database,
        apply: Apply,
        on_commit: Callable[[Sequence[Settled]], None],
        *,
        now: Callable[[], Moment],
        group_writes: int = GROUP_WRITES,
        group_bytes: int = GROUP_BYTES,
    ) -> None:
        self._database = database
        self._apply = apply
        self._on_commit = on_commit
        self._now = now
        self._group_writes = group_writes
        self._group_bytes = group_bytes
        self._inbox: SimpleQueue[_Item] = SimpleQueue()
        self._accepting = threading.Lock()
        self._closed = False
        self._give_up_at: float | None = None
        self._failed: tuple[float, UnavailableError] | None = None
        self._writes: deque[_Waiting] = deque()
        self._jobs: deque[_Job] = deque()
        self._thread = threading.Thread(target=self._run, name="channel-writer", daemon=True)

    def start(self) -> None:
        """Let the thread run. Makes the interpreter switch threads more often, for the whole process."""
        sys.setswitchinterval(min(sys.getswitchinterval(), SWITCH_S))
        self._thread.start()

    def submit(self, write: Write, tag: object = None) -> None:
        """Have `write` carried out; from any thread, never blocks. Raises StorageError after `close`."""
        self._put(_Waiting(write, tag, time.monotonic()))

    def sweep(self, work: Callable[[Connection], tuple[T, Sequence[Settled]]]) -> Future[T]:
        """Have `work` carried out in a transaction of its own, after the writes that wait now.

        Its Settleds go to `on_commit` after the commit; then the future has its result. Keep `work` small: a
        write that comes meanwhile waits for it.
        """
        return self._job(_Sweep(work))

    def aside(self, work: Callable[[], T]) -> Future[T]:
        """Have `work` called on the writer's thread, outside any transaction."""
        return self._job(_Aside(work))

    def waiting(self) -> int:
        """About how many writes wait."""
        return len(self._writes) + self._inbox.qsize()

    def close(self, timeout: float = 30) -> None:
        """Carry out what was submitted, then end the thread; what isn't begun within `timeout` s is handed
        back with a StorageError. Must not be called on the writer's thread.

        A thread that hangs in a server or disk that doesn't answer is left behind after as long again."""
        with self._accepting:
            if not self._closed:
                self._closed = True
                self._give_up_at = time.monotonic() + timeout
                self._inbox.put(_END)
        if self._thread.ident is None:
            self._run()
            return
        self._thread.join(timeout + max(timeout, _GRACE_S))
        if self._thread.is_alive():
            _log.error(
                "the message database doesn't answer; what waits for it isn't stored", writes=self.waiting()
            )

    def _put(self, item: _Item) -> None:
        with self._accepting:
            if self._closed:
                raise _closed()
            self._inbox.put(item)

    def _job(self, job: _Job) -> Future[Any]:
        self._put(job)
        return job.future

    def _run(self) -> None:
        ended = False
        while True:
            ended = self._take_in(wait=not ended) or ended
            if self._writes:
                self._hand_back(self._outwaited() or self._settle(self._next_group()))
            # One for each group: under a steady load the sweeps go on too.
            if self._jobs:
                self._work_off(self._jobs.popleft())
            if ended and not self._writes and not self._jobs:
                return

    def _take_in(self, *, wait: bool) -> bool:
        """Sort what came; wait for something where nothing is left to do. Whether the end was among it."""
        ended = False
        if wait and not self._writes and not self._jobs:
            ended = self._sort(self._inbox.get())
        while True:
            try:
                ended = self._sort(self._inbox.get_nowait()) or ended
            except Empty:
                return ended

    def _sort(self, item: _Item) -> bool:
        if isinstance(item, _Waiting):
            self._writes.append(item)
        elif isinstance(item, _Sweep | _Aside):
            self._jobs.append(item)
        return item is _END

    def _next_group(self) -> list[_Waiting]:
        group = [self._writes.popleft()]
        room = self._group_bytes - _weight(group[0].write)
        while self._writes and len(group) < self._group_writes:
            room -= _weight(self._writes[0].write)
            if room < 0:
                break
            group.append(self._writes.popleft())
        return group

    def _outwaited(self) -> list[Settled]:
        """Refuse what waited through all of a long attempt that failed. Each group of them would wait as long
        for the same answer, and the last one for minutes."""
        if self._failed is None:
            return []
        (began, error), self._failed = self._failed, None
        group = []
        while self._writes and self._writes[0].since <= began:
            group.append(self._writes.popleft())
        return _refused(group, error)

    def _settle(self, group: Sequence[_Waiting]) -> list[Settled]:
        if self._is_late():
            return _refused(group, _closed())
        began = time.monotonic()
        try:
            outcomes = self._database.write(lambda connection: self._carry_out(connection, group))
        except UnavailableError as error:
            if time.monotonic() - began > _LONG_ATTEMPT_S:
                self._failed = began, error
            return _refused(group, error)
        except Exception as error:  # noqa: BLE001 - whatever it is, each write gets its answer
            return self._one_by_one(group) if len(group) > 1 else _refused(group, _refusal(error))
        return [
            Settled(waiting.write, waiting.tag, outcome)
            for waiting, outcome in zip(group, outcomes, strict=True)
        ]

    def _one_by_one(self, group: Sequence[_Waiting]) -> list[Settled]:
        settled: list[Settled] = []
        for number, waiting in enumerate(group):
            settled += self._settle([waiting])
            outcome = settled[-1].outcome
            if isinstance(outcome, UnavailableError):
                # Each of the others would wait as long for the same answer.
                return settled + _refused(group[number + 1 :], outcome)
        return settled

    def _carry_out(
        self, connection: Connection, group: Sequence[_Waiting]
    ) -> Sequence[Outcome | ChannelError]:
        outcomes = self._apply(connection, [waiting.write for waiting in group], self._now())
        if len(outcomes) != len(group):
            raise RuntimeError(f"{len(group)} writes, {len(outcomes)} outcomes")
        return outcomes

    def _work_off(self, job: _Job) -> None:
        if not job.future.set_running_or_notify_cancel():
            return
        try:
            if self._is_late():
                raise _closed()
            result, settled = job.carry_out(self._database)
        except BaseException as error:  # noqa: BLE001 - it is raised where the job was asked for
            job.future.set_exception(error)
        else:
            self._hand_back(settled)
            job.future.set_result(result)

    def _hand_back(self, settled: Sequence[Settled]) -> None:
        if not settled:
            return
        try:
            self._on_commit(settled)
        except Exception:  # noqa: BLE001 - the writes after these need the thread
            _log.exception("what was written could not be handed back", writes=len(settled))

    def _is_late(self) -> bool:
        return self._give_up_at is not None and time.monotonic() > self._give_up_at


@dataclass(frozen=True, slots=True)
class _Waiting:
    write: Write
    tag: object
    since: float


@dataclass(frozen=True, slots=True)
class _Sweep:
    work: Callable[[Connection], tuple[Any, Sequence[Settled]]]
    future: Future[Any] = field(default_factory=Future)

    def carry_out(self, database: Database) -> tuple[Any, Sequence[Settled]]:
        return database.write(self.work)


@dataclass(frozen=True, slots=True)
class _Aside:
    work: Callable[[], Any]
    future: Future[Any] = field(default_factory=Future)

    def carry_out(self, _database: Database) -> tuple[Any, Sequence[Settled]]:
        return self.work(), ()


_Job = _Sweep | _Aside
_Item = _Waiting | _Job | object
_END = object()


def _weight(write: Write) -> int:
    """About the bytes that a write brings."""
    return 200 + len(write.draft.content) if isinstance(write, Send) else 200


def _refused(group: Sequence[_Waiting], error: ChannelError) -> list[Settled]:
    return [Settled(waiting.write, waiting.tag, error) for waiting in group]


def _refusal(error: Exception) -> ChannelError:
    if isinstance(error, ChannelError):
        return error
    _log.error("a write failed", exc_info=error)
    return StorageError("The message couldn't be stored", detail=f"{type(error).__name__}: {error}")


def _closed() -> StorageError:
    return StorageError("The message store is closed", remedy="Try again when the service is up.")
