"""Whom an event is for first, and whom it touches."""

from __future__ import annotations

from dataclasses import replace

from agent_bridge.channel.model import Ack, AckState, ActorType, Kind, Message
from agent_bridge.channel.storage.events import ack_event, message_event, suppression_event

MESSAGE = Message(
    seq=3,
    identity="red",
    conversation_id="c",
    message_id="m",
    from_agent_id="ann",
    to_agent_id="bob",
    kind=Kind.CHAT,
    content="hello",
    created_at=1,
    expects_response=True,
)
ACK = Ack(
    seq=4,
    identity="red",
    conversation_id="c",
    message_id="m",
    state=AckState.DISPLAYED,
    actor_id="bridge",
    actor_type=ActorType.BRIDGE,
    timestamp=2,
)


def test_a_message_is_for_its_recipient() -> None:
    event = message_event(MESSAGE)

    assert (event.type, event.identity, event.seq) == ("channel.message", "red", 3)
    assert (event.target, event.concerns) == ("bob", frozenset({"ann", "bob"}))
    assert event.data == MESSAGE.as_wire()


def test_a_broadcast_is_for_everybody() -> None:
    event = message_event(replace(MESSAGE, to_agent_id=None))

    assert (event.target, event.concerns) == (None, frozenset())


def test_an_ack_is_for_its_message_s_sender() -> None:
    event = ack_event(ACK, "ann", "bob")

    assert (event.type, event.identity, event.seq) == ("channel.ack", "red", 4)
    assert (event.target, event.concerns) == ("ann", frozenset({"ann", "bob", "bridge"}))
    assert event.data == ACK.as_wire()
    assert ack_event(ACK, "ann", None).concerns == frozenset({"ann", "bridge"})


def test_a_suppression_is_for_the_one_who_hid_it() -> None:
    hidden = suppression_event("red", "c", "ann", 5, hidden=True)
    shown = suppression_event("red", "c", "ann", 6, hidden=False)

    assert (hidden.type, shown.type) == ("channel.conversation.suppressed", "channel.conversation.revived")
    assert (hidden.target, hidden.concerns, hidden.seq) == ("ann", frozenset({"ann"}), 5)
    assert hidden.data == {"conversationId": "c", "agentId": "ann", "identity": "red", "seq": 5}
