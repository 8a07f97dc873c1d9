"""Messages and acks as rows of the tables, and back. Pure.

What isn't looked up by (content, names, meta) is one JSON text in ASCII: NULs, lone surrogates and whatever
else a text may hold come back as they were, from either database.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

import sqlalchemy as sa

from agent_bridge.channel.errors import InvalidError
from agent_bridge.channel.model import (
    Ack,
    AckState,
    ActorType,
    ConversationStatus,
    Draft,
    Kind,
    Message,
)
from agent_bridge.channel.storage.schema import ACKS, MESSAGES

STATES: Final = tuple(AckState)
"""Acks' states by rank, which is how columns hold them."""
STATUS_NUMBERS: Final = {
    ConversationStatus.ACTIVE: 0,
    ConversationStatus.PENDING: 1,
    ConversationStatus.FAILED: 2,
    ConversationStatus.ANSWERED: 3,
}
"""How `conversations.status` holds them; whether a pending one has expired depends on the time."""

MESSAGE_COLUMNS: Final[tuple[sa.Column[Any], ...]] = tuple(MESSAGES.c)
ACK_COLUMNS: Final[tuple[sa.Column[Any], ...]] = tuple(ACKS.c)

Row = Sequence[Any]
"""A row's values in the order of its columns."""

_KINDS = {kind.value: kind for kind in Kind}
_ACTORS = {actor.value: actor for actor in ActorType}
_text = json.encoder.encode_basestring_ascii
_encode = json.JSONEncoder(separators=(",", ":"), allow_nan=False).encode


def payload_of(draft: Draft) -> str:
    """What of a message stands in its `payload`. Raises InvalidError for a meta that isn't JSON."""
    parts = [f'"content":{_text(draft.content)}']
    if draft.from_agent_name is not None:
        parts.append(f'"fromAgentName":{_text(draft.from_agent_name)}')
    if draft.task_id is not None:
        parts.append(f'"taskId":{_text(draft.task_id)}')
    if draft.meta is not None:
        parts.append(f'"meta":{_json(draft.meta, "meta")}')
    return f"{{{','.join(parts)}}}"


def detail_of(text: str | None) -> str | None:
    """An ack's `detail`."""
    return None if text is None else _text(text)


def message_of(row: Row) -> Message:
    """The message in a row of `MESSAGE_COLUMNS`."""
    (
        seq,
        identity,
        message_id,
        conversation_id,
        from_agent_id,
        to_agent_id,
        reply_to,
        kind,
        created_at,
        expires_at,
        _due,
        expects_response,
        requires_ack,
        attempt_count,
        state,
        _open,
        payload,
    ) = row
    rest = json.loads(payload)
    return Message(
        seq=seq,
        identity=identity,
        conversation_id=conversation_id,
        message_id=message_id,
        from_agent_id=from_agent_id,
        kind=_KINDS[kind],
        content=rest["content"],
        created_at=created_at,
        expects_response=bool(expects_response),
        requires_ack=bool(requires_ack),
        attempt_count=attempt_count,
        state=STATES[state],
        to_agent_id=to_agent_id,
        reply_to=reply_to,
        from_agent_name=rest.get("fromAgentName"),
        task_id=rest.get("taskId"),
        meta=rest.get("meta"),
        expires_at=expires_at,
    )


def ack_of(row: Row) -> Ack:
    """The ack in a row of `ACK_COLUMNS`."""
    seq, identity, message_id, conversation_id, state, actor_id, actor_type, acked_at, _counted, detail = row
    return Ack(
        seq=seq,
        identity=identity,
        conversation_id=conversation_id,
        message_id=message_id,
        state=STATES[state],
        actor_id=actor_id,
        actor_type=_ACTORS[actor_type],
        timestamp=acked_at,
        detail=None if detail is None else json.loads(detail),
    )


def message_row(message: Message, *, due: int | None, is_open: bool, payload: str) -> dict[str, Any]:
    """A new message's row."""
    return {
        "seq": message.seq,
        "identity": message.identity,
        "message_id": message.message_id,
        "conversation_id": message.conversation_id,
        "from_agent_id": message.from_agent_id,
        "to_agent_id": message.to_agent_id,
        "reply_to": message.reply_to,
        "kind": message.kind.value,
        "created_at": message.created_at,
        "expires_at": message.expires_at,
        "due": due,
        "expects_response": int(message.expects_response),
        "requires_ack": int(message.requires_ack),
        "attempt_count": message.attempt_count,
        "state": message.state.rank,
        "open": int(is_open),
        "payload": payload,
    }


def ack_row(ack: Ack, *, counted: bool, detail: str | None) -> dict[str, Any]:
    """A new ack's row; `detail` as `detail_of` has it, `counted`: it raised its message's state."""
    return {
        "seq": ack.seq,
        "identity": ack.identity,
        "message_id": ack.message_id,
        "conversation_id": ack.conversation_id,
        "state": ack.state.rank,
        "actor_id": ack.actor_id,
        "actor_type": ack.actor_type.value,
        "acked_at": ack.timestamp,
        "counted": int(counted),
        "detail": detail,
    }


def _json(value: Mapping[str, Any], what: str) -> str:
    try:
        return _encode(value)
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidError(f"{what} can't be stored", detail=f"{what} isn't JSON: {error}") from None
