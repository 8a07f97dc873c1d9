"""The tool `reply`: the answer to a message, which closes it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

from pydantic import Field

from agent_bridge.channel import ids
from agent_bridge.channel.directory import AgentRow
from agent_bridge.channel.errors import InvalidError, UnknownError
from agent_bridge.channel.model import AckState, ActorType, Draft, Kind, Message
from agent_bridge.channel.plain import one_line
from agent_bridge.channel.targets import bridged
from agent_bridge.channel.writes import Acknowledge, Send, Sent
from agent_bridge.mcp.bounded import quoted
from agent_bridge.mcp.call import Call
from agent_bridge.mcp.own_row import own, present
from agent_bridge.mcp.peers import peer_of
from agent_bridge.mcp.receipts import sent_before
from agent_bridge.mcp.tool import Answer, Hints, Parameters, Tool

_LOOK = "Take agentId, conversationId and replyTo from `replyWith` of channel_inbox, unchanged."


class ReplyParameters(Parameters):
    """The answer, and what it answers."""

    agent_id: str = Field(alias="agentId", description="replyWith.agentId")
    conversation_id: str = Field(alias="conversationId", description="replyWith.conversationId")
    reply_to: str = Field(alias="replyTo", description="replyWith.replyTo: the message that you answer.")
    message: str = Field(min_length=1, description="The answer itself.")
    task_id: str | None = Field(None, alias="taskId", description="The task that it is about.")
    skill_id: str | None = Field(None, alias="skillId", description="The skill that was used.")


async def reply(call: Call, wanted: ReplyParameters) -> Answer:
    """Store the answer and that it answers, in one; both inboxes are rid of the question by that."""
    session = call.session
    identity = session.hello.identity
    rows = [row for row in await present(call) if row.identity == identity]
    me = own(call, rows)
    question = await session.channel.read(lambda store: store.message(identity, wanted.reply_to))
    stored = await sent_before(call)
    is_new = False
    if stored is None or question is None:
        # Once only: who asked may not be back yet when the same call comes again.
        question = _checked(question, wanted, me, rows)
        draft = _draft(call, wanted, me, question, _recipient(wanted.agent_id, rows))
        sent = cast("Sent", await session.channel.write(Send(draft)))
        stored, is_new = sent.message, not sent.deduplicated
    if question.to_agent_id not in (None, me.agent_id):
        # It was for the bridge into this session, in whose name the store doesn't close it by itself.
        await session.channel.write(
            Acknowledge(
                identity=identity,
                conversation_id=question.conversation_id,
                message_id=question.message_id,
                state=AckState.ANSWERED,
                actor_id=me.agent_id,
                actor_type=ActorType.CLIENT,
            )
        )
    to = _recipient(stored.to_agent_id or "", rows)
    return _answer(stored, question, to, is_new=is_new)


def _draft(
    call: Call, wanted: ReplyParameters, me: AgentRow, question: Message, to: AgentRow | None
) -> Draft:
    return Draft(
        identity=me.identity,
        from_agent_id=me.agent_id,
        from_agent_name=me.name,
        to_agent_id=wanted.agent_id if to is None else to.agent_id,
        kind=Kind.CHAT,
        content=wanted.message,
        conversation_id=question.conversation_id,
        message_id=call.key,
        reply_to=question.message_id,
        task_id=None if wanted.task_id is None else ids.checked_id(wanted.task_id, "taskId"),
        meta=None if wanted.skill_id is None else {"skillId": ids.checked_id(wanted.skill_id, "skillId")},
        requires_ack=True,
        expects_response=False,
    )


def _checked(
    question: Message | None, wanted: ReplyParameters, me: AgentRow, rows: Sequence[AgentRow]
) -> Message:
    if question is None:
        raise UnknownError(
            "There is no message with that replyTo",
            detail=one_line(wanted.reply_to, ids.MAX_ID),
            remedy=_LOOK,
        )
    if question.from_agent_id == me.agent_id:
        raise InvalidError(
            "That message is your own; it isn't yours to answer.",
            remedy="To say more, use message_client_session with its conversationId.",
        )
    known: Mapping[str, AgentRow] = {row.agent_id: row for row in rows}
    if question.to_agent_id is not None and not _are_one(question.to_agent_id, me.agent_id, known):
        # As if it weren't there: what others wrote to each other is none of this session's business.
        raise UnknownError(
            "There is no message with that replyTo",
            detail=one_line(wanted.reply_to, ids.MAX_ID),
            remedy=_LOOK,
        )
    if question.conversation_id != wanted.conversation_id:
        raise InvalidError(
            "That message isn't in that conversation",
            detail=f"it is in {one_line(question.conversation_id, ids.MAX_ID)}",
            remedy=_LOOK,
        )
    if not _are_one(question.from_agent_id, wanted.agent_id, known):
        raise InvalidError(
            "That message isn't from that agent",
            detail=f"it is from {one_line(question.from_agent_id, ids.MAX_ID)}",
            remedy=_LOOK,
        )
    return question


def _are_one(one: str, other: str, known: Mapping[str, AgentRow]) -> bool:
    """Whether two ids are the same, or a session and the bridge into it."""
    if one == other:
        return True
    rows = [known[name] for name in (one, other) if name in known]
    return len(rows) == 2 and bridged(rows[0], known.values()) == bridged(rows[1], known.values())


def _recipient(agent_id: str, rows: Sequence[AgentRow]) -> AgentRow | None:
    """The row of exactly that agent, or its bridge's. None where it isn't there now."""
    row = next((row for row in rows if row.agent_id == agent_id), None)
    return None if row is None else bridged(row, rows)


def _answer(stored: Message, question: Message, to: AgentRow | None, *, is_new: bool) -> Answer:
    to_id = stored.to_agent_id or ""
    if to is None:
        whom = one_line(question.from_agent_name or to_id, 80)
        note = "It isn't connected now; it finds the answer in its inbox when it is back."
    else:
        whom, note = f"{one_line(to.name, 80)} ({peer_of(to).label})", ""
    if question.state is AckState.ANSWERED and is_new:
        note = f"That message had been answered before; this was sent all the same. {note}".rstrip()
    data: dict[str, Any] = {
        "toAgentId": to_id,
        "conversationId": stored.conversation_id,
        "messageId": stored.message_id,
        "replyTo": question.message_id,
    }
    lines = [f"Reply sent to: {whom}", *(f"  {name}: {quoted(value)}" for name, value in data.items())]
    if note:
        data["note"] = note
        lines.append(note)
    return Answer("\n".join(lines), data)


REPLY = Tool(
    name="reply",
    title="Answer a message",
    description=(
        "Answer a message that another agent sent to this session; that closes it for both sides. Take"
        " agentId, conversationId and replyTo from `replyWith` of channel_inbox, or from the message itself,"
        " unchanged. Do the work first and put the answer into `message`. Not for starting a thread: that is"
        " message_client_session."
    ),
    parameters=ReplyParameters,
    output_schema={
        "type": "object",
        "properties": {
            "toAgentId": {"type": "string"},
            "conversationId": {"type": "string"},
            "messageId": {"type": "string"},
            "replyTo": {"type": "string"},
        },
        "required": ["toAgentId", "conversationId", "messageId", "replyTo"],
    },
    hints=Hints(),
    run=reply,
)
