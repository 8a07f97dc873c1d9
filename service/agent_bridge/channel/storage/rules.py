"""What comes of each write: the channel's rules, on what a batch has read. No disk here.

Each checks first and changes after, so that a refused write has changed nothing.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from agent_bridge.channel import expects, ids, states
from agent_bridge.channel.errors import TooManyError, UnknownError
from agent_bridge.channel.model import Ack, AckState, ActorType, Draft, Message
from agent_bridge.channel.storage.batch import Batch, Held, Talk
from agent_bridge.channel.storage.events import ack_event, message_event, suppression_event
from agent_bridge.channel.storage.keys import Key
from agent_bridge.channel.storage.reads import unknown_conversation
from agent_bridge.channel.storage.rows import ack_row, detail_of, payload_of
from agent_bridge.channel.writes import Acknowledge, Acknowledged, Done, Event, Retry, Revive, Sent, Suppress

REGISTRY_ACTOR: Final = "registry"
"""The actor of acks that nobody but the store gave."""


def send(batch: Batch, draft: Draft, inbox_limit: int) -> Sent:
    """Store a message, and the ack for the one that it answers. Raises TooManyError, InvalidError."""
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
        ack = _ack(batch, asked, AckState.ANSWERED, draft.from_agent_id, ActorType.CLIENT, None)
        events.append(_told(ack, asked.message))
    return Sent(message, events=tuple(events))


def acknowledge(batch: Batch, write: Acknowledge) -> Acknowledged:
    """Store an ack. Raises UnknownError."""
    held = _held(batch, write.identity, write.conversation_id, write.message_id)
    ack = _ack(batch, held, write.state, write.actor_id, write.actor_type, write.detail)
    return Acknowledged(ack, held.message, (_told(ack, held.message),))


def retry(batch: Batch, write: Retry, inbox_limit: int) -> Sent:
    """Send a message once more, at the end of its conversation and with its time anew; one that had failed
    is open again. Raises UnknownError, TooManyError."""
    held = _held(batch, write.identity, write.conversation_id, write.message_id)
    message, moment = held.message, batch.moment
    reopened = states.after(message.state, AckState.QUEUED, ActorType.REGISTRY) is not message.state
    if reopened and message.to_agent_id is not None:
        _check_room(batch, message.identity, message.to_agent_id, inbox_limit)
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
    detail = f"Retry attempt {message.attempt_count}"
    ack = _ack(batch, held, AckState.QUEUED, REGISTRY_ACTOR, ActorType.REGISTRY, detail)
    events += (message_event(held.message), _told(ack, message))
    return Sent(held.message, events=tuple(events))


def suppress(batch: Batch, write: Suppress) -> Done:
    """Hide a conversation from one agent."""
    key = write.identity, write.conversation_id
    if key not in batch.talks:
        raise unknown_conversation()
    if write.agent_id in batch.hidden[key]:
        return Done(changed=False)
    return Done(changed=True, events=(_hide(batch, key, write.agent_id, hidden=True),))


def revive(batch: Batch, write: Revive) -> Done:
    """Show it to that agent again."""
    key = write.identity, write.conversation_id
    if write.agent_id not in batch.hidden[key]:
        return Done(changed=False)
    return Done(changed=True, events=(_hide(batch, key, write.agent_id, hidden=False),))


def _check_room(batch: Batch, identity: str, agent_id: str, inbox_limit: int) -> None:
    if batch.open_counts[identity, agent_id] >= inbox_limit:
        raise TooManyError(
            "The recipient's inbox is full",
            detail=f"{inbox_limit} messages await {agent_id}; this one wasn't stored",
            remedy="Send it again when it has answered some.",
        )


def _is_open(message: Message) -> bool:
    return states.is_open(message.kind, message.expects_response, message.state)


def _is_answer(message: Message, asked: Held) -> bool:
    """Whether `message` answers the one that its `replyTo` names.

    One that has failed for want of an answer may still be answered.
    """
    question = asked.message
    return (
        message.kind not in states.NEVER_OPEN
        and question.conversation_id == message.conversation_id
        and message.from_agent_id == (question.to_agent_id or message.from_agent_id)
        and (question.to_agent_id is not None or message.from_agent_id != question.from_agent_id)
        and (asked.is_open or (question.expects_response and question.state is AckState.FAILED))
    )


def _ack(
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
    after = states.after(message.state, state, actor_type)
    batch.acks.append(ack_row(ack, counted=after is not message.state, detail=stored_detail))
    if after is not message.state:
        talk.roll = talk.roll.with_ack(
            message.kind,
            expects_response=message.expects_response,
            before=message.state,
            ack=state,
            actor=actor_type,
        )
        held.message = replace(message, state=after)
        held.changed = True
        was_open, held.is_open = held.is_open, _is_open(held.message)
        if message.to_agent_id is not None:
            batch.open_counts[message.identity, message.to_agent_id] += held.is_open - was_open
    if message.to_agent_id is None and state in (AckState.DISPLAYED, AckState.ANSWERED):
        batch.seen[message.identity, actor_id, message.seq] = None
    _touch(batch, talk)
    return ack


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
        raise UnknownError("Message not found")
    return held


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
