"""States by rank, and the roll-up that is carried along: always the one that is reckoned from scratch."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_bridge.channel.model import Ack, AckState, ActorType, ConversationStatus, Kind, Message
from agent_bridge.channel.states import Roll, after, awaits_answer, higher, is_open, roll, status_of

QUEUED, DELIVERED, DISPLAYED, FAILED, ANSWERED = AckState


def message(name: str, seq: int, kind: Kind = Kind.CHAT, expects: bool = True) -> Message:
    return Message(
        seq=seq, identity="x", conversation_id="c", message_id=name, from_agent_id="a", kind=kind,
        content="…", created_at=0, expects_response=expects,
    )  # fmt: skip


def ack(name: str, seq: int, state: AckState, actor: ActorType = ActorType.CLIENT) -> Ack:
    return Ack(
        seq=seq, identity="x", conversation_id="c", message_id=name, state=state, actor_id="b",
        actor_type=actor, timestamp=0,
    )  # fmt: skip


def test_the_ranks() -> None:
    assert [state.rank for state in (QUEUED, DELIVERED, DISPLAYED, FAILED, ANSWERED)] == [0, 1, 2, 3, 4]


@pytest.mark.parametrize(("one", "other"), list(product(AckState, AckState)))
def test_the_higher_of_two(one: AckState, other: AckState) -> None:
    assert higher(one, other) is higher(other, one) is max(one, other, key=lambda state: state.rank)


@pytest.mark.parametrize("before", AckState)
@pytest.mark.parametrize("actor", ActorType)
def test_only_what_had_failed_and_is_sent_anew_begins_again(before: AckState, actor: ActorType) -> None:
    sent_anew = before is FAILED and actor is ActorType.REGISTRY

    assert after(before, QUEUED, actor) is (QUEUED if sent_anew else before)
    for state in (DELIVERED, DISPLAYED, FAILED, ANSWERED):
        assert after(before, state, actor) is higher(before, state)


@pytest.mark.parametrize(("kind", "expects", "open_in"), [
    (Kind.CHAT, True, {QUEUED, DELIVERED, DISPLAYED}),
    (Kind.TASK_REQUEST, True, {QUEUED, DELIVERED, DISPLAYED}),
    (Kind.CHAT, False, {QUEUED, DELIVERED}),
    (Kind.TASK_RESULT, False, {QUEUED, DELIVERED}),
    (Kind.ERROR, False, {QUEUED, DELIVERED}),
    (Kind.ACK, False, set()),
    (Kind.ACK, True, set()),
    (Kind.PRESENCE, True, set()),
])  # fmt: skip
def test_when_a_message_is_open(kind: Kind, expects: bool, open_in: set[AckState]) -> None:
    assert {state for state in AckState if is_open(kind, expects, state)} == open_in
    pending_in = {state for state in AckState if awaits_answer(kind, expects, state)}
    assert pending_in == (open_in if expects else set())


@pytest.mark.parametrize(("pending", "outcome", "expired", "status"), [
    (0, None, False, ConversationStatus.ACTIVE),
    (0, None, True, ConversationStatus.ACTIVE),
    (2, None, False, ConversationStatus.PENDING),
    (2, FAILED, False, ConversationStatus.PENDING),
    (1, ANSWERED, True, ConversationStatus.EXPIRED),
    (0, FAILED, False, ConversationStatus.FAILED),
    (0, ANSWERED, False, ConversationStatus.ANSWERED),
])  # fmt: skip
def test_a_conversation_in_one_word(
    pending: int, outcome: AckState | None, expired: bool, status: ConversationStatus
) -> None:
    assert status_of(pending, outcome, expired=expired) is status


def test_a_question_and_its_answer() -> None:
    rolled = Roll().with_message(Kind.CHAT, expects_response=True, seq=1)
    assert (rolled.status(), rolled.pending_count) == (ConversationStatus.PENDING, 1)
    assert rolled.status(expired=True) is ConversationStatus.EXPIRED
    rolled = rolled.with_ack(Kind.CHAT, expects_response=True, before=QUEUED, ack=DISPLAYED)
    assert (rolled.status(), rolled.last_ack_state) == (ConversationStatus.PENDING, DISPLAYED)
    rolled = rolled.with_message(Kind.CHAT, expects_response=False, seq=2).with_ack(
        Kind.CHAT, expects_response=True, before=DISPLAYED, ack=ANSWERED
    )
    assert (rolled.status(), rolled.pending_count) == (ConversationStatus.ANSWERED, 0)
    # The answer is displayed in its turn: that doesn't unanswer the question.
    rolled = rolled.with_ack(Kind.CHAT, expects_response=False, before=QUEUED, ack=DISPLAYED)
    assert (rolled.status(), rolled.last_ack_state) == (ConversationStatus.ANSWERED, DISPLAYED)
    assert (rolled.message_count, rolled.last_message_seq) == (2, 2)


def test_a_late_ack_of_lower_rank_changes_nothing() -> None:
    answered = (
        Roll()
        .with_message(Kind.CHAT, expects_response=True, seq=1)
        .with_ack(Kind.CHAT, expects_response=True, before=QUEUED, ack=ANSWERED)
    )
    assert answered.with_ack(Kind.CHAT, expects_response=True, before=ANSWERED, ack=DELIVERED) == answered
    assert answered.with_ack(Kind.CHAT, expects_response=True, before=ANSWERED, ack=FAILED) == answered


def test_a_late_answer_beats_a_timeout() -> None:
    failed = (
        Roll()
        .with_message(Kind.CHAT, expects_response=True, seq=1)
        .with_ack(Kind.CHAT, expects_response=True, before=QUEUED, ack=FAILED)
    )
    assert failed.status() is ConversationStatus.FAILED
    assert (
        failed.with_ack(Kind.CHAT, expects_response=True, before=FAILED, ack=ANSWERED).status()
        is ConversationStatus.ANSWERED
    )


def test_a_question_that_failed_and_is_sent_anew_is_pending() -> None:
    rolled = (
        Roll()
        .with_message(Kind.CHAT, expects_response=True, seq=1)
        .with_ack(Kind.CHAT, expects_response=True, before=QUEUED, ack=FAILED)
        .with_retry(3)
        .with_ack(Kind.CHAT, expects_response=True, before=FAILED, ack=QUEUED, actor=ActorType.REGISTRY)
    )
    assert (rolled.status(), rolled.pending_count) == (ConversationStatus.PENDING, 1)
    assert (rolled.last_ack_state, rolled.outcome) == (QUEUED, None)


def test_one_message_that_failed_leaves_another_pending() -> None:
    two = (
        Roll()
        .with_message(Kind.CHAT, expects_response=True, seq=1)
        .with_message(Kind.CHAT, expects_response=True, seq=2)
    )
    one_failed = two.with_ack(Kind.CHAT, expects_response=True, before=QUEUED, ack=FAILED)
    assert (one_failed.status(), one_failed.pending_count) == (ConversationStatus.PENDING, 1)


@given(st.data())
def test_the_roll_up_that_is_carried_along_is_the_one_from_scratch(data: st.DataObject) -> None:
    rolled, messages, acks, states = Roll(), {}, [], {}  # type: ignore[var-annotated]
    for seq in range(1, data.draw(st.integers(0, 30)) + 1):
        what = data.draw(st.sampled_from(["message", "ack", "retry"])) if messages else "message"
        if what == "message":
            kind, expects = data.draw(st.sampled_from(Kind)), data.draw(st.booleans())
            messages[f"m{seq}"] = message(f"m{seq}", seq, kind, expects)
            states[f"m{seq}"] = QUEUED
            rolled = rolled.with_message(kind, expects_response=expects, seq=seq)
            continue
        name = data.draw(st.sampled_from(sorted(messages)))
        old = messages[name]
        state = QUEUED if what == "retry" else data.draw(st.sampled_from(AckState))
        actor = ActorType.REGISTRY if what == "retry" else data.draw(st.sampled_from(ActorType))
        if what == "retry":
            messages[name] = message(name, seq, old.kind, old.expects_response)
            rolled = rolled.with_retry(seq)
        acks.append(ack(name, seq, state, actor))
        rolled = rolled.with_ack(
            old.kind, expects_response=old.expects_response, before=states[name], ack=state, actor=actor
        )
        states[name] = after(states[name], state, actor)
    assert rolled == roll(
        data.draw(st.permutations(list(messages.values()))), data.draw(st.permutations(acks))
    )
    assert rolled.pending_count == sum(
        awaits_answer(held.kind, held.expects_response, states[name]) for name, held in messages.items()
    )
    assert rolled.message_count == len(messages)


def test_from_scratch_passes_over_acks_for_messages_that_it_was_not_given() -> None:
    assert roll([message("m", 1)], [ack("other", 2, ANSWERED)]) == Roll().with_message(
        Kind.CHAT, expects_response=True, seq=1
    )
