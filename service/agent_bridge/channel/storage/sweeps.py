"""Sweeps, each call one small batch within a write transaction: expiry, archive, retention."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import sqlalchemy as sa
from sqlalchemy import bindparam

from agent_bridge.channel.clock import Moment
from agent_bridge.channel.model import AckState, ActorType
from agent_bridge.channel.states import status_of
from agent_bridge.channel.storage.answers import SweepResult
from agent_bridge.channel.storage.apply import apply
from agent_bridge.channel.storage.keys import AT_ONCE, by_identity
from agent_bridge.channel.storage.rows import STATES, STATUS_NUMBERS, Row
from agent_bridge.channel.storage.rules import REGISTRY_ACTOR
from agent_bridge.channel.storage.schema import (
    ACKS,
    CONVERSATIONS,
    HAS_COUNTED,
    IS_DUE,
    IS_FINISHED,
    MESSAGES,
    META,
    PARTICIPANTS,
    RECEIPTS,
    SUPPRESSIONS,
    read_moment,
    written_moment,
)
from agent_bridge.channel.writes import Acknowledge, Settled

NOT_ANSWERED: Final = "It expired without a reply."
NOT_SEEN: Final = "It expired before it was displayed."
"""The details of the registry's `failed` acks."""

_m, _a, _c, _p, _s, _r = (
    table.c for table in (MESSAGES, ACKS, CONVERSATIONS, PARTICIPANTS, SUPPRESSIONS, RECEIPTS)
)
DUE: Final = (
    sa.select(_m.identity, _m.conversation_id, _m.message_id, _m.expects_response)
    .where(IS_DUE, _m.due <= bindparam("now"))
    .order_by(_m.due)
    .limit(bindparam("rows"))
)
FINISHED: Final = (
    sa.select(_c.identity, _c.conversation_id)
    .where(IS_FINISHED, _c.touched <= bindparam("oldest"))
    .order_by(_c.touched)
    .limit(bindparam("rows"))
)
OLD: Final = (
    sa.select(_c.identity, _c.conversation_id, _c.message_count, _c.pending_count)
    .where(_c.touched <= bindparam("oldest"))
    .order_by(_c.touched)
    .limit(bindparam("rows"))
)
_IDS: sa.BindParameter[str] = bindparam("ids", expanding=True)
_OF_THESE = {
    table: sa.and_(table.c.identity == bindparam("in_identity"), table.c.conversation_id.in_(_IDS))
    for table in (CONVERSATIONS, PARTICIPANTS, SUPPRESSIONS, MESSAGES)
}
_ARCHIVE = tuple(
    sa.update(table).where(_OF_THESE[table]).values(archived=1) for table in (CONVERSATIONS, PARTICIPANTS)
)
_FORGET = tuple(
    sa.delete(table).where(_OF_THESE[table]) for table in (CONVERSATIONS, PARTICIPANTS, SUPPRESSIONS)
)
_DELETED = sa.select(_m.seq, _m.message_id, _m.open * _m.expects_response, _m.to_agent_id)
_OLDEST_OF_ONE = (
    _DELETED.where(_m.identity == bindparam("in_identity"))
    .where(_m.conversation_id == bindparam("conversation_id"))
    .order_by(_m.seq)
    .limit(bindparam("rows"))
)
# Unsorted: for an ORDER BY seq SQLite would walk through all messages of the identity.
_ALL_OF_THESE = _DELETED.where(_OF_THESE[MESSAGES])
_DELETE_MESSAGES = sa.delete(MESSAGES).where(_m.seq.in_(_IDS))
_DELETE_RECEIPTS = sa.delete(RECEIPTS).where(_r.seq.in_(_IDS))
_DELETE_ACKS = sa.delete(ACKS).where(_a.identity == bindparam("in_identity"), _a.message_id.in_(_IDS))
_COUNTED = (
    sa.select(_a.state)
    .where(_a.identity == bindparam("in_identity"), _a.conversation_id == bindparam("conversation_id"))
    .where(HAS_COUNTED)
    .order_by(_a.seq.desc())
    .limit(1)
)
# One that counted as `queued` began its message anew.
_OUTCOME = _COUNTED.where(sa.or_(_a.state >= AckState.FAILED.rank, _a.state == AckState.QUEUED.rank))
_SHORTEN = (
    sa.update(CONVERSATIONS)
    .where(_c.identity == bindparam("in_identity"), _c.conversation_id == bindparam("in_conversation"))
    .values({name: bindparam(f"new_{name}") for name in ("message_count", "pending_count", "status")})
    .values({name: bindparam(f"new_{name}") for name in ("last_ack_state", "outcome")})
)
_MOMENT = sa.select(META.c.value).where(META.c.name == "moment")
_NOTE_MOMENT = sa.update(META).where(META.c.name == "moment").values(value=bindparam("value"))


def expire(
    connection: sa.Connection, now: Moment, batch: int, inbox_limit: int
) -> tuple[SweepResult, list[Settled]]:
    """Give open messages whose time is over a `failed` ack by the registry, each exactly one.

    That goes for messages to one recipient which ask for nothing, too: their sender learns that they weren't
    seen, and they no longer take room in an inbox."""
    note_moment(connection, now)
    rows = connection.execute(DUE, {"now": now.steady, "rows": batch}).all()
    writes = [
        Acknowledge(
            identity=identity,
            conversation_id=conversation_id,
            message_id=message_id,
            state=AckState.FAILED,
            actor_id=REGISTRY_ACTOR,
            actor_type=ActorType.REGISTRY,
            detail=NOT_ANSWERED if expects_response else NOT_SEEN,
        )
        for identity, conversation_id, message_id, expects_response in rows
    ]
    outcomes = apply(connection, writes, now, inbox_limit=inbox_limit) if writes else []
    settled = [Settled(write, None, outcome) for write, outcome in zip(writes, outcomes, strict=True)]
    return SweepResult(len(writes), more=len(writes) == batch), settled


def archive(connection: sa.Connection, now: Moment, older_than_ms: int, batch: int) -> SweepResult:
    """Take out of the list what has come to an end, and had its last word that long ago."""
    note_moment(connection, now)
    asked = {"oldest": now.steady - older_than_ms, "rows": batch}
    keys = [(row[0], row[1]) for row in connection.execute(FINISHED, asked)]
    for identity, some in by_identity(keys):
        for statement in _ARCHIVE:
            connection.execute(statement, {"in_identity": identity, "ids": some})
    return SweepResult(len(keys), more=len(keys) == batch)


def delete_old(connection: sa.Connection, now: Moment, older_than_ms: int, batch: int) -> SweepResult:
    """Delete what had its last word that long ago: whole conversations of up to `batch` messages in all; of
    one that is larger the oldest messages, so that no write waits for long. Counts messages."""
    note_moment(connection, now)
    asked = {"oldest": now.steady - older_than_ms, "rows": batch}
    old = connection.execute(OLD, asked).all()
    if not old:
        return SweepResult(0, more=False)
    if old[0][2] > batch:
        return SweepResult(_shorten(connection, *old[0], batch), more=True)
    chosen, rows = [], 0
    for identity, conversation_id, message_count, _pending in old:
        if rows + message_count > batch:
            break
        chosen.append((identity, conversation_id))
        rows += message_count
    count = 0
    for identity, some in by_identity(chosen):
        messages = connection.execute(_ALL_OF_THESE, {"in_identity": identity, "ids": some}).all()
        _delete_messages(connection, identity, messages)
        count += len(messages)
        for statement in _FORGET:
            connection.execute(statement, {"in_identity": identity, "ids": some})
    return SweepResult(count, more=len(chosen) < len(old) or len(old) == batch)


def note_moment(connection: sa.Connection, now: Moment) -> None:
    """Write down how far steady time has come, for the next start; never back."""
    if now.steady > read_moment(connection.execute(_MOMENT).scalar_one()).steady:
        connection.execute(_NOTE_MOMENT, {"value": written_moment(now)})


def _shorten(
    connection: sa.Connection,
    identity: str,
    conversation_id: str,
    message_count: int,
    pending_count: int,
    batch: int,
) -> int:
    """Delete a conversation's oldest messages and carry its roll-up along."""
    asked = {"in_identity": identity, "conversation_id": conversation_id}
    gone = connection.execute(_OLDEST_OF_ONE, asked | {"rows": batch}).all()
    _delete_messages(connection, identity, gone)
    last, outcome = (connection.execute(query, asked).scalar() for query in (_COUNTED, _OUTCOME))
    outcome = None if outcome == AckState.QUEUED.rank else outcome
    pending = pending_count - sum(row[2] for row in gone)
    connection.execute(
        _SHORTEN,
        {
            "in_identity": identity,
            "in_conversation": conversation_id,
            "new_message_count": message_count - len(gone),
            "new_pending_count": pending,
            "new_status": STATUS_NUMBERS[status_of(pending, None if outcome is None else STATES[outcome])],
            "new_last_ack_state": last,
            "new_outcome": outcome,
        },
    )
    return len(gone)


def _delete_messages(connection: sa.Connection, identity: str, messages: Sequence[Row]) -> None:
    """Delete messages, given as `_DELETED` has them, and what belongs to them."""
    for start in range(0, len(messages), AT_ONCE):
        some = messages[start : start + AT_ONCE]
        names = [row[1] for row in some]
        connection.execute(_DELETE_ACKS, {"in_identity": identity, "ids": names})
        if broadcasts := [row[0] for row in some if row[3] is None]:
            connection.execute(_DELETE_RECEIPTS, {"ids": broadcasts})
        connection.execute(_DELETE_MESSAGES, {"ids": [row[0] for row in some]})
