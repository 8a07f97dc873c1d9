"""Replay: whoever was away is told the same as those who weren't; on both databases."""

from __future__ import annotations

import pytest

from agent_bridge.channel.model import AckState
from integration.channel.records import Records


def test_a_replay_tells_what_was_told(each_records: Records) -> None:
    asked = each_records.send("asked", expects_response=True).message
    each_records.send("all", to_agent_id=None)
    each_records.ack(asked, AckState.DELIVERED, actor="bridge", detail="on its way")
    each_records.suppress("ann", asked.conversation_id)
    each_records.send("more", conversation_id=asked.conversation_id)

    told = each_records.events()
    again = each_records.store.events_since("global", 0)

    assert [event.seq for event in told] == [1, 2, 3, 4, 5, 6]
    # The first message has been delivered since, the suppression was taken back.
    assert again[0].data == {**told[0].data, "state": "delivered_to_bridge"}
    assert [(event.seq, event.type) for event in again] == [
        (event.seq, event.type) for event in told if event.seq != 4
    ]
    assert again[1:] == [event for event in told[1:] if event.seq != 4]


@pytest.mark.parametrize("since", range(7))
def test_nothing_is_missed_and_nothing_told_twice(records: Records, since: int) -> None:
    first = records.send("1").message
    records.ack(first, AckState.DISPLAYED)
    records.suppress("bob", records.send("3", to_agent_id="cid").message.conversation_id)
    records.send("5", to_agent_id=None)
    records.ack(first, AckState.ANSWERED)

    assert [event.seq for event in records.store.events_since("global", since)] == list(range(since + 1, 7))


def test_a_replay_in_parts_is_the_whole(each_records: Records) -> None:
    for number in range(9):
        message = each_records.send(str(number)).message
        each_records.ack(message, AckState.DISPLAYED)
    whole = each_records.store.events_since("global", 0)

    parts, since = [], 0
    while some := each_records.store.events_since("global", since, limit=4):
        assert len(some) <= 4
        parts += some
        since = some[-1].seq or 0
    assert parts == whole
    assert len(whole) == 18


def test_a_replay_stays_within_its_identity(each_records: Records) -> None:
    for identity in ("a", "b"):
        message = each_records.send(identity, identity=identity, conversation_id="c").message
        each_records.ack(message, AckState.DISPLAYED)
        each_records.suppress("bob", "c", identity)

    ours = each_records.store.events_since("a", 0)
    assert [event.seq for event in ours] == [1, 2, 3]
    assert {event.identity for event in ours} == {"a"}
    assert {event.data["identity"] for event in ours} == {"a"}
    assert [event.seq for event in each_records.store.events_since(None, 0)] == [1, 2, 3, 4, 5, 6]
    assert each_records.store.events_since("c", 0) == []


@pytest.mark.parametrize("since", [-(10**40), 10**40, (1 << 63) - 1])
def test_any_number_is_a_cursor(each_records: Records, since: int) -> None:
    each_records.send()

    assert len(each_records.store.events_since("global", since)) == (1 if since < 0 else 0)
