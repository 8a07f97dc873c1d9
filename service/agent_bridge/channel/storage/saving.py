"""Writes what a batch has made and changed, in a number of statements that doesn't grow with it."""

from __future__ import annotations

from typing import Any, Final

import sqlalchemy as sa
from sqlalchemy import bindparam

from agent_bridge.channel.storage.batch import Batch, Held, Talk
from agent_bridge.channel.storage.broadcasts import note_seen
from agent_bridge.channel.storage.prepared import Prepared
from agent_bridge.channel.storage.rows import STATUS_NUMBERS, message_row
from agent_bridge.channel.storage.schema import (
    ACKS,
    CONVERSATIONS,
    MESSAGES,
    META,
    PARTICIPANTS,
    SUPPRESSIONS,
    insert_missing,
    read_moment,
    written_moment,
)

_NOTED_AFTER_MS: Final = 1000
"""Steady time that passes before a write notes it again."""

_m, _c, _s, _p = MESSAGES.c, CONVERSATIONS.c, SUPPRESSIONS.c, PARTICIPANTS.c
_INSERT_MESSAGES = Prepared(sa.insert(MESSAGES))
_STATE = ("state", "open")
_SENT_ANEW = (*_STATE, "seq", "attempt_count", "created_at", "expires_at", "due")
_STORED = sa.update(MESSAGES).where(_m.seq == bindparam("stored_seq"))
# Apart, as SQLite writes every index of a row anew whose seq is so much as named.
_UPDATE_STATES = Prepared(_STORED.values({name: bindparam(f"new_{name}") for name in _STATE}))
_SEND_ANEW = Prepared(_STORED.values({name: bindparam(f"new_{name}") for name in _SENT_ANEW}))
_INSERT_ACKS = Prepared(sa.insert(ACKS))
_INSERT_CONVERSATIONS = Prepared(sa.insert(CONVERSATIONS))
_ROLLED = (
    "message_count",
    "pending_count",
    "last_seq",
    "last_ack_state",
    "outcome",
    "status",
    "updated_at",
    "touched",
    "archived",
)
_UPDATE_CONVERSATIONS = Prepared(
    sa.update(CONVERSATIONS)
    .where(_c.identity == bindparam("identity"), _c.conversation_id == bindparam("conversation_id"))
    .values({name: bindparam(name) for name in _ROLLED})
)
_JOIN = Prepared(insert_missing(PARTICIPANTS))
_MOVE_PARTICIPANTS = Prepared(
    sa.update(PARTICIPANTS)
    .where(_p.identity == bindparam("identity"), _p.conversation_id == bindparam("conversation_id"))
    .values(last_seq=bindparam("last_seq"), archived=sa.literal_column("0"))
)
_SET_META = Prepared(
    sa.update(META).where(META.c.name == bindparam("key")).values(value=bindparam("new_value"))
)
_DROP_SUPPRESSION = Prepared(
    sa.delete(SUPPRESSIONS).where(
        _s.identity == bindparam("identity"),
        _s.conversation_id == bindparam("conversation_id"),
        _s.agent_id == bindparam("agent_id"),
    )
)
_INSERT_SUPPRESSIONS = Prepared(sa.insert(SUPPRESSIONS))


def save(connection: sa.Connection, batch: Batch) -> None:
    """Write what the batch has made and changed."""
    _save_messages(connection, batch)
    _save_acks(connection, batch)
    _save_conversations(connection, batch)
    _save_suppressions(connection, batch)
    _save_meta(connection, batch)


def _save_meta(connection: sa.Connection, batch: Batch) -> None:
    noted = []
    if str(batch.seq) != batch.meta["last_seq"]:
        noted.append({"key": "last_seq", "new_value": str(batch.seq)})
    if batch.moment.steady - read_moment(batch.meta["moment"]).steady >= _NOTED_AFTER_MS:
        noted.append({"key": "moment", "new_value": written_moment(batch.moment)})
    _SET_META.run(connection, noted)


def _save_messages(connection: sa.Connection, batch: Batch) -> None:
    made = [held for held in batch.messages.values() if held.stored_seq is None]
    _INSERT_MESSAGES.run(connection, [_new_row(held) for held in made])
    changed = [held for held in batch.messages.values() if held.changed and held.stored_seq is not None]
    acked = [held for held in changed if held.message.seq == held.stored_seq]
    _UPDATE_STATES.run(connection, [_acked_row(held) for held in acked])
    retried = [held for held in changed if held.message.seq != held.stored_seq]
    _SEND_ANEW.run(connection, [_retried_row(held) for held in retried])


def _save_acks(connection: sa.Connection, batch: Batch) -> None:
    _INSERT_ACKS.run(connection, batch.acks)
    if batch.seen:
        note_seen(connection, list(batch.seen))


def _save_conversations(connection: sa.Connection, batch: Batch) -> None:
    changed = [talk for talk in batch.talks.values() if talk.changed]
    made = [talk for talk in changed if not talk.stored]
    _INSERT_CONVERSATIONS.run(connection, [_rolled(talk) | _key(talk) for talk in made])
    known = [talk for talk in changed if talk.stored]
    _UPDATE_CONVERSATIONS.run(connection, [_rolled(talk) | _key(talk) for talk in known])
    joined = [
        _key(talk) | {"agent_id": agent_id, "last_seq": talk.roll.last_message_seq, "archived": 0}
        for talk in changed
        for agent_id in sorted(talk.joined)
    ]
    _JOIN.run(connection, joined)
    moved = [_key(talk) | {"last_seq": talk.roll.last_message_seq} for talk in known if talk.moved]
    _MOVE_PARTICIPANTS.run(connection, moved)


def _save_suppressions(connection: sa.Connection, batch: Batch) -> None:
    rows = [
        {
            "identity": identity,
            "conversation_id": conversation_id,
            "agent_id": agent_id,
            "hidden": int(hidden),
            "seq": seq,
        }
        for (identity, conversation_id, agent_id), (hidden, seq) in batch.suppressions.items()
    ]
    _DROP_SUPPRESSION.run(connection, rows)
    _INSERT_SUPPRESSIONS.run(connection, rows)


def _key(talk: Talk) -> dict[str, Any]:
    return {"identity": talk.identity, "conversation_id": talk.conversation_id}


def _rolled(talk: Talk) -> dict[str, Any]:
    roll = talk.roll
    return {
        "message_count": roll.message_count,
        "pending_count": roll.pending_count,
        "last_seq": roll.last_message_seq,
        "last_ack_state": None if roll.last_ack_state is None else roll.last_ack_state.rank,
        "outcome": None if roll.outcome is None else roll.outcome.rank,
        "status": STATUS_NUMBERS[roll.status()],
        "updated_at": talk.updated_at,
        "touched": talk.touched,
        "archived": int(talk.archived),
    }


def _new_row(held: Held) -> dict[str, Any]:
    return message_row(held.message, due=held.due, is_open=held.is_open, payload=held.payload)


def _acked_row(held: Held) -> dict[str, Any]:
    return {
        "stored_seq": held.stored_seq,
        "new_state": held.message.state.rank,
        "new_open": int(held.is_open),
    }


def _retried_row(held: Held) -> dict[str, Any]:
    message = held.message
    return _acked_row(held) | {
        "new_seq": message.seq,
        "new_attempt_count": message.attempt_count,
        "new_created_at": message.created_at,
        "new_expires_at": message.expires_at,
        "new_due": held.due,
    }
