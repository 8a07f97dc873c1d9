"""The list of conversations and one conversation's pages, on both databases."""

from __future__ import annotations

import itertools

import pytest

from agent_bridge.channel.errors import UnknownError
from agent_bridge.channel.model import AckState, Conversation, ConversationStatus
from agent_bridge.channel.storage.answers import ConversationQuery
from integration.channel.records import START, Records


def listed(records: Records, **conditions: object) -> list[str]:
    """The ids in the list of `global`, or of what the conditions name."""
    return [entry.conversation_id for entry in entries(records, **conditions)]


def entries(records: Records, **conditions: object) -> tuple[Conversation, ...]:
    query = ConversationQuery(**{"identity": "global"} | conditions)  # type: ignore[arg-type]
    page = records.store.conversations(query)
    assert records.store.conversation_count(query) >= len(page.items)
    return page.items


@pytest.fixture
def filled(each_records: Records) -> Records:
    """Conversations in each status, and one in another identity."""
    each_records.send("1", conversation_id="active")
    each_records.send("2?", conversation_id="pending", expects_response=True, message_id="p1")
    each_records.send("3?", conversation_id="pending", expects_response=True, message_id="p2")
    each_records.send("4?", conversation_id="expired", expects_response=True, expires_at=START + 1)
    failed = each_records.send("5?", conversation_id="failed", expects_response=True).message
    each_records.ack(failed, AckState.FAILED)
    answered = each_records.send(
        "6?", conversation_id="answered", expects_response=True, from_agent_id="cid", to_agent_id="dan"
    ).message
    each_records.ack(answered, AckState.ANSWERED, actor="dan")
    each_records.send("elsewhere", conversation_id="active", identity="other")
    each_records.clock.go_on(10)
    return each_records


def test_each_status_is_found_by_its_name(filled: Records) -> None:
    found = {status.value: listed(filled, status=status) for status in ConversationStatus}

    assert found == {status.value: [status.value] for status in ConversationStatus}
    assert {entry.conversation_id: entry.status.value for entry in entries(filled)} == {
        status.value: status.value for status in ConversationStatus
    }
    assert listed(filled, pending=True) == ["pending"]
    assert listed(filled, pending=True, status=ConversationStatus.FAILED) == []


def test_an_entry_rolls_its_messages_up(filled: Records) -> None:
    [entry] = entries(filled, status=ConversationStatus.PENDING)

    assert (entry.message_count, entry.pending_count) == (2, 2)
    assert entry.pending_message_ids == ("p1", "p2")
    assert entry.last_message.content == "3?"
    assert entry.last_ack_state is None
    assert entry.participants == ("ann", "bob")
    assert (entry.updated_at, entry.archived, entry.suppressed) == (START, False, False)
    [failed] = entries(filled, status=ConversationStatus.FAILED)
    assert (failed.last_ack_state, failed.pending_message_ids) == (AckState.FAILED, ())


def test_an_entry_names_the_first_of_many_pending(each_records: Records) -> None:
    for number in range(23):
        each_records.send(
            f"{number}?", conversation_id="many", expects_response=True, message_id=f"m{number}"
        )
        each_records.send(f"{number}?", conversation_id="other", expects_response=number < 2)

    other, many = entries(each_records)
    assert many.pending_count == 23
    assert many.pending_message_ids == tuple(f"m{number}" for number in range(20))
    assert len(other.pending_message_ids) == other.pending_count == 2


def test_the_one_with_the_newest_message_comes_first(filled: Records) -> None:
    assert listed(filled) == ["answered", "failed", "expired", "pending", "active"]
    filled.send("again", conversation_id="active")
    assert listed(filled)[0] == "active"
    assert listed(filled, participant="bob")[0] == "active"


def test_a_participant_s_conversations(filled: Records) -> None:
    assert listed(filled, participant="dan") == ["answered"]
    assert listed(filled, participant="bob") == ["failed", "expired", "pending", "active"]
    assert listed(filled, participant="bob", status=ConversationStatus.FAILED) == ["failed"]
    assert listed(filled, participant="nobody") == []
    filled.send("joined", conversation_id="answered", from_agent_id="bob", to_agent_id=None)
    assert listed(filled, participant="bob")[0] == "answered"
    assert entries(filled, participant="dan")[0].participants == ("bob", "cid", "dan")


def test_no_identity_sees_another_s(filled: Records) -> None:
    assert listed(filled, identity="other") == ["active"]
    assert listed(filled, identity="third") == []
    assert listed(filled, identity="other", participant="dan") == []
    everywhere = entries(filled, identity=None)
    assert [(entry.identity, entry.conversation_id) for entry in everywhere[:2]] == [
        ("other", "active"),
        ("global", "answered"),
    ]
    assert len(everywhere) == 6


def test_an_archived_conversation_is_listed_only_when_asked_for(filled: Records) -> None:
    filled.clock.go_on(60_000)
    filled.store.archive(filled.timeline.now(), 1_000)

    assert listed(filled) == ["expired", "pending", "active"]
    assert listed(filled, archived=True) == ["answered", "failed"]
    assert listed(filled, archived=None) == ["answered", "failed", "expired", "pending", "active"]
    assert listed(filled, archived=True, participant="bob") == ["failed"]
    assert listed(filled, archived=True, status=ConversationStatus.ANSWERED) == ["answered"]
    assert all(entry.archived for entry in entries(filled, archived=True))


@pytest.mark.parametrize("participant", [None, "bob"])
def test_pages_hold_every_conversation_once(each_records: Records, participant: str | None) -> None:
    for number in range(23):
        each_records.send(str(number), conversation_id=f"c{number}")

    found: list[str] = []
    before = None
    for _ in range(5):
        page = each_records.store.conversations(
            ConversationQuery(identity="global", participant=participant, before=before, limit=5)
        )
        found += [entry.last_message.content for entry in page.items]
        before = page.next
    assert found == [str(number) for number in range(22, -1, -1)]
    assert before is None
    assert each_records.store.conversation_count(ConversationQuery(identity="global", limit=5)) == 23


def test_a_thread_s_pages_begin_with_the_newest(each_records: Records) -> None:
    for number in range(7):
        message = each_records.send(str(number), conversation_id="c").message
        each_records.ack(message, AckState.DISPLAYED)

    pages = []
    before = None
    for _ in itertools.repeat(None, 3):
        thread = each_records.store.conversation("global", "c", before=before, limit=3)
        pages.append([message.content for message in thread.messages])
        assert [ack.message_id for ack in thread.acks] == [one.message_id for one in thread.messages]
        before = thread.next
    assert pages == [["4", "5", "6"], ["1", "2", "3"], ["0"]]
    assert before is None


def test_a_thread_may_be_asked_for_without_its_identity(each_records: Records) -> None:
    each_records.send("ours", identity="a", conversation_id="c")
    each_records.send("theirs", identity="b", conversation_id="c")

    thread = each_records.store.conversation(None, "c")
    assert (thread.identity, [message.content for message in thread.messages]) == ("b", ["theirs"])
    with pytest.raises(UnknownError):
        each_records.store.conversation(None, "d")
