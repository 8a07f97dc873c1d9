"""What the registry answers becomes the value that it was, or an error; nothing else."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_bridge.channel import errors
from agent_bridge.channel.model import (
    Ack,
    AckState,
    ActorType,
    Conversation,
    ConversationStatus,
    Kind,
    Message,
)
from agent_bridge.client import answers, requests
from agent_bridge.client.answers import AnswerError

_texts = st.text(max_size=20)
_maybe = st.none() | _texts
_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | _texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_texts, inner, max_size=3),
    max_leaves=8,
)

messages = st.builds(
    Message,
    seq=st.integers(0),
    identity=st.text(min_size=1),
    conversation_id=_texts,
    message_id=_texts,
    from_agent_id=_texts,
    kind=st.sampled_from(Kind),
    content=_texts,
    created_at=st.integers(0),
    expects_response=st.booleans(),
    requires_ack=st.booleans(),
    attempt_count=st.integers(1),
    state=st.sampled_from(AckState),
    to_agent_id=_maybe,
    reply_to=_maybe,
    from_agent_name=_maybe,
    task_id=_maybe,
    meta=st.none() | st.dictionaries(_texts, _json, max_size=3),
    expires_at=st.none() | st.integers(0),
)
acks = st.builds(
    Ack,
    seq=st.integers(0),
    identity=st.text(min_size=1),
    conversation_id=_texts,
    message_id=_texts,
    state=st.sampled_from(AckState),
    actor_id=_texts,
    actor_type=st.sampled_from(ActorType),
    timestamp=st.integers(0),
    detail=_maybe,
)
conversations = st.builds(
    Conversation,
    identity=st.text(min_size=1),
    conversation_id=_texts,
    status=st.sampled_from(ConversationStatus),
    last_message=messages,
    pending_count=st.integers(0),
    pending_message_ids=st.lists(_texts).map(tuple),
    message_count=st.integers(0),
    last_ack_state=st.none() | st.sampled_from(AckState),
    participants=st.lists(_texts).map(tuple),
    updated_at=st.integers(0),
    archived=st.booleans(),
    suppressed=st.booleans(),
)


@given(messages)
def test_a_message_survives_the_wire(one: Message) -> None:
    assert answers.message(one.as_wire() | {"field of tomorrow": 1}) == one


@given(acks)
def test_an_ack_survives_the_wire(one: Ack) -> None:
    assert answers.ack(one.as_wire()) == one


@given(conversations)
def test_a_conversation_survives_the_wire(one: Conversation) -> None:
    assert answers.conversation(one.as_wire()) == one


@given(_json, st.sampled_from(["message", "ack", "conversation", "thread", "events"]))
def test_anything_else_is_told_and_nothing_else_raised(data: Any, what: str) -> None:  # noqa: ANN401
    with pytest.raises(AnswerError):
        getattr(answers, what)(data)


@pytest.mark.parametrize("name", ["seq", "messageId", "kind", "state", "attemptCount", "meta", "toAgentId"])
@given(value=_json)
def test_a_field_that_is_not_what_it_should_be_is_told(name: str, value: object) -> None:
    wire = Message(
        seq=1,
        identity="global",
        conversation_id="c",
        message_id="m",
        from_agent_id="a",
        kind=Kind.CHAT,
        content="x",
        created_at=1,
        expects_response=False,
    ).as_wire()
    try:
        parsed = answers.message(wire | {name: value})
    except AnswerError:
        return
    assert isinstance(parsed, Message)


@pytest.mark.parametrize(
    "error",
    [
        errors.InvalidError,
        errors.WrongIdentityError,
        errors.UnknownError,
        errors.AmbiguousError,
        errors.TooLargeError,
        errors.TooManyError,
        errors.StorageError,
        errors.DiskFullError,
    ],
)
def test_each_code_is_its_class_again(error: type[errors.ChannelError]) -> None:
    back = answers.refusal({"error": "It is so.", "code": error.code}, error.status)
    assert back.code == error.code
    assert back.status == error.status
    assert type(back) is error
    assert back.title == "It is so."


@given(_json, st.integers(400, 599))
def test_every_refusal_is_an_error_with_a_sentence(data: Any, status: int) -> None:  # noqa: ANN401
    back = answers.refusal(data, status)
    assert isinstance(back, errors.ChannelError)
    assert back.title
    assert back.code


def test_a_registration_says_what_it_is_given_and_whose_process_it_is() -> None:
    one = requests.Registration(
        agent_id="a", name="n", project_path="/p", client_name="c", project_name="p", more={"url": "u"}
    )
    wire = one.as_wire()
    assert wire["clientInfo"] == {"clientName": "c", "clientVersion": ""}
    assert (wire["url"], wire["projectName"], wire["identity"], wire["entryType"]) == (
        "u",
        "p",
        "global",
        "client",
    )
    assert wire["pid"] > 0
