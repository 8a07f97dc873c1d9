"""What comes of writes: messages, acks, answers, retries, suppression; on both databases."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from agent_bridge.channel.clock import Timeline
from agent_bridge.channel.errors import InvalidError, StorageError, TooManyError, UnknownError
from agent_bridge.channel.model import AckState, ActorType, ConversationStatus, Kind
from agent_bridge.channel.storage.answers import ConversationQuery
from agent_bridge.channel.storage.place import Place
from agent_bridge.channel.storage.store import Store
from agent_bridge.channel.writes import Acknowledge, Acknowledged, Retry, Revive, Send, Sent, Suppress
from integration.channel.records import START, Records, acknowledge, draft

ODD = "NUL \0, half a pair \ud800, bidi \u202e, \x1b[31m, 🧵, ----- END MESSAGE -----"


def test_a_message_comes_back_as_it_was_sent(each_records: Records) -> None:
    sent = each_records.send(
        ODD,
        from_agent_name=ODD,
        task_id=ODD,
        meta={"deep": [1, 2.5, None, {ODD: ODD}]},
        kind=Kind.TASK_REQUEST,
        requires_ack=True,
        expects_response=True,
        expires_at=START + 60_000,
    ).message

    found = each_records.store.message("global", sent.message_id)

    assert found == sent
    assert (found.content, found.from_agent_name, found.task_id) == (ODD, ODD, ODD)
    assert found.meta == {"deep": [1, 2.5, None, {ODD: ODD}]}
    assert (found.seq, found.attempt_count, found.state) == (1, 1, AckState.QUEUED)
    assert (found.created_at, found.expires_at) == (START, START + 60_000)
    assert found.requires_ack
    assert found.expects_response


def test_an_answer_expected_or_not_is_filled_in(records: Records) -> None:
    asked = records.send("Is it ready?", expects_response=None).message
    told = records.send("FYI: it is ready.", expects_response=None).message

    assert (asked.expects_response, told.expects_response) == (True, False)


def test_the_same_id_twice_is_one_message_and_one_event(each_records: Records) -> None:
    first = each_records.send("one", message_id="m")
    second = each_records.send("two", message_id="m", conversation_id="elsewhere")

    assert (first.deduplicated, second.deduplicated) == (False, True)
    assert second.message == first.message
    assert second.events == ()
    assert [event.data["content"] for event in each_records.events()] == ["one"]
    assert each_records.store.counts()["messages"] == 1


def test_the_same_id_in_another_identity_is_another_message(each_records: Records) -> None:
    ours = each_records.send("ours", identity="a", message_id="m", conversation_id="c").message
    theirs = each_records.send("theirs", identity="b", message_id="m", conversation_id="c")

    assert not theirs.deduplicated
    assert each_records.store.message("a", "m") == ours
    assert each_records.store.conversation("a", "c").messages == (ours,)
    assert each_records.store.message("c", "m") is None
    with pytest.raises(UnknownError):
        each_records.store.conversation("global", "c")


def test_every_request_opens_its_own_thread_and_an_answer_stays_in_it(records: Records) -> None:
    one = records.send("one?", expects_response=True).message
    other = records.send("other?", expects_response=True).message
    answer = records.send("yes", from_agent_id="bob", to_agent_id="ann", reply_to=one.message_id).message

    assert one.conversation_id != other.conversation_id
    assert answer.conversation_id == one.conversation_id


def test_an_answer_of_the_one_asked_ends_the_question(each_records: Records) -> None:
    asked = each_records.send("ready?", expects_response=True).message
    answered = each_records.send("yes", from_agent_id="bob", to_agent_id="ann", reply_to=asked.message_id)

    assert [event.type for event in answered.events] == ["channel.message", "channel.ack"]
    ack = answered.events[1]
    assert (ack.data["messageId"], ack.data["state"]) == (asked.message_id, "answered")
    assert (ack.data["actorId"], ack.data["actorType"]) == ("bob", "client")
    assert (ack.target, ack.concerns) == ("ann", frozenset(("ann", "bob")))
    assert each_records.inbox("bob") == []
    assert each_records.inbox("ann") == ["yes"]
    assert each_records.store.check() == []


@pytest.mark.parametrize(
    "fields",
    [
        {"from_agent_id": "eve"},
        {"conversation_id": "elsewhere"},
        {"kind": Kind.PRESENCE},
        {"identity": "other"},
    ],
    ids=["by somebody else", "in another thread", "no answer at all", "in another identity"],
)
def test_what_is_no_answer_ends_nothing(records: Records, fields: dict[str, object]) -> None:
    asked = records.send("ready?", expects_response=True).message
    sent = records.send("yes", **{"from_agent_id": "bob", "reply_to": asked.message_id} | fields)

    assert [event.type for event in sent.events] == ["channel.message"]
    assert records.inbox("bob")[0] == "ready?"


def test_anybody_but_its_sender_may_answer_a_broadcast(records: Records) -> None:
    asked = records.send("who?", to_agent_id=None, expects_response=True).message
    own = records.send("nobody?", to_agent_id=None, reply_to=asked.message_id)
    other = records.send("me", from_agent_id="cid", to_agent_id="ann", reply_to=asked.message_id)

    assert [event.type for event in own.events] == ["channel.message"]
    assert [event.type for event in other.events] == ["channel.message", "channel.ack"]


def test_a_late_answer_beats_the_timeout(each_records: Records) -> None:
    asked = each_records.send("ready?", expects_response=True).message
    each_records.ack(asked, AckState.FAILED, actor="registry")
    each_records.send("yes", from_agent_id="bob", to_agent_id="ann", reply_to=asked.message_id)

    assert each_records.store.message("global", asked.message_id).state is AckState.ANSWERED  # type: ignore[union-attr]
    [entry] = each_records.store.conversations(ConversationQuery(identity="global")).items
    assert entry.status is ConversationStatus.ANSWERED


def test_a_late_word_takes_nothing_back(each_records: Records) -> None:
    asked = each_records.send("ready?", expects_response=True).message
    each_records.ack(asked, AckState.ANSWERED)
    late = each_records.ack(asked, AckState.DELIVERED, detail=ODD)

    assert late.message.state is AckState.ANSWERED
    thread = each_records.store.conversation("global", asked.conversation_id)
    assert [ack.state for ack in thread.acks] == [AckState.ANSWERED, AckState.DELIVERED]
    assert thread.acks[1] == late.ack
    assert thread.acks[1].detail == ODD
    assert each_records.inbox("bob") == []
    assert each_records.store.check() == []


def test_an_ack_for_what_is_not_there_is_refused(each_records: Records) -> None:
    message = each_records.send().message
    missing = acknowledge(message, AckState.ANSWERED)

    for field, value in (("message_id", "x"), ("conversation_id", "x"), ("identity", "other")):
        fields = {name: getattr(missing, name) for name in Acknowledge.__dataclass_fields__}
        with pytest.raises(UnknownError):
            each_records.store.call(Acknowledge(**fields | {field: value}))
    assert each_records.store.conversation("global", message.conversation_id).acks == ()
    assert isinstance(each_records.store.call(missing), Acknowledged)


def test_a_retry_comes_again_at_the_end(each_records: Records) -> None:
    first = each_records.send("first", expects_response=True, expires_at=START + 1_000).message
    each_records.send("second", conversation_id=first.conversation_id)
    each_records.clock.go_on(500)
    again = each_records.retry(first)

    assert [event.type for event in again.events] == ["channel.message", "channel.ack"]
    assert (again.message.seq, again.message.attempt_count) == (3, 2)
    assert (again.message.created_at, again.message.expires_at) == (START + 500, START + 1_500)
    ack = again.events[1].data
    assert (ack["state"], ack["actorId"], ack["actorType"]) == ("queued", "registry", "registry")
    assert ack["detail"] == "Retry attempt 2"
    assert each_records.store.message("global", first.message_id) == again.message
    assert each_records.inbox("bob") == ["second", "first"]
    assert [event.seq for event in each_records.store.events_since("global", 0)] == [2, 3, 4]
    assert each_records.store.check() == []
    with pytest.raises(UnknownError):
        each_records.store.call(Retry("other", first.conversation_id, first.message_id))


def test_what_had_failed_and_is_sent_anew_awaits_its_recipient_again(each_place: Place) -> None:
    with Records(each_place, inbox_limit=1) as records:
        failed = records.send("asked", expects_response=True).message
        records.ack(failed, AckState.FAILED)
        assert records.inbox("bob") == []
        blocking = records.send("in the way").message
        with pytest.raises(TooManyError):
            records.retry(failed)
        records.ack(blocking, AckState.DISPLAYED)
        again = records.retry(failed)

        assert again.message.state is AckState.QUEUED
        assert again.events[0].data == again.message.as_wire()
        assert records.inbox("bob") == ["asked"]
        [entry] = records.store.conversations(ConversationQuery(identity="global", pending=True)).items
        assert entry.conversation_id == failed.conversation_id
        assert records.store.check() == []
        answered = records.ack(failed, AckState.ANSWERED).message
        assert records.retry(answered).message.state is AckState.ANSWERED


def test_a_suppressed_conversation_is_hidden_from_one_agent(each_records: Records) -> None:
    message = each_records.send().message
    thread = message.conversation_id
    hidden = each_records.suppress("bob", thread)

    assert hidden.changed
    [event] = hidden.events
    assert (event.type, event.target) == ("channel.conversation.suppressed", "bob")
    assert event.data["conversationId"] == thread
    assert not each_records.suppress("bob", thread).changed
    listed = {
        agent: len(
            each_records.store.conversations(ConversationQuery(identity="global", agent_id=agent)).items
        )
        for agent in ("ann", "bob")
    }
    assert listed == {"ann": 1, "bob": 0}
    assert each_records.store.conversation("global", thread, "bob").suppressed
    assert not each_records.store.conversation("global", thread, "ann").suppressed
    assert each_records.revive("bob", thread).changed
    assert not each_records.revive("bob", thread).changed
    with pytest.raises(UnknownError):
        each_records.suppress("bob", thread, identity="other")


def test_a_new_message_revives_before_it_is_told(each_records: Records) -> None:
    thread = each_records.send().message.conversation_id
    each_records.suppress("bob", thread)
    each_records.suppress("ann", thread)
    sent = each_records.send("again", conversation_id=thread)

    assert [(event.type, event.target) for event in sent.events] == [
        ("channel.conversation.revived", "ann"),
        ("channel.conversation.revived", "bob"),
        ("channel.message", "bob"),
    ]
    seqs = [event.seq or 0 for event in sent.events]
    assert seqs == sorted(seqs)
    assert not each_records.store.conversation("global", thread, "bob").suppressed
    assert each_records.store.counts()["suppressed"] == 0


def test_a_full_inbox_refuses_and_drops_nothing(each_place: Place) -> None:
    with Records(each_place, inbox_limit=2) as records:
        first = records.send("one", expects_response=True).message
        records.send("two")
        with pytest.raises(TooManyError, match="full"):
            records.send("three", message_id="three")
        records.send("elsewhere", identity="other")
        records.send("presence isn't kept in inboxes", kind=Kind.PRESENCE)

        assert records.inbox("bob") == ["one", "two"]
        assert records.store.message("global", "three") is None
        records.ack(first, AckState.ANSWERED)
        records.send("three", message_id="three")
        assert records.inbox("bob") == ["two", "three"]


@pytest.mark.parametrize(
    "fields",
    [
        {"from_agent_id": "a\0b"},
        {"to_agent_id": ""},
        {"conversation_id": "\ud800"},
        {"message_id": "x" * 201},
        {"reply_to": "two\nlines"},
        {"identity": "*"},
        {"meta": {"x": float("nan")}},
        {"meta": {"x": object()}},
        {"expires_at": 1 << 70},
        {"expires_at": -1},
    ],
)
def test_what_no_database_should_get_is_refused(each_records: Records, fields: dict[str, object]) -> None:
    with pytest.raises(InvalidError):
        each_records.send("odd", **fields)
    assert each_records.store.last_seq() == 0
    assert each_records.send().message.seq == 1


@pytest.mark.parametrize("name", ["a\0b", "\ud800", "two\nlines"])
def test_what_can_be_no_name_is_not_found(each_records: Records, name: str) -> None:
    store = each_records.store
    sent = each_records.send(to_agent_id=None).message

    assert store.message("global", name) is store.message(name, sent.message_id) is None
    for identity, conversation in (("global", name), (name, sent.conversation_id), (None, name)):
        with pytest.raises(UnknownError):
            store.conversation(identity, conversation)
    for identity, agent in ((name, "bob"), ("global", name)):
        assert store.inbox(identity, agent).items == ()
        assert store.inbox_count(identity, agent) == 0
        for query in (
            ConversationQuery(identity=identity, participant=agent),
            ConversationQuery(identity=identity, agent_id=agent),
        ):
            assert store.conversations(query).items == ()
            assert store.conversation_count(query) == 0
    assert store.events_since(name, 0) == []
    assert store.inbox("global", "bob").items != ()


def test_a_large_text_of_nuls_comes_back(records: Records) -> None:
    text = "\0" * (5 << 20)
    sent = records.send(text).message

    found = records.store.message("global", sent.message_id)
    assert found is not None
    assert found.content == text


def test_a_listener_that_fails_keeps_no_caller_waiting(tmp_path: Path) -> None:
    told = []

    def fails(settled: object) -> None:
        told.append(settled)
        raise ValueError("broken")

    store = Store(Place.file(tmp_path / "channel.sqlite"), Timeline(), on_commit=fails)
    store.open()
    try:
        for _ in range(2):
            assert isinstance(store.call(Send(draft()), timeout=20), Sent)
    finally:
        store.close()
    assert len(told) == 2


def test_a_write_in_one_batch_builds_on_the_one_before(each_records: Records) -> None:
    ids = {"conversation_id": "c", "message_id": "q"}
    question = draft("ready?", expects_response=True, **ids)
    delivered = Acknowledge(
        identity="global", **ids, state=AckState.DELIVERED, actor_id="bob", actor_type=ActorType.BRIDGE
    )
    outcomes = each_records.together(
        [
            Send(question),
            Send(question),
            delivered,
            Suppress("global", "bob", "c"),
            Send(draft("yes", from_agent_id="bob", to_agent_id="ann", reply_to="q", message_id="r")),
            Retry("global", "c", "q"),
            Revive("global", "bob", "c"),
            Send(draft("a new thread", message_id="n")),
            delivered,
        ]
    )

    assert [type(outcome).__name__ for outcome in outcomes] == [
        "Sent", "Sent", "Acknowledged", "Done", "Sent", "Sent", "Done", "Sent", "Acknowledged",
    ]  # fmt: skip
    told = [[event.type for event in outcome.events] for outcome in outcomes]  # type: ignore[union-attr]
    assert told == [
        ["channel.message"],
        [],
        ["channel.ack"],
        ["channel.conversation.suppressed"],
        ["channel.conversation.revived", "channel.message", "channel.ack"],
        ["channel.message", "channel.ack"],
        [],
        ["channel.message"],
        ["channel.ack"],
    ]
    seqs = [event.seq for outcome in outcomes for event in outcome.events]  # type: ignore[union-attr]
    assert seqs == list(range(1, len(seqs) + 1))
    stored = each_records.store.message("global", "q")
    assert stored is not None
    assert (stored.state, stored.attempt_count) == (AckState.ANSWERED, 2)
    assert each_records.store.last_seq() == len(seqs)
    assert each_records.store.check() == []


def test_one_refused_write_takes_no_other_down(each_records: Records) -> None:
    before = each_records.send("before", message_id="b").message
    outcomes = each_records.together(
        [
            Send(draft("one", message_id="one")),
            Send(draft("bad", to_agent_id="\0")),
            Retry("global", "nowhere", "b"),
            acknowledge(before, AckState.DISPLAYED),
            Send(draft("full", to_agent_id="bob", message_id="full")),
            Send(draft("two", to_agent_id="cid", message_id="two")),
        ],
        inbox_limit=2,
    )

    assert [type(outcome).__name__ for outcome in outcomes] == [
        "Sent", "InvalidError", "UnknownError", "Acknowledged", "Sent", "Sent",
    ]  # fmt: skip
    assert each_records.inbox("bob") == ["one", "full"]
    assert each_records.store.check() == []


def test_a_batch_counts_what_it_adds_to_an_inbox(records: Records) -> None:
    outcomes = records.together([Send(draft(str(number))) for number in range(5)], inbox_limit=3)

    assert [isinstance(outcome, Sent) for outcome in outcomes] == [True, True, True, False, False]
    assert records.inbox("bob") == ["0", "1", "2"]


def test_what_was_submitted_comes_back_in_order_with_its_tag(records: Records) -> None:
    for number in range(200):
        records.store.submit(Send(draft(str(number), to_agent_id=f"bob{number % 7}")), number)
    records.store.close()

    assert [settled.tag for settled in records.settled] == list(range(200))
    seqs = [settled.outcome.message.seq for settled in records.settled]  # type: ignore[union-attr]
    assert seqs == list(range(1, 201))
    with pytest.raises(StorageError):
        records.store.submit(Send(draft()))


def test_a_call_is_told_to_everybody_too(records: Records) -> None:
    sent = records.send()
    with pytest.raises(UnknownError):
        records.store.call(Retry("global", "c", "m"))

    assert [(settled.tag, settled.outcome) for settled in records.settled[:1]] == [(None, sent)]
    assert isinstance(records.settled[1].outcome, UnknownError)


def test_everything_is_there_after_a_restart(each_place: Place) -> None:
    with Records(each_place) as records:
        message = records.send(expects_response=True).message
        records.ack(message, AckState.DELIVERED)
        records.suppress("bob", message.conversation_id)
        epoch, last = records.store.epoch, records.store.last_seq()
    with Records(each_place) as again:
        thread = again.store.conversation("global", message.conversation_id, "bob")

        assert (again.store.epoch, again.store.last_seq()) == (epoch, last)
        assert [one.content for one in thread.messages] == ["hello"]
        assert [one.state for one in thread.acks] == [AckState.DELIVERED]
        assert thread.suppressed
        assert again.send().message.seq == last + 1


def test_a_deleted_database_is_made_anew_with_another_epoch(tmp_path: Path) -> None:
    file = tmp_path / "channel" / "channel.sqlite"
    with Records(Place.file(file)) as records:
        records.send("lost")
        epoch = records.store.epoch
        for name in (file, Path(f"{file}-wal"), Path(f"{file}-shm")):
            name.unlink()

        assert records.send("kept").message.seq == 1
        assert records.store.epoch != epoch
        assert records.inbox("bob") == ["kept"]


def test_an_older_copy_of_the_database_has_another_epoch(tmp_path: Path) -> None:
    """Its numbers are drawn a second time: a cursor from before would pass over what they stand for now."""
    file = tmp_path / "channel" / "channel.sqlite"
    with Records(Place.file(file)) as records:
        records.send("kept")
        first = records.store.epoch
        copied(file, tmp_path / "older")
        copied(file, tmp_path / "again")
        lost = records.send("lost").message.seq
        replaced(file, tmp_path / "older")

        assert records.send("new").message.seq == lost
        second = records.store.epoch
        assert second != first
        assert records.store.reached == records.store.last_seq()
        copied(file, tmp_path / "newest")
        replaced(file, tmp_path / "again")
        records.send("newer")
        assert records.store.epoch not in (first, second)
        replaced(file, tmp_path / "newest")
        records.send("newest")
        assert records.store.epoch == second, "nothing of it is missing"


def copied(file: Path, target: Path) -> None:
    with closing(sqlite3.connect(file)) as source, closing(sqlite3.connect(target)) as copy:
        source.backup(copy)


def replaced(file: Path, copy: Path) -> None:
    copy.replace(file)
    for side in ("-wal", "-shm"):
        Path(f"{file}{side}").unlink(missing_ok=True)
