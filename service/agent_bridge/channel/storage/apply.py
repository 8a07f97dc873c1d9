"""Carries out writes: the channel's rules, on what a batch has read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

import sqlalchemy as sa

from agent_bridge.channel import expects, ids, states
from agent_bridge.channel.clock import Moment
from agent_bridge.channel.errors import ChannelError, InvalidError, TooManyError, UnknownError
from agent_bridge.channel.model import Ack, AckState, ActorType, Draft, Kind, Message
from agent_bridge.channel.storage.batch import Batch, Held, Key, Talk
from agent_bridge.channel.storage.events import ack_event, message_event, suppression_event
from agent_bridge.channel.storage.rows import ack_row, detail_of, payload_of
from agent_bridge.channel.writes import (
    Acknowledge,
    Acknowledged,
    Done,
    Event,
    Outcome,
    Retry,
    Revive,
    Send,
    Sent,
    Suppress,
    Write,
)

REGISTRY_ACTOR: Final = "registry"
_LATEST_TIME: Final = 1 << 53
_NO_ANSWER: Final = frozenset((Kind.ACK, Kind.PRESENCE))


def apply(
    connection: sa.Connection, writes: Sequence[Write], moment: Moment, *, inbox_limit: int
) -> list[Outcome | ChannelError]:
    """Carry out `writes` in their order, within the caller's transaction.

    One that is refused stands as its error in the result and has changed nothing; the others go on. The
    number of statements depends on how many identities there are, not on how many writes.
    """
    batch = Batch(connection, moment)
    outcomes: dict[int, Outcome | ChannelError] = {}
    for number, write in enumerate(writes):
        try:
            _check(write)
        except ChannelError as error:
            outcomes[number] = error
    sound = [write for number, write in enumerate(writes) if number not in outcomes]
    _load(batch, sound)
    for number, write in enumerate(writes):
        if number in outcomes:
            continue
        try:
            outcomes[number] = _carry_out(batch, write, inbox_limit)
        except ChannelError as error:
            outcomes[number] = error
    batch.flush()
    return [outcomes[number] for number in range(len(writes))]


def _check(write: Write) -> None:
    """Only what a database can hold and find again goes on. Raises InvalidError."""
    if isinstance(write, Send):
        draft = write.draft
        ids.checked_identity(draft.identity)
        ids.checked_id(draft.from_agent_id, "fromAgentId")
        for value, what in (
            (draft.to_agent_id, "toAgentId"),
            (draft.conversation_id, "conversationId"),
            (draft.message_id, "messageId"),
            (draft.reply_to, "replyTo"),
        ):
            if value is not None:
                ids.checked_id(value, what)
        if draft.expires_at is not None and not 0 <= draft.expires_at < _LATEST_TIME:
            raise InvalidError("expiresAt can't be used", detail="expiresAt is in Unix milliseconds")
        return
    ids.checked_identity(write.identity)
    ids.checked_id(write.conversation_id, "conversationId")
    if isinstance(write, Acknowledge | Retry):
        ids.checked_id(write.message_id, "messageId")
    if isinstance(write, Acknowledge):
        ids.checked_id(write.actor_id, "actorId")
    if isinstance(write, Suppress | Revive):
        ids.checked_id(write.agent_id, "agentId")


def _load(batch: Batch, writes: Sequence[Write]) -> None:
    batch.load_messages(key for write in writes for key in _messages_named(write))
    threads = dict.fromkeys(key for write in writes for key in _conversations_named(write))
    threads |= dict.fromkeys(
        (held.message.identity, held.message.conversation_id) for held in batch.messages.values()
    )
    batch.load_conversations(threads)
    batch.load_open_counts(
        (write.draft.identity, write.draft.to_agent_id)
        for write in writes
        if isinstance(write, Send) and write.draft.to_agent_id is not None
    )


def _messages_named(write: Write) -> Iterator[Key]:
    if isinstance(write, Send):
        if write.draft.message_id is not None:
            yield write.draft.identity, write.draft.message_id
        if write.draft.reply_to is not None:
            yield write.draft.identity, write.draft.reply_to
    elif isinstance(write, Acknowledge | Retry):
        yield write.identity, write.message_id


def _conversations_named(write: Write) -> Iterator[Key]:
    if isinstance(write, Send):
        if write.draft.conversation_id is not None:
            yield write.draft.identity, write.draft.conversation_id
    else:
        yield write.identity, write.conversation_id


def _carry_out(batch: Batch, write: Write, inbox_limit: int) -> Outcome:
    match write:
        case Send():
            return _send(batch, write.draft, inbox_limit)
        case Acknowledge():
            held = _held(batch, write.identity, write.conversation_id, write.message_id)
            ack = _acknowledge(batch, held, write.state, write.actor_id, write.actor_type, write.detail)
            return Acknowledged(ack, held.message, (_told(ack, held.message),))
        case Retry():
            return _retry(batch, _held(batch, write.identity, write.conversation_id, write.message_id))
        case Suppress():
            return _suppress(batch, write)
        case Revive():
            return _revive(batch, write)


def _send(batch: Batch, draft: Draft, inbox_limit: int) -> Sent:
    message_id = draft.message_id or ids.message_id()
    if known := batch.messages.get((draft.identity, message_id)):
        return Sent(known.message, deduplicated=True)
    asked = batch.messages.get((draft.identity, draft.reply_to)) if draft.reply_to else None
    conversation_id = draft.conversation_id or (asked and asked.message.conversation_id) or ids.thread_id()
    expects_response = expects.fill(draft)
    is_open = states.is_open(draft.kind, expects_response, AckState.QUEUED)
    if is_open and draft.to_agent_id is not None:
        _check_room(batch, draft.identity, draft.to_agent_id, inbox_limit)
    payload = payload_of(draft)
    moment = batch.moment
    talk = _talk(batch, draft.identity, conversation_id)
    events = _brought_back(batch, talk)
    message = Message(
        seq=batch.next_seq(),
        identity=draft.identity,
        conversation_id=conversation_id,
        message_id=message_id,
        from_agent_id=draft.from_agent_id,
        kind=draft.kind,
        content=draft.content,
        created_at=moment.wall,
        expects_response=expects_response,
        requires_ack=draft.requires_ack,
        to_agent_id=draft.to_agent_id,
        reply_to=draft.reply_to,
        from_agent_name=draft.from_agent_name,
        task_id=draft.task_id,
        meta=draft.meta,
        expires_at=draft.expires_at,
    )
    due = None if draft.expires_at is None else moment.due(draft.expires_at)
    batch.messages[draft.identity, message_id] = Held(message, due, is_open, None, payload)
    talk.roll = talk.roll.with_message(draft.kind, expects_response=expects_response, seq=message.seq)
    talk.joined.add(draft.from_agent_id)
    if draft.to_agent_id is not None:
        talk.joined.add(draft.to_agent_id)
        if is_open:
            batch.open_counts[draft.identity, draft.to_agent_id] += 1
    _touch(batch, talk, moved=True)
    events.append(message_event(message))
    if asked is not None and _is_answer(message, asked):
        ack = _acknowledge(batch, asked, AckState.ANSWERED, draft.from_agent_id, ActorType.CLIENT, None)
        events.append(_told(ack, asked.message))
    return Sent(message, events=tuple(events))


def _check_room(batch: Batch, identity: str, agent_id: str, inbox_limit: int) -> None:
    if batch.open_counts[identity, agent_id] >= inbox_limit:
        raise TooManyError(
            "The recipient's inbox is full",
            detail=f"{inbox_limit} messages await {agent_id}; this one wasn't stored",
            remedy="Send it again when it has answered some.",
        )


def _is_answer(message: Message, asked: Held) -> bool:
    """Whether `message` answers the one that its `replyTo` names.

    One that has failed for want of an answer may still be answered.
    """
    question = asked.message
    return (
        message.kind not in _NO_ANSWER
        and question.conversation_id == message.conversation_id
        and message.from_agent_id == (question.to_agent_id or message.from_agent_id)
        and (question.to_agent_id is not None or message.from_agent_id != question.from_agent_id)
        and (asked.is_open or (question.expects_response and question.state is AckState.FAILED))
    )


def _acknowledge(
    batch: Batch, held: Held, state: AckState, actor_id: str, actor_type: ActorType, detail: str | None
) -> Ack:
    message = held.message
    stored_detail = detail_of(detail)
    ack = Ack(
        seq=batch.next_seq(),
        identity=message.identity,
        conversation_id=message.conversation_id,
        message_id=message.message_id,
        state=state,
        actor_id=actor_id,
        actor_type=actor_type,
        timestamp=batch.moment.wall,
        detail=detail,
    )
    talk = _talk(batch, message.identity, message.conversation_id)
    after = states.higher(message.state, state)
    batch.acks.append(ack_row(ack, counted=after is not message.state, detail=stored_detail))
    if after is not message.state:
        talk.roll = talk.roll.with_ack(
            message.kind, expects_response=message.expects_response, before=message.state, ack=state
        )
        held.message = replace(message, state=after)
        held.changed = True
        still_open = states.is_open(message.kind, message.expects_response, after)
        if held.is_open and not still_open and message.to_agent_id is not None:
            batch.open_counts[message.identity, message.to_agent_id] -= 1
        held.is_open = still_open
    if message.to_agent_id is None and state in (AckState.DISPLAYED, AckState.ANSWERED):
        batch.seen[message.identity, actor_id, message.seq] = None
    _touch(batch, talk)
    return ack


def _retry(batch: Batch, held: Held) -> Sent:
    message, moment = held.message, batch.moment
    talk = _talk(batch, message.identity, message.conversation_id)
    events = _brought_back(batch, talk)
    expires_at = message.expires_at
    if expires_at is not None:
        expires_at = moment.wall + max(0, expires_at - message.created_at)
        held.due = moment.due(expires_at)
    held.message = message = replace(
        message,
        seq=batch.next_seq(),
        created_at=moment.wall,
        expires_at=expires_at,
        attempt_count=message.attempt_count + 1,
    )
    held.changed = True
    talk.roll = talk.roll.with_retry(message.seq)
    _touch(batch, talk, moved=True)
    events.append(message_event(message))
    ack = _acknowledge(
        batch,
        held,
        AckState.QUEUED,
        REGISTRY_ACTOR,
        ActorType.REGISTRY,
        f"Retry attempt {message.attempt_count}",
    )
    events.append(_told(ack, message))
    return Sent(held.message, events=tuple(events))


def _suppress(batch: Batch, write: Suppress) -> Done:
    key = write.identity, write.conversation_id
    if key not in batch.talks:
        raise _unknown_conversation(write.conversation_id)
    if write.agent_id in batch.hidden[key]:
        return Done(changed=False)
    return Done(changed=True, events=(_hide(batch, key, write.agent_id, hidden=True),))


def _revive(batch: Batch, write: Revive) -> Done:
    key = write.identity, write.conversation_id
    if write.agent_id not in batch.hidden[key]:
        return Done(changed=False)
    return Done(changed=True, events=(_hide(batch, key, write.agent_id, hidden=False),))


def _brought_back(batch: Batch, talk: Talk) -> list[Event]:
    """A new message shows its conversation to all again, in the list too."""
    talk.archived = False
    key = talk.identity, talk.conversation_id
    if key not in batch.hidden:
        return []
    return [_hide(batch, key, agent_id, hidden=False) for agent_id in sorted(batch.hidden[key])]


def _hide(batch: Batch, key: Key, agent_id: str, *, hidden: bool) -> Event:
    identity, conversation_id = key
    seq = batch.next_seq()
    batch.suppress(identity, conversation_id, agent_id, seq, hidden=hidden)
    return suppression_event(identity, conversation_id, agent_id, seq, hidden=hidden)


def _held(batch: Batch, identity: str, conversation_id: str, message_id: str) -> Held:
    held = batch.messages.get((identity, message_id))
    if held is None or held.message.conversation_id != conversation_id:
        raise UnknownError("Message not found", detail=f"no message {message_id} in {conversation_id}")
    return held


def _unknown_conversation(conversation_id: str) -> UnknownError:
    return UnknownError("Conversation not found", detail=f"no conversation {conversation_id}")


def _talk(batch: Batch, identity: str, conversation_id: str) -> Talk:
    key = identity, conversation_id
    talk = batch.talks.get(key)
    if talk is None:
        talk = batch.talks[key] = Talk(identity, conversation_id)
    return talk


def _touch(batch: Batch, talk: Talk, *, moved: bool = False) -> None:
    talk.touched = max(talk.touched, batch.moment.steady)
    talk.updated_at = batch.moment.wall
    talk.moved = talk.moved or moved
    talk.changed = True


def _told(ack: Ack, message: Message) -> Event:
    return ack_event(ack, message.from_agent_id, message.to_agent_id)
