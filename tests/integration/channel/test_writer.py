"""One thread that writes: in order, in groups, and each write handed back exactly once, whatever happens."""

from __future__ import annotations

import contextlib
import io
import random
import sqlite3
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import Connection, insert

from agent_bridge import log
from agent_bridge.channel.clock import Moment, Timeline
from agent_bridge.channel.errors import ChannelError, InvalidError, StorageError
from agent_bridge.channel.model import Draft, Kind
from agent_bridge.channel.storage.engine import Database
from agent_bridge.channel.storage.place import Place
from agent_bridge.channel.storage.trouble import BusyError, ReadOnlyError
from agent_bridge.channel.storage.writer import Writer
from agent_bridge.channel.writes import Done, Outcome, Send, Settled, Write
from integration.channel.notes import MIGRATIONS, NOTES, adding, bodies_in

PATIENCE = 30.0
REFUSED = "refuse:"
"""Texts that begin so are refused by the rules: the others of their group go on."""
TWICE = "twice"
"""A text that the database refuses the second time, taking its whole group down."""
BROKEN = "break:"
"""Texts that begin so meet a fault in the program."""


@pytest.fixture(scope="module", autouse=True)
def _terse_log() -> Iterator[None]:
    """Faults of a program are logged with tracebacks, which would be drawn as at a terminal."""
    log.configure("error", to_terminal=False, stream=io.StringIO())
    yield
    log.reset()


class Rig:
    """A writer on a database; what was handed back, in order, and how many transactions it took."""

    def __init__(self, database: Database, **options: int) -> None:
        self.database = database
        self.settled: list[Settled] = []
        self.groups: list[int] = []
        self.moments: list[Moment] = []
        self.hold = threading.Event()
        self.hold.set()
        self.held = threading.Event()
        self._changed = threading.Condition()
        self.writer = Writer(database, self.apply, self.on_commit, now=Timeline().now, **options)

    def apply(
        self, connection: Connection, writes: Sequence[Write], moment: Moment
    ) -> Sequence[Outcome | ChannelError]:
        self.held.set()
        assert self.hold.wait(PATIENCE)
        self.moments.append(moment)
        outcomes: list[Outcome | ChannelError] = []
        rows = []
        for write in writes:
            assert isinstance(write, Send)
            body = write.draft.content
            if body.startswith(BROKEN):
                raise ZeroDivisionError(body)
            if body.startswith(REFUSED):
                outcomes.append(InvalidError(body))
            else:
                rows.append({"body": body})
                outcomes.append(Done(True))
        if rows:
            connection.execute(insert(NOTES), rows)
        return outcomes

    def on_commit(self, settled: Sequence[Settled]) -> None:
        assert threading.current_thread().name == "channel-writer"
        with self._changed:
            self.groups.append(len(settled))
            self.settled.extend(settled)
            self._changed.notify_all()

    def wait(self, count: int) -> list[Settled]:
        with self._changed:
            assert self._changed.wait_for(lambda: len(self.settled) >= count, PATIENCE), "not handed back"
            return list(self.settled)

    def tags(self) -> list[object]:
        return [settled.tag for settled in self.settled]

    def stored(self) -> list[str]:
        return [content(settled) for settled in self.settled if isinstance(settled.outcome, Done)]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "channel" / "channel.sqlite"


@pytest.fixture
def rig(path: Path) -> Iterator[Rig]:
    """A running writer on a SQLite file."""
    yield from _running(Place.file(path))


@pytest.fixture
def any_rig(each_place: Place) -> Iterator[Rig]:
    """A running writer on each kind of database."""
    yield from _running(each_place)


def _running(place: Place) -> Iterator[Rig]:
    database = Database(place, MIGRATIONS, patience_s=0.3)
    database.open()
    rig = Rig(database)
    rig.writer.start()
    yield rig
    rig.hold.set()
    rig.writer.close()
    database.close()


def send(body: str) -> Send:
    return Send(Draft(identity="global", from_agent_id="ann", kind=Kind.CHAT, content=body))


def content(settled: Settled) -> str:
    assert isinstance(settled.write, Send)
    return settled.write.draft.content


def test_a_write_is_handed_back_after_its_commit(any_rig: Rig) -> None:
    write = send("hello")
    any_rig.writer.submit(write, "tag")
    (settled,) = any_rig.wait(1)
    assert settled == Settled(write, "tag", Done(True))
    assert bodies_in(any_rig.database) == ["hello"]


def test_all_that_waits_goes_into_one_transaction_in_order(any_rig: Rig) -> None:
    _stop(any_rig)
    for number in range(400):
        any_rig.writer.submit(send(str(number)), number)
    any_rig.hold.set()
    any_rig.wait(401)
    assert any_rig.groups == [1, 400]
    assert any_rig.tags() == ["stop", *range(400)]
    assert bodies_in(any_rig.database) == ["stop", *map(str, range(400))]


def test_a_group_is_bounded_in_number_and_bytes(path: Path) -> None:
    database = Database(Place.file(path), MIGRATIONS)
    rig = Rig(database, group_writes=3, group_bytes=10_000)
    rig.writer.start()
    _stop(rig)
    for body in ["1", "2", "3", "4", "x" * 6000, "y" * 6000, "5", "z" * 50_000, "6"]:
        rig.writer.submit(send(body))
    rig.hold.set()
    rig.wait(10)
    rig.writer.close()
    assert rig.groups == [1, 3, 2, 2, 1, 1]
    database.close()


def test_what_the_rules_refuse_is_told_and_the_others_are_stored(any_rig: Rig) -> None:
    _stop(any_rig)
    for body in ["one", f"{REFUSED}two", "three"]:
        any_rig.writer.submit(send(body))
    any_rig.hold.set()
    settled = any_rig.wait(4)
    assert any_rig.groups == [1, 3]
    assert isinstance(settled[2].outcome, InvalidError)
    assert bodies_in(any_rig.database) == ["stop", "one", "three"]


@pytest.mark.parametrize("bad", [BROKEN, "stop"])
def test_a_write_that_breaks_its_group_takes_no_other_down(any_rig: Rig, bad: str) -> None:
    _stop(any_rig)
    for body in ["one", bad, "three"]:
        any_rig.writer.submit(send(body), body)
    any_rig.hold.set()
    settled = any_rig.wait(4)
    assert any_rig.tags() == ["stop", "one", bad, "three"]
    assert type(settled[2].outcome) is StorageError
    assert ("ZeroDivisionError" in str(settled[2].outcome)) is (bad == BROKEN)
    assert bodies_in(any_rig.database) == ["stop", "one", "three"]


def test_the_moment_is_that_of_the_transaction(rig: Rig) -> None:
    rig.writer.submit(send("one"))
    rig.wait(1)
    time.sleep(0.01)
    rig.writer.submit(send("two"))
    rig.wait(2)
    assert 10 <= rig.moments[1].steady - rig.moments[0].steady < 10_000


def test_an_outcome_too_few_is_a_fault_and_nothing_is_stored(path: Path) -> None:
    database = Database(Place.file(path), MIGRATIONS)
    rig = Rig(database)
    full = rig.apply
    rig.writer._apply = lambda *arguments: full(*arguments)[1:]
    rig.writer.start()
    rig.writer.submit(send("one"))
    (settled,) = rig.wait(1)
    rig.writer.close()
    assert isinstance(settled.outcome, StorageError)
    assert bodies_in(database) == []
    database.close()


def test_one_who_is_told_and_fails_stops_nobody(rig: Rig) -> None:
    told = rig.on_commit
    rig.writer._on_commit = _failing
    rig.writer.submit(send("one"))
    while not bodies_in(rig.database):
        time.sleep(0.001)
    rig.writer.aside(lambda: None).result(PATIENCE)
    rig.writer._on_commit = told
    rig.writer.submit(send("two"))
    rig.wait(1)
    assert bodies_in(rig.database) == ["one", "two"]


def test_close_carries_out_what_was_submitted(path: Path) -> None:
    database = Database(Place.file(path), MIGRATIONS)
    rig = Rig(database)
    rig.writer.start()
    _stop(rig)
    for number in range(1200):
        rig.writer.submit(send(str(number)), number)
    swept = rig.writer.sweep(lambda connection: (adding("swept")(connection), ()))
    assert rig.writer.waiting() == 1200 + 1
    threading.Timer(0.05, rig.hold.set).start()
    rig.writer.close()
    assert rig.tags() == ["stop", *range(1200)]
    assert all(isinstance(settled.outcome, Done) for settled in rig.settled)
    assert swept.result(0) > 0
    with pytest.raises(StorageError, match="closed"):
        rig.writer.submit(send("late"))
    with pytest.raises(StorageError, match="closed"):
        rig.writer.aside(lambda: None)
    rig.writer.close()
    assert len(bodies_in(database)) == 1202
    database.close()


def test_close_hands_back_even_what_it_has_no_time_for(path: Path) -> None:
    database = Database(Place.file(path), MIGRATIONS)
    rig = Rig(database, group_writes=10)
    rig.writer.start()
    _stop(rig)
    for number in range(100):
        rig.writer.submit(send(str(number)), number)
    swept = rig.writer.sweep(lambda connection: (1, ()))
    threading.Timer(0.2, rig.hold.set).start()
    rig.writer.close(timeout=0.05)
    assert rig.tags() == ["stop", *range(100)]
    assert bodies_in(database) == rig.stored() == ["stop"]
    assert isinstance(swept.exception(0), StorageError)
    database.close()


def test_close_before_start_hands_back_too(path: Path) -> None:
    database = Database(Place.file(path), MIGRATIONS)
    told: list[Sequence[Settled]] = []
    writer = Writer(database, lambda *_: [Done(True)], told.append, now=Timeline().now)
    writer.submit(send("one"))
    writer.close()
    assert [settled.outcome for group in told for settled in group] == [Done(True)]
    database.close()


def test_a_sweeps_settleds_are_told_before_its_future_is_done(any_rig: Rig) -> None:
    write = send("expired")
    seen: list[int] = []

    def work(connection: Connection) -> tuple[str, list[Settled]]:
        adding("swept")(connection)
        return "result", [Settled(write, None, Done(True))]

    future = any_rig.writer.sweep(work)
    future.add_done_callback(lambda _future: seen.append(len(any_rig.settled)))
    assert future.result(PATIENCE) == "result"
    assert any_rig.settled == [Settled(write, None, Done(True))]
    assert seen == [1]
    assert bodies_in(any_rig.database) == ["swept"]


def test_a_sweep_that_fails_leaves_nothing_and_stops_nobody(any_rig: Rig) -> None:
    def work(connection: Connection) -> tuple[None, list[Settled]]:
        adding("half")(connection)
        raise ZeroDivisionError

    assert isinstance(any_rig.writer.sweep(work).exception(PATIENCE), ZeroDivisionError)
    any_rig.writer.submit(send("one"))
    any_rig.wait(1)
    assert bodies_in(any_rig.database) == ["one"]


def test_a_sweep_given_up_by_its_caller_isnt_carried_out(rig: Rig) -> None:
    _stop(rig)
    future = rig.writer.sweep(lambda connection: (adding("swept")(connection), ()))
    assert future.cancel()
    rig.hold.set()
    rig.writer.aside(lambda: None).result(PATIENCE)
    assert bodies_in(rig.database) == ["stop"]


def test_writes_go_before_sweeps_and_sweeps_starve_not(path: Path) -> None:
    database = Database(Place.file(path), MIGRATIONS)
    rig = Rig(database, group_writes=5)
    order: list[str] = []
    told = rig.on_commit

    def on_commit(settled: Sequence[Settled]) -> None:
        order.append("writes")
        told(settled)

    def sweep(_connection: Connection) -> tuple[None, tuple[Settled, ...]]:
        order.append("sweep")
        return None, ()

    rig.writer._on_commit = on_commit
    rig.writer.start()
    _stop(rig)
    for _ in range(3):
        rig.writer.sweep(sweep)
    for number in range(20):
        rig.writer.submit(send(str(number)))
    rig.hold.set()
    rig.wait(21)
    rig.writer.close()
    assert order == ["writes", *["writes", "sweep"] * 3, "writes"]
    database.close()


def test_aside_runs_between_transactions(rig: Rig) -> None:
    for number in range(30):
        rig.writer.submit(send(f"{number}" * 3000))
    rig.wait(30)
    rig.writer.aside(lambda: rig.database.checkpoint(truncate=True)).result(PATIENCE)
    assert rig.database.health().wal_bytes == 0
    future: Future[str] = rig.writer.aside(lambda: threading.current_thread().name)
    assert future.result(PATIENCE) == "channel-writer"


def test_a_database_that_refuses_as_a_whole_refuses_all_at_once(rig: Rig, path: Path) -> None:
    rig.writer.submit(send("before"))
    rig.wait(1)
    path.chmod(0o400)
    for number in range(50):
        rig.writer.submit(send(str(number)), number)
    assert all(isinstance(settled.outcome, ReadOnlyError) for settled in rig.wait(51)[1:])
    path.chmod(0o600)
    rig.writer.submit(send("after"))
    rig.wait(52)
    assert bodies_in(rig.database) == rig.stored() == ["before", "after"]


def test_one_by_one_ends_where_the_database_refuses_as_a_whole(rig: Rig, path: Path) -> None:
    """Each of the writes would wait in vain as long as the first."""
    rig.writer.submit(send("before"))
    rig.wait(1)
    _stop(rig)
    for number in range(20):
        rig.writer.submit(send(f"{BROKEN}{number}"))
    other = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    whole = rig.writer._one_by_one

    def hold_it(group: object) -> list[Settled]:
        other.execute("BEGIN IMMEDIATE")
        return whole(group)  # type: ignore[arg-type]

    rig.writer._one_by_one = hold_it  # type: ignore[method-assign]
    began = time.monotonic()
    rig.hold.set()
    settled = rig.wait(22)[2:]
    assert time.monotonic() - began < 5
    assert all(isinstance(each.outcome, BusyError) for each in settled)
    other.close()


def test_a_switch_of_threads_comes_soon(rig: Rig) -> None:
    """Or each commit would wait 5 ms and more for a busy event loop; too fickle to be timed here."""
    assert sys.getswitchinterval() <= 0.0002


# What a caller may submit, and what must be true of it afterwards.
_BODIES = st.sampled_from(["plain", REFUSED, BROKEN, TWICE])


@settings(max_examples=12, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.lists(_BODIES, max_size=12), min_size=1, max_size=5), st.integers(1, 7))
def test_each_write_is_handed_back_once_in_order_and_truly(
    tmp_path_factory: pytest.TempPathFactory, bursts: list[list[str]], group: int
) -> None:
    path = tmp_path_factory.mktemp("rig") / "channel" / "channel.sqlite"
    database = Database(Place.file(path), MIGRATIONS)
    rig = Rig(database, group_writes=group)
    rig.writer.start()
    bodies: list[str] = []
    for burst in bursts:
        for kind in burst:
            body = kind if kind == TWICE else f"{kind}{len(bodies)}"
            bodies.append(body)
            rig.writer.submit(send(body), body)
        rig.writer.sweep(lambda connection: (None, ()))
    rig.writer.close()
    assert rig.tags() == bodies
    assert bodies_in(database) == rig.stored()
    assert rig.stored() == list(
        dict.fromkeys(body for body in bodies if not body.startswith((REFUSED, BROKEN)))
    )
    database.close()


def test_under_load_with_the_file_deleted_locked_and_made_read_only(rig: Rig, path: Path) -> None:
    """Several threads write while the file suffers; every write comes back once, in its thread's order, and
    what is said to be stored since the last deletion is there."""
    chance = random.Random(4)
    calm = threading.Event()
    sent = [0] * 4
    last_deletion = 0

    def write(name: int) -> None:
        while not (ended := calm.is_set()) or sent[name] % 10:
            rig.writer.submit(send(f"{name}-{sent[name]}"), (name, sent[name]))
            sent[name] += 1
            time.sleep(0 if ended else 0.002)

    threads = [threading.Thread(target=write, args=(name,)) for name in range(4)]
    for thread in threads:
        thread.start()
    for trouble in [*chance.choices([_lock, _forbid, _delete], k=15), _forbid]:
        time.sleep(0.01)
        if trouble is _delete:
            # Nothing is under way then, so it is known what went with the file.
            last_deletion = rig.writer.aside(lambda: _deleted(path, rig)).result(PATIENCE)
        else:
            trouble(path)
    time.sleep(0.01)
    calm.set()
    for thread in threads:
        thread.join(PATIENCE)
    rig.wait(sum(sent))
    assert Counter(rig.tags()) == Counter((name, number) for name in range(4) for number in range(sent[name]))
    for name in range(4):
        assert [tag[1] for tag in rig.tags() if tag[0] == name] == list(range(sent[name]))  # type: ignore[index]
    since = [content(each) for each in rig.settled[last_deletion:] if isinstance(each.outcome, Done)]
    assert bodies_in(rig.database) == since
    assert since
    assert any(isinstance(each.outcome, StorageError) for each in rig.settled)


def test_kill_9_loses_nothing_that_was_handed_back(path: Path) -> None:
    for _ in range(2):
        process = subprocess.Popen(
            [sys.executable, "-m", "integration.channel.mortal_writer", str(path)],
            env={"PYTHONPATH": ":".join(sys.path)},
            stdout=subprocess.PIPE,
            text=True,
        )
        assert process.stdout is not None
        answered = [process.stdout.readline().strip() for _ in range(300)]
        process.kill()
        answered += process.stdout.read().split("\n")[:-1]
        process.wait()
        process.stdout.close()
        database = Database(Place.file(path), MIGRATIONS)
        stored = bodies_in(database)
        database.close()
        assert len(stored) == len(set(stored))
        assert set(answered) - {""} <= set(stored)


def _stop(rig: Rig) -> None:
    """Let the writer stand in a transaction, so that what is submitted waits."""
    rig.hold.clear()
    rig.held.clear()
    rig.writer.submit(send("stop"), "stop")
    assert rig.held.wait(PATIENCE)


def _failing(_settled: Sequence[Settled]) -> None:
    raise ZeroDivisionError


def _delete(path: Path) -> None:
    for side in ("", "-wal", "-shm"):
        Path(f"{path}{side}").unlink(missing_ok=True)


def _deleted(path: Path, rig: Rig) -> int:
    _delete(path)
    return len(rig.settled)


def _lock(path: Path) -> None:
    other = sqlite3.connect(path, isolation_level=None, timeout=0.1)
    with contextlib.suppress(sqlite3.OperationalError):  # the writer seldom lets go
        other.execute("BEGIN IMMEDIATE")
        time.sleep(0.05)
    other.close()


def _forbid(path: Path) -> None:
    with contextlib.suppress(FileNotFoundError):  # just deleted
        path.chmod(0o400)
        time.sleep(0.005)
        path.chmod(0o600)


def test_who_waited_through_a_failed_attempt_is_not_made_to_wait_for_further_ones(path: Path) -> None:
    """While another process holds the database, each group takes all of its patience."""
    database = Database(Place.file(path), MIGRATIONS, patience_s=0.5)
    database.open()
    rig = Rig(database, group_writes=1)
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        for number in range(20):
            rig.writer.submit(send(str(number)), number)
        rig.writer.start()
        settled = rig.wait(20)
        other.execute("ROLLBACK")
    rig.writer.submit(send("later"), "later")
    assert isinstance(rig.wait(21)[-1].outcome, Done)
    rig.writer.close()
    database.close()

    assert all(isinstance(each.outcome, BusyError) for each in settled)
    assert rig.tags() == [*range(20), "later"]
    assert rig.groups == [1, 19, 1]
