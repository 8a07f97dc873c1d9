"""What the sockets are told of what was stored: the same right after the commit and in a replay. Pure."""

from __future__ import annotations

from agent_bridge.channel.model import Ack, Message
from agent_bridge.channel.writes import Event


def message_event(message: Message) -> Event:
    """A message, for its recipient first; a broadcast concerns everybody."""
    concerns = frozenset(() if message.to_agent_id is None else (message.from_agent_id, message.to_agent_id))
    return Event(
        type="channel.message",
        identity=message.identity,
        data=message.as_wire(),
        seq=message.seq,
        target=message.to_agent_id,
        concerns=concerns,
    )


def ack_event(ack: Ack, from_agent_id: str, to_agent_id: str | None) -> Event:
    """An ack, for its message's sender first; the two agents are the message's."""
    concerns = {ack.actor_id, from_agent_id}
    if to_agent_id is not None:
        concerns.add(to_agent_id)
    return Event(
        type="channel.ack",
        identity=ack.identity,
        data=ack.as_wire(),
        seq=ack.seq,
        target=from_agent_id,
        concerns=frozenset(concerns),
    )


def suppression_event(identity: str, conversation_id: str, agent_id: str, seq: int, *, hidden: bool) -> Event:
    """A conversation was hidden from an agent's list, or is back in it."""
    return Event(
        type="channel.conversation.suppressed" if hidden else "channel.conversation.revived",
        identity=identity,
        data={"conversationId": conversation_id, "agentId": agent_id, "identity": identity, "seq": seq},
        seq=seq,
        target=agent_id,
        concerns=frozenset((agent_id,)),
    )
