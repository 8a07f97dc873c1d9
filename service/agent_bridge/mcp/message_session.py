"""The tool `message_client_session`: a message to another agent's session, and how far it came."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

from pydantic import Field

from agent_bridge.channel import expects, ids
from agent_bridge.channel.directory import AgentRow
from agent_bridge.channel.errors import UnknownError
from agent_bridge.channel.model import AckState, Draft, Kind, Message
from agent_bridge.channel.plain import one_line
from agent_bridge.channel.targets import Request, resolve
from agent_bridge.channel.writes import Send, Sent
from agent_bridge.errors import AgentBridgeError
from agent_bridge.mcp.bounded import quoted
from agent_bridge.mcp.call import Call
from agent_bridge.mcp.inbox_reading import Reader, check_part
from agent_bridge.mcp.own_row import own, present
from agent_bridge.mcp.receipts import answer_to, await_state, sent_before, shown_answer
from agent_bridge.mcp.tool import Answer, Hints, Parameters, Tool

if TYPE_CHECKING:
    from agent_bridge.channel.storage.store import Store

DELIVERY_SECONDS = 3.0
"""What a delivery gets until the call goes on without word of it."""
ANSWER_SECONDS = 50.0
"""What an answer gets where the caller said nothing: clients give a tool about a minute."""
LONGEST_SECONDS = 120.0
RETURN_SECONDS = 3.0
"""What the recipient of a call that is sent again gets to come back: the service has just begun anew."""
_LOOK_SECONDS = 0.1
_PUSHED = frozenset(("claude-code", "opencode"))
"""Profiles of programs into which an answer can be pushed; for the others it has to come with the call."""
_DELIVERED = frozenset((AckState.DELIVERED, AckState.DISPLAYED))
_LATER = "channel_inbox(pendingOnly=true) has the answer once there is one."


class MessageClientSessionParameters(Parameters):
    """The message, and whom it is for."""

    message: str = Field(min_length=1, description="What to say.")
    client_id: str | None = Field(
        None, alias="clientId", description="agentId of list_agents, or the beginning of it."
    )
    project: str | None = Field(None, description="Instead: part of a project's name or path.")
    client_type: str | None = Field(
        None,
        alias="clientType",
        description="With project: claude-code, opencode, codex, gemini or antigravity.",
    )
    conversation_id: str | None = Field(
        None, alias="conversationId", description="Go on with this thread; else a new one."
    )
    reply_to: str | None = Field(None, alias="replyTo", description="The message that it is about.")
    task_id: str | None = Field(None, alias="taskId", description="The task that it is about.")
    expects_response: bool | None = Field(
        None, alias="expectsResponse", description="Whether you await an answer; else the text decides."
    )
    timeout_ms: int | None = Field(
        None, alias="timeoutMs", ge=0, description="Milliseconds that this call may wait, 120000 at most."
    )


async def message_client_session(call: Call, wanted: MessageClientSessionParameters) -> Answer:
    """Store the message for its recipient; wait for word of it where word can come."""
    session = call.session
    identity = session.hello.identity
    rows = await present(call)
    message = await sent_before(call)
    if message is None:
        me = own(call, rows)
        reader = Reader(
            identity, me.agent_id, {row.agent_id: row for row in rows if row.identity == identity}
        )
        thread = await session.channel.read(lambda store: _thread(store, reader, wanted))
        to = await _recipient(call, wanted, rows, thread)
        reaches = await session.channel.reaches(identity, to.agent_id)
        draft = _draft(call, wanted, me, to, thread)
        message, whom = cast("Sent", await session.channel.write(Send(draft))).message, to.name
    else:
        reaches = await session.channel.reaches(identity, message.to_agent_id or "")
        whom = _name_of(message, rows)
    return await _told(call, wanted, message, whom, reaches=reaches)


class _Thread:
    """Where the message goes: nothing of it is set for a new thread."""

    __slots__ = ("conversation_id", "participants", "reply_to", "stays_open")

    def __init__(
        self,
        conversation_id: str | None = None,
        participants: Sequence[str] | None = None,
        reply_to: str | None = None,
        *,
        stays_open: bool = False,
    ) -> None:
        self.conversation_id = conversation_id
        self.participants = participants
        self.reply_to = reply_to
        self.stays_open = stays_open


def _thread(store: Store, reader: Reader, wanted: MessageClientSessionParameters) -> _Thread:
    conversation_id = wanted.conversation_id or None
    about: Message | None = None
    if wanted.reply_to:
        about = store.message(reader.identity, wanted.reply_to)
        if about is None or conversation_id not in (None, about.conversation_id):
            raise UnknownError(
                "There is no such message to reply to",
                detail=one_line(wanted.reply_to, ids.MAX_ID),
                remedy="Leave replyTo out, or take it from channel_inbox.",
            )
        conversation_id = about.conversation_id
    if conversation_id is None:
        return _Thread()
    agents = check_part(store, reader, conversation_id)
    if about is None:
        return _Thread(conversation_id, agents)
    # Only `reply` closes a question: what is said of it here leaves it open.
    is_theirs = about.from_agent_id != reader.agent_id and about.to_agent_id in (None, reader.agent_id)
    others = [about.from_agent_id if is_theirs else about.to_agent_id or about.from_agent_id]
    stays_open = is_theirs and about.expects_response and not about.state.is_terminal
    return _Thread(conversation_id, others, about.message_id, stays_open=is_theirs and stays_open)


async def _recipient(
    call: Call, wanted: MessageClientSessionParameters, rows: Sequence[AgentRow], thread: _Thread
) -> AgentRow:
    """Who is meant. Raises ChannelError where that isn't one session."""
    session = call.session
    request = Request(
        identity=session.hello.identity,
        sender_id=session.agent_id,
        client_id=wanted.client_id or None,
        project=wanted.project or None,
        client_type=wanted.client_type or None,
        participants=thread.participants,
    )
    loop = asyncio.get_running_loop()
    until = loop.time() + RETURN_SECONDS
    while True:
        try:
            return resolve(rows, request)
        except UnknownError as error:
            if not call.is_replay or loop.time() >= until:
                remedy = error.remedy or "list_agents with includeClients=true shows who is there."
                raise UnknownError(error.title, detail=error.detail, remedy=remedy) from error
        await asyncio.sleep(_LOOK_SECONDS)
        rows = await session.channel.rows(session.hello.identity)


def _draft(
    call: Call, wanted: MessageClientSessionParameters, me: AgentRow, to: AgentRow, thread: _Thread
) -> Draft:
    meta: dict[str, Any] = {
        "targetClientId": to.agent_id,
        "targetProject": to.project_path,
        "targetClientName": to.client_name or to.name,
    }
    draft = Draft(
        identity=me.identity,
        from_agent_id=me.agent_id,
        from_agent_name=me.name,
        to_agent_id=to.agent_id,
        kind=Kind.CHAT,
        content=wanted.message,
        conversation_id=thread.conversation_id,
        message_id=call.key,
        reply_to=thread.reply_to,
        task_id=None if wanted.task_id is None else ids.checked_id(wanted.task_id, "taskId"),
        meta=meta,
        requires_ack=True,
        expects_response=wanted.expects_response,
    )
    draft = replace(draft, expects_response=expects.fill(draft))
    if thread.reply_to is None or not thread.stays_open:
        return draft
    return replace(draft, reply_to=None, meta=meta | {"about": thread.reply_to})


async def _told(
    call: Call,
    wanted: MessageClientSessionParameters,
    message: Message,
    whom: str,
    *,
    reaches: bool,
) -> Answer:
    state, trouble, answer = message.state, "", None
    try:
        if reaches:
            state = await await_state(call, message, _DELIVERED, DELIVERY_SECONDS) or state
        if _waits(call, message, state):
            seconds = ANSWER_SECONDS if wanted.timeout_ms is None else wanted.timeout_ms / 1000
            state = await await_state(call, message, frozenset(), min(seconds, LONGEST_SECONDS)) or state
        if state is AckState.ANSWERED:
            answer = await answer_to(call, message)
    except AgentBridgeError as error:
        trouble = f"It is stored; how far it came isn't known: {error.sentence()}"
    data: dict[str, Any] = {
        "toAgentId": message.to_agent_id or "",
        "conversationId": message.conversation_id,
        "messageId": message.message_id,
        "deliveryState": state.value,
        "expectsResponse": message.expects_response,
    }
    lines = [f"Channel message sent to {one_line(whom, 80)}"]
    lines += [f"  {name}: {_value(value)}" for name, value in data.items()]
    if answer is not None:
        shown, why_not = await shown_answer(call, answer)
        data["reply"] = shown.part.data
        lines += ["reply:", shown.part.text]
        trouble = trouble or why_not
    notes = [
        note
        for note in (_note(call, message, state, reaches=reaches, has=answer is not None), trouble)
        if note
    ]
    if wanted.expects_response is None:
        notes.append(_inferred(message))
    if _is_about_an_open_one(message):
        notes.append("The message that it is about stays open: only reply closes it.")
    data["note"] = " ".join(notes)
    lines += [f"Note: {note}" for note in notes]
    return Answer("\n".join(lines), data)


def _name_of(message: Message, rows: Sequence[AgentRow]) -> str:
    """Its recipient, who may be away now."""
    there = (row.name for row in rows if row.agent_id == message.to_agent_id)
    return next(there, None) or str((message.meta or {}).get("targetClientName", "an agent"))


def _is_about_an_open_one(message: Message) -> bool:
    """Whether it is about a message that stays open, as `_draft` has noted."""
    return "about" in (message.meta or {})


def _waits(call: Call, message: Message, state: AckState) -> bool:
    """Whether the answer has to come with this call, and may."""
    return call.session.profile not in _PUSHED and message.expects_response and state in _DELIVERED


def _value(value: object) -> str:
    return quoted(value) if isinstance(value, str) else str(value).lower()


def _inferred(message: Message) -> str:
    told = "awaits an answer" if message.expects_response else "awaits no answer"
    return f"By its text it {told}; expectsResponse says it outright."


def _note(call: Call, message: Message, state: AckState, *, reaches: bool, has: bool) -> str:
    if has:
        return ""
    if state is AckState.FAILED:
        return "It couldn't be delivered; the recipient won't see it by itself."
    if state is AckState.ANSWERED:
        return f"It was answered. {_LATER}"
    if state not in _DELIVERED:
        told = "no word of it yet" if reaches else "its program takes no messages by itself"
        return (
            f"Stored for its recipient, {told}: it waits in the inbox until the session looks there."
            f"{f' {_LATER}' if message.expects_response else ''}"
        )
    if not message.expects_response:
        return "Delivered."
    if call.session.profile in _PUSHED:
        return f"Delivered. {_LATER}"
    return f"Delivered, and not answered in time. {_LATER}"


MESSAGE_CLIENT_SESSION = Tool(
    name="message_client_session",
    title="Write to another session",
    description=(
        "Send a message to the running session of another agent program on this machine: to ask it, hand"
        " something over, or tell it. Name it by clientId (agentId of list_agents with includeClients=true)"
        " or by project. Say who you are and what you need: it doesn't see your session. The message is kept"
        " until it is read; don't send it twice. To answer a message use reply instead."
    ),
    parameters=MessageClientSessionParameters,
    output_schema={
        "type": "object",
        "properties": {
            "toAgentId": {"type": "string"},
            "conversationId": {"type": "string"},
            "messageId": {"type": "string"},
            "deliveryState": {"type": "string"},
            "expectsResponse": {"type": "boolean"},
            "reply": {"type": "object"},
            "note": {"type": "string"},
        },
        "required": ["toAgentId", "conversationId", "messageId", "deliveryState", "expectsResponse"],
    },
    hints=Hints(),
    run=message_client_session,
)
