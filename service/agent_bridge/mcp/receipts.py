"""Word of a message that a call has sent: whether it is stored, how far it came, what was answered."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent_bridge.channel.model import AckState, ActorType, Message
from agent_bridge.channel.writes import Acknowledge
from agent_bridge.errors import AgentBridgeError
from agent_bridge.mcp.bounded import HEAD_BYTES
from agent_bridge.mcp.call import Call
from agent_bridge.mcp.shown_message import Shown, previewed, wants_receipt, whole
from agent_bridge.mcp.tool import ANSWER_BYTES

if TYPE_CHECKING:
    from agent_bridge.channel.storage.store import Store

_LOOKED_AT = 50
"""Messages of a thread among which its answer is looked for."""


async def sent_before(call: Call) -> Message | None:
    """What this very call has stored when it came the first time; its answer never arrived."""
    if not call.is_replay:
        return None
    identity = call.session.hello.identity
    return await call.session.channel.read(lambda store: store.message(identity, call.key))


async def await_state(
    call: Call, message: Message, states: frozenset[AckState], seconds: float
) -> AckState | None:
    """Wait until the message has one of these states or a terminal one, at most so long; its state then."""
    return await call.session.channel.settled(message.identity, message.message_id, states, seconds)


async def answer_to(call: Call, message: Message) -> Message | None:
    """The newest answer to it that was sent to this session."""

    def find(store: Store) -> Message | None:
        before: int | None = None
        for _ in range(_LOOKED_AT):
            page = store.conversation(message.identity, message.conversation_id, before=before, limit=1)
            for one in page.messages:
                if one.reply_to == message.message_id and one.from_agent_id != message.from_agent_id:
                    return one
            before = page.next
            if before is None:
                return None
        return None

    return await call.session.channel.read(find)


async def shown_answer(call: Call, answer: Message) -> tuple[Shown, str]:
    """The answer, whole as far as an answer of a tool has room; where all of it is shown, that is stored.

    Also what went wrong with that, as a sentence."""
    shown = whole(answer, ANSWER_BYTES - HEAD_BYTES) or previewed(answer)
    session = call.session
    if not wants_receipt(shown, session.agent_id):
        return shown, ""
    receipt = Acknowledge(
        identity=answer.identity,
        conversation_id=answer.conversation_id,
        message_id=answer.message_id,
        state=AckState.DISPLAYED,
        actor_id=session.agent_id,
        actor_type=ActorType.CLIENT,
    )
    try:
        await session.channel.write(receipt)
    except AgentBridgeError as error:
        return shown, f"That you have read it couldn't be stored: {error.sentence()}"
    return shown, ""
