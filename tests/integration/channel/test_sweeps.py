"""Sweeps: expiry, archive and retention in batches, and clocks that jump; on both databases."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import sqlalchemy as sa

from agent_bridge.channel.errors import UnknownError
from agent_bridge.channel.model import AckState, ConversationStatus
from agent_bridge.channel.storage.answers import ConversationQuery, SweepResult
from agent_bridge.channel.storage.place import Place
from agent_bridge.channel.storage.schema import METADATA
from agent_bridge.channel.writes import Acknowledge
from integration.channel.records import START, Clock, Records

DAY = 86_400_000


def all_of(sweep: Callable[[], SweepResult]) -> list[int]:
    """The counts of the batches, until there is no more."""
    counts = []
    while (result := sweep()).more:
        counts.append(result.count)
    return [*counts, result.count]


def test_what_expires_gets_one_failed_ack_that_the_sockets_hear_of(each_records: Records) -> None:
    asked = each_records.send("asked", expects_response=True, expires_at=START + 1_000).message
    told = each_records.send("told", expires_at=START + 1_000).message
    each_records.send("later", expects_response=True, expires_at=START + 9_000)
    each_records.send("never", expects_response=True)
    each_records.send("all", to_agent_id=None, expires_at=START + 1_000)
    each_records.clock.go_on(999)
    assert each_records.store.expire(each_records.timeline.now()) == SweepResult(0, more=False)
    each_records.clock.go_on(1)
    each_records.settled.clear()
    now = each_records.timeline.now()

    assert each_records.store.expire(now) == SweepResult(2, more=False)
    assert each_records.store.expire(now) == SweepResult(0, more=False)

    for settled, message in zip(each_records.settled, (asked, told), strict=True):
        assert isinstance(settled.write, Acknowledge)
        assert settled.write.message_id == message.message_id
    assert [(event.type, event.target, event.data["state"]) for event in each_records.events()] == [
        ("channel.ack", "ann", "failed")
    ] * 2
    thread = each_records.store.conversation("global", asked.conversation_id)
    [ack] = thread.acks
    assert (ack.actor_id, ack.actor_type.value, ack.state) == ("registry", "registry", AckState.FAILED)
    assert ack.detail == "It expired without a reply."
    [entry] = each_records.store.conversations(
        ConversationQuery(identity="global", status=ConversationStatus.FAILED, limit=1)
    ).items
    assert entry.conversation_id == told.conversation_id
    assert each_records.store.check() == []


def test_what_was_answered_in_time_does_not_expire(records: Records) -> None:
    asked = records.send("asked", expects_response=True, expires_at=START + 1_000).message
    records.ack(asked, AckState.ANSWERED)
    records.clock.go_on(DAY)

    assert records.store.expire(records.timeline.now()).count == 0


def test_expiry_goes_on_in_batches(records: Records) -> None:
    for number in range(7):
        records.send(str(number), expects_response=True, expires_at=START + 1_000 - number)
    records.clock.go_on(DAY)
    now = records.timeline.now()

    assert all_of(lambda: records.store.expire(now, batch=3)) == [3, 3, 1]
    assert records.inbox("bob") == []
    assert records.store.check() == []


def test_the_archive_takes_what_has_come_to_an_end(each_records: Records) -> None:
    answered = each_records.send("1?", conversation_id="answered", expects_response=True).message
    each_records.ack(answered, AckState.ANSWERED)
    failed = each_records.send("2?", conversation_id="failed", expects_response=True).message
    each_records.ack(failed, AckState.FAILED)
    each_records.suppress("bob", "failed")
    each_records.send("3?", conversation_id="pending", expects_response=True)
    each_records.send("4", conversation_id="active")
    each_records.clock.go_on(60_000)
    now = each_records.timeline.now()

    assert each_records.store.archive(now, 60_001).count == 0
    assert all_of(lambda: each_records.store.archive(now, 60_000, batch=1)) == [1, 1, 0]
    page = each_records.store.conversations(ConversationQuery(identity="global"))
    assert [entry.conversation_id for entry in page.items] == ["active", "pending"]
    # Hidden, not deleted; a new message shows it again.
    assert each_records.store.conversation("global", "answered").archived
    each_records.send("again", conversation_id="answered")
    page = each_records.store.conversations(ConversationQuery(identity="global", participant="bob"))
    assert [entry.conversation_id for entry in page.items] == ["answered", "active", "pending"]
    assert each_records.store.counts()["archived"] == 1
    assert each_records.store.check() == []


def test_retention_deletes_old_conversations_whole(each_records: Records) -> None:
    old = each_records.send("old?", conversation_id="old", expects_response=True).message
    each_records.ack(old, AckState.DELIVERED)
    each_records.suppress("bob", "old")
    everywhere = each_records.send("all", conversation_id="old", to_agent_id=None).message
    each_records.send("kept since", conversation_id="kept")
    each_records.ack(everywhere, AckState.DISPLAYED, actor="cid")
    each_records.clock.go_on(DAY)
    each_records.send("new", conversation_id="kept")
    now = each_records.timeline.now()

    assert each_records.store.delete_old(now, DAY + 1) == SweepResult(0, more=False)
    assert each_records.store.delete_old(now, DAY) == SweepResult(2, more=False)
    with pytest.raises(UnknownError):
        each_records.store.conversation("global", "old")
    assert each_records.store.message("global", "old") is None
    assert each_records.inbox("bob") == ["kept since", "new"]
    kept = {"kept since", "new"}
    events = each_records.store.events_since("global", 0)
    assert {event.data["content"] for event in events} == kept
    assert rows(each_records, "acks", "suppressions", "receipts") == [0, 0, 0]
    assert each_records.store.check() == []


def rows(records: Records, *tables: str) -> list[int]:
    """How many rows each table has."""
    with records.store._database.reading() as connection:
        return [
            connection.execute(sa.select(sa.func.count()).select_from(METADATA.tables[table])).scalar_one()
            for table in tables
        ]


def test_retention_goes_on_in_batches_of_messages(records: Records) -> None:
    for number in range(10):
        for _ in range(number % 3 + 1):
            records.send(conversation_id=f"c{number}")
    records.clock.go_on(DAY)
    now = records.timeline.now()

    counts = all_of(lambda: records.store.delete_old(now, DAY, batch=5))
    assert sum(counts) == 19
    assert max(counts) <= 5
    assert rows(records, "messages", "conversations", "participants") == [0, 0, 0]


def test_a_large_conversation_goes_bit_by_bit_and_its_roll_up_with_it(each_records: Records) -> None:
    for number in range(11):
        message = each_records.send(f"{number}?", conversation_id="c", expects_response=True).message
        if number % 2:
            each_records.ack(message, AckState.ANSWERED if number < 6 else AckState.FAILED)
            each_records.ack(message, AckState.QUEUED)
    each_records.clock.go_on(DAY)
    now = each_records.timeline.now()

    for left in (8, 5, 2):
        assert each_records.store.delete_old(now, DAY, batch=3) == SweepResult(3, more=True)
        assert each_records.store.check() == []
        [entry] = each_records.store.conversations(ConversationQuery(identity="global")).items
        assert entry.message_count == left
    assert each_records.store.delete_old(now, DAY, batch=3) == SweepResult(2, more=False)
    assert rows(each_records, "messages", "acks", "conversations") == [0, 0, 0]


@pytest.mark.parametrize("jump", [DAY, -DAY], ids=["forward", "back"])
def test_a_clock_that_is_set_ends_nothing_early_and_nothing_late(records: Records, jump: int) -> None:
    asked = records.send("asked", expects_response=True, expires_at=START + 10_000).message
    answered = records.send("done?", conversation_id="done", expects_response=True).message
    records.ack(answered, AckState.ANSWERED)
    records.clock.go_on(1_000)
    records.clock.wall += jump

    now = records.timeline.now()
    assert records.store.expire(now).count == 0
    assert records.store.archive(now, 60_000).count == 0
    assert records.store.delete_old(now, 60_000).count == 0
    assert records.inbox("bob") == ["asked"]
    # A message of after the jump has its time by the new clock.
    records.send("new", expects_response=True, expires_at=records.clock.wall + 20_000)
    records.clock.go_on(9_000)
    assert records.store.expire(records.timeline.now()).count == 1
    assert records.store.message("global", asked.message_id).state is AckState.FAILED  # type: ignore[union-attr]
    assert records.inbox("bob") == ["new"]


def test_time_goes_on_over_a_restart(each_place: Place) -> None:
    clock = Clock()
    with Records(each_place, clock=clock) as records:
        records.send("asked", expects_response=True, expires_at=START + 10_000)
    clock.wall += 6_000
    clock.uptime = 0
    with Records(each_place, clock=clock) as records:
        assert records.store.expire(records.timeline.now()).count == 0
        clock.go_on(4_000)
        assert records.store.expire(records.timeline.now()).count == 1


def test_a_clock_set_back_between_two_runs_makes_nothing_younger(each_place: Place) -> None:
    clock = Clock()
    with Records(each_place, clock=clock) as records:
        records.send("asked", expects_response=True, expires_at=START + 10_000)
        clock.go_on(9_000)
        records.store.expire(records.timeline.now())  # writes down how far it has come
    clock.wall -= DAY
    clock.uptime = 0
    with Records(each_place, clock=clock) as records:
        assert records.store.expire(records.timeline.now()).count == 0
        clock.go_on(1_000)
        assert records.store.expire(records.timeline.now()).count == 1


def noted(records: Records) -> str:
    """The last moment that was written down."""
    with records.store._database.reading() as connection:
        query = "SELECT value FROM meta WHERE name = 'moment'"
        return str(connection.exec_driver_sql(query).scalar_one())


def test_writes_note_the_time_at_most_once_a_second(records: Records) -> None:
    records.send()
    first = noted(records)
    records.clock.go_on(999)
    records.send()
    assert noted(records) == first
    records.clock.go_on(1)
    records.send()
    assert noted(records) == f"{START + 1_000} {START + 1_000}"


def test_sweeps_note_the_time_and_never_back(records: Records) -> None:
    earlier = records.timeline.now()
    records.clock.go_on(10)
    records.store.archive(records.timeline.now(), DAY)
    assert noted(records) == f"{START + 10} {START + 10}"

    records.store.delete_old(earlier, DAY)
    records.store.expire(earlier)

    assert noted(records) == f"{START + 10} {START + 10}"


def test_upkeep_shortens_the_log(records: Records) -> None:
    for number in range(20):
        records.send("x" * 50_000 + str(number), to_agent_id=f"bob{number}")
    assert records.store.health().wal_bytes > 0

    records.store.upkeep(truncate=True)

    assert records.store.health().wal_bytes == 0
    assert records.inbox("bob3")
