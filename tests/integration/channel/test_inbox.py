"""Inboxes: what awaits an agent, in which order, and what doesn't; on both databases."""

from __future__ import annotations

import pytest

from agent_bridge.channel.model import AckState, Kind
from integration.channel.records import START, Records


def test_an_inbox_holds_what_is_open_oldest_first(each_records: Records) -> None:
    asked = each_records.send("asked", expects_response=True).message
    told = each_records.send("told").message
    each_records.send("for somebody else", to_agent_id="cid")
    each_records.send("elsewhere", identity="other")
    each_records.send("presence", kind=Kind.PRESENCE)

    assert each_records.inbox("bob") == ["asked", "told"]
    assert each_records.store.inbox_count("global", "bob") == 2
    for message in (asked, told):
        each_records.ack(message, AckState.DELIVERED)
    assert each_records.inbox("bob") == ["asked", "told"]
    for message in (asked, told):
        each_records.ack(message, AckState.DISPLAYED)
    assert each_records.inbox("bob") == ["asked"]
    each_records.ack(asked, AckState.ANSWERED)
    assert each_records.inbox("bob") == []
    assert each_records.store.inbox_count("global", "bob") == 0
    assert each_records.inbox("bob", view="all") == ["asked", "told", "presence"]


def test_a_broadcast_awaits_each_agent_until_that_one_saw_it(each_records: Records) -> None:
    one = each_records.send("one", to_agent_id=None).message
    two = each_records.send("two", to_agent_id=None, expects_response=True).message
    each_records.send("presence", to_agent_id=None, kind=Kind.PRESENCE)
    each_records.send("elsewhere", to_agent_id=None, identity="other")

    assert each_records.inbox("ann") == []
    assert each_records.inbox("bob") == ["one", "two"]
    each_records.ack(one, AckState.DISPLAYED, actor="bob")
    assert (each_records.inbox("bob"), each_records.inbox("cid")) == (["two"], ["one", "two"])
    each_records.ack(two, AckState.DELIVERED, actor="bob")
    assert each_records.inbox("bob") == ["two"]
    each_records.send("me", from_agent_id="bob", to_agent_id="ann", reply_to=two.message_id)
    assert (each_records.inbox("bob"), each_records.inbox("cid")) == ([], ["one", "two"])
    assert each_records.store.inbox_count("global", "cid") == 2


def test_a_broadcast_sent_anew_awaits_everybody_again(each_records: Records) -> None:
    message = each_records.send("all", to_agent_id=None).message
    each_records.ack(message, AckState.DISPLAYED, actor="bob")
    each_records.retry(message)

    assert each_records.inbox("bob") == ["all"]


def test_broadcasts_seen_in_any_order_are_seen(records: Records) -> None:
    sent = [records.send(str(number), to_agent_id=None).message for number in range(40)]
    for number in (*range(39, 20, -1), *range(15)):
        records.ack(sent[number], AckState.DISPLAYED, actor="bob")

    assert records.inbox("bob") == [str(number) for number in range(15, 21)]
    for number in range(15, 21):
        records.ack(sent[number], AckState.DISPLAYED, actor="bob")
    assert records.inbox("bob") == []
    with records.store._database.reading() as connection:
        left = connection.exec_driver_sql("SELECT count(*) FROM receipts").scalar_one()
    assert left == 0, "receipts below the mark are gone"


@pytest.mark.parametrize("newest_first", [False, True])
def test_pages_hold_everything_once(each_records: Records, newest_first: bool) -> None:
    expected = []
    for number in range(23):
        each_records.send(str(number), to_agent_id=None if number % 3 == 0 else "bob")
        expected.append(str(number))
    if newest_first:
        expected.reverse()

    found: list[str] = []
    before = None
    for _ in range(5):
        page = each_records.store.inbox("global", "bob", limit=5, before=before, newest_first=newest_first)
        found += [message.content for message in page.items]
        before = page.next
    assert found == expected
    assert before is None


@pytest.mark.parametrize(("limit", "shown"), [(-1, 1), (0, 1), (3, 3), (10**12, 5)])
def test_a_limit_is_kept_within_bounds(records: Records, limit: int, shown: int) -> None:
    for number in range(5):
        records.send(str(number))

    assert len(records.store.inbox("global", "bob", limit=limit).items) == shown


@pytest.mark.parametrize("before", [-(10**30), -1, 0, 10**30])
def test_any_number_is_a_cursor(each_records: Records, before: int) -> None:
    each_records.send("one")

    shown = [message.content for message in each_records.store.inbox("global", "bob", before=before).items]
    assert shown == (["one"] if before <= 0 else [])


def test_what_nobody_answered_in_time_stays_to_be_seen(each_records: Records) -> None:
    asked = each_records.send("asked", expects_response=True, expires_at=START + 1_000).message
    each_records.send("told", expires_at=START + 1_000)
    each_records.send("all", to_agent_id=None, expires_at=START + 1_000)
    each_records.send("later", expires_at=START + 9_000)
    each_records.send("seen", kind=Kind.CHAT, expires_at=START + 1_000, message_id="seen")
    seen = each_records.store.message("global", "seen")
    assert seen is not None
    each_records.ack(seen, AckState.DISPLAYED)
    assert each_records.inbox("bob") == ["asked", "told", "all", "later"]
    assert each_records.inbox("bob", view="expired") == []

    each_records.clock.go_on(1_000)
    assert each_records.inbox("bob") == ["later"]
    assert each_records.store.inbox_count("global", "bob") == 1
    assert each_records.inbox("bob", view="expired") == ["asked", "told", "all"]

    each_records.store.expire(each_records.timeline.now())
    assert each_records.inbox("bob") == ["later"]
    assert "asked" in each_records.inbox("bob", view="expired")
    each_records.ack(asked, AckState.ANSWERED)
    assert "asked" not in each_records.inbox("bob", view="expired")
