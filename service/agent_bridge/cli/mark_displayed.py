"""Saying of messages that a person has seen them."""

from __future__ import annotations

from collections.abc import Iterable

from agent_bridge.channel.model import AckState, ActorType, Message
from agent_bridge.channel.writes import Acknowledge
from agent_bridge.cli.result import Message as Remark
from agent_bridge.cli.result import warning
from agent_bridge.client.http import Registry
from agent_bridge.errors import AgentBridgeError


def mark_displayed(
    registry: Registry, messages: Iterable[Message], agent_id: str
) -> tuple[list[str], tuple[Remark, ...]]:
    """Have an ack stored for each that counts as less than displayed; their ids, and what went wrong.

    They were shown already: that this can't be stored is a remark, no failure.
    """
    marked: list[str] = []
    for message in messages:
        if message.state.rank >= AckState.DISPLAYED.rank:
            continue
        ack = Acknowledge(
            identity=message.identity,
            conversation_id=message.conversation_id,
            message_id=message.message_id,
            state=AckState.DISPLAYED,
            actor_id=agent_id,
            actor_type=ActorType.CLIENT,
        )
        try:
            registry.ack(ack)
        except AgentBridgeError as error:
            return marked, (warning(f"That it was displayed couldn't be stored: {error.sentence()}"),)
        marked.append(message.message_id)
    return marked, ()
