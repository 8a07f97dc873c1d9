"""Carries out writes in one transaction: checks them, reads what they name, applies the rules, saves."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import sqlalchemy as sa

from agent_bridge.channel import ids
from agent_bridge.channel.clock import Moment
from agent_bridge.channel.errors import ChannelError, InvalidError
from agent_bridge.channel.storage import rules
from agent_bridge.channel.storage.batch import Batch
from agent_bridge.channel.storage.keys import Key
from agent_bridge.channel.storage.saving import save
from agent_bridge.channel.writes import Acknowledge, Outcome, Retry, Revive, Send, Suppress, Write

_LATEST_TIME: Final = 1 << 53


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
    save(connection, batch)
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
    batch.load_open_counts(key for write in writes for key in _inboxes_grown(batch, write))


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


def _inboxes_grown(batch: Batch, write: Write) -> Iterator[Key]:
    if isinstance(write, Send):
        if write.draft.to_agent_id is not None:
            yield write.draft.identity, write.draft.to_agent_id
    elif isinstance(write, Retry):
        held = batch.messages.get((write.identity, write.message_id))
        if held is not None and held.message.to_agent_id is not None:
            yield write.identity, held.message.to_agent_id


def _carry_out(batch: Batch, write: Write, inbox_limit: int) -> Outcome:
    match write:
        case Send():
            return rules.send(batch, write.draft, inbox_limit)
        case Acknowledge():
            return rules.acknowledge(batch, write)
        case Retry():
            return rules.retry(batch, write, inbox_limit)
        case Suppress():
            return rules.suppress(batch, write)
        case Revive():
            return rules.revive(batch, write)
