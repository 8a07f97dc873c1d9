"""Reads of messages and of one conversation, and figures for `status`."""

from __future__ import annotations

from operator import itemgetter
from typing import Any, Final

import sqlalchemy as sa
from sqlalchemy import bindparam

from agent_bridge.channel.errors import UnknownError
from agent_bridge.channel.model import Ack, Message
from agent_bridge.channel.storage.answers import MAX_PAGE, Thread
from agent_bridge.channel.storage.rows import ACK_COLUMNS, MESSAGE_COLUMNS, ack_of, message_of
from agent_bridge.channel.storage.schema import ACKS, CONVERSATIONS, IS_HIDDEN, MESSAGES, SUPPRESSIONS

MAX_ACKS: Final = 10_000

_m, _a, _c, _s = MESSAGES.c, ACKS.c, CONVERSATIONS.c, SUPPRESSIONS.c

MESSAGE: Final = sa.select(*MESSAGE_COLUMNS).where(
    _m.identity == bindparam("identity"), _m.message_id == bindparam("message_id")
)
THREAD: Final = (
    sa.select(*MESSAGE_COLUMNS)
    .where(
        _m.identity == bindparam("identity"),
        _m.conversation_id == bindparam("conversation_id"),
        _m.seq < bindparam("before"),
    )
    .order_by(_m.seq.desc())
    .limit(bindparam("rows"))
)
# Sorted afterwards: for an ORDER BY seq SQLite would walk through all acks of the identity.
THREAD_ACKS: Final = (
    sa.select(*ACK_COLUMNS)
    .where(_a.identity == bindparam("identity"), _a.message_id.in_(bindparam("message_ids", expanding=True)))
    .limit(MAX_ACKS)
)
_OF_ONE = sa.select(_c.identity, _c.archived).where(
    _c.identity == bindparam("identity"), _c.conversation_id == bindparam("conversation_id")
)
_OF_ANY = (
    sa.select(_c.identity, _c.archived)
    .where(_c.conversation_id == bindparam("conversation_id"))
    .order_by(_c.last_seq.desc())
    .limit(1)
)
_IS_SUPPRESSED = sa.select(sa.literal(1)).where(
    _s.identity == bindparam("identity"),
    _s.conversation_id == bindparam("conversation_id"),
    _s.agent_id == bindparam("agent_id"),
    IS_HIDDEN,
)
_FIGURES: Final = {
    "messages": sa.select(sa.func.coalesce(sa.func.sum(_c.message_count), 0)),
    "pending": sa.select(sa.func.coalesce(sa.func.sum(_c.pending_count), 0)),
    "conversations": sa.select(sa.func.count()).select_from(CONVERSATIONS),
    "archived": sa.select(sa.func.count()).select_from(CONVERSATIONS).where(_c.archived == 1),
    "suppressed": sa.select(sa.func.count()).select_from(SUPPRESSIONS).where(IS_HIDDEN),
}


def message(connection: sa.Connection, identity: str, message_id: str) -> Message | None:
    """One message as it is now."""
    row = connection.execute(MESSAGE, {"identity": identity, "message_id": message_id}).first()
    return None if row is None else message_of(row)


def conversation(
    connection: sa.Connection,
    identity: str | None,
    conversation_id: str,
    *,
    agent_id: str | None,
    before: int | None,
    limit: int,
) -> Thread:
    """A page of one conversation. `identity` None: of whichever identity has it, the newest if several.

    Raises UnknownError."""
    limit = max(1, min(limit, MAX_PAGE))
    asked: dict[str, Any] = {"conversation_id": conversation_id}
    if identity is None:
        found = connection.execute(_OF_ANY, asked).first()
    else:
        found = connection.execute(_OF_ONE, asked | {"identity": identity}).first()
    if found is None:
        raise unknown_conversation()
    asked |= {"identity": found.identity}
    place = (1 << 63) - 1 if before is None else max(0, min(before, (1 << 63) - 1))
    rows = connection.execute(THREAD, asked | {"before": place, "rows": limit + 1}).all()
    messages = tuple(message_of(row) for row in reversed(rows[:limit]))
    acks: tuple[Ack, ...] = ()
    if messages:
        names = {"identity": found.identity, "message_ids": [message.message_id for message in messages]}
        found_acks = sorted(connection.execute(THREAD_ACKS, names), key=itemgetter(0))
        acks = tuple(ack_of(row) for row in found_acks)
    suppressed = agent_id is not None and (
        connection.execute(_IS_SUPPRESSED, asked | {"agent_id": agent_id}).first() is not None
    )
    return Thread(
        identity=found.identity,
        conversation_id=conversation_id,
        messages=messages,
        acks=acks,
        suppressed=suppressed,
        archived=bool(found.archived),
        next=messages[0].seq if len(rows) > limit else None,
    )


def unknown_conversation() -> UnknownError:
    """The error for a conversation that isn't there, in whichever identity."""
    return UnknownError("Conversation not found")


def counts(connection: sa.Connection) -> dict[str, int]:
    """Messages, pending messages, conversations, archived and suppressed ones; from the roll-ups."""
    return {name: int(connection.execute(query).scalar_one()) for name, query in _FIGURES.items()}
