"""What a socket missed: everything stored after some seq, in order, as it was told then."""

from __future__ import annotations

from typing import Any, Final

import sqlalchemy as sa
from sqlalchemy import bindparam

from agent_bridge.channel.storage.events import ack_event, message_event, suppression_event
from agent_bridge.channel.storage.rows import ACK_COLUMNS, MESSAGE_COLUMNS, ack_of, message_of
from agent_bridge.channel.storage.schema import ACKS, MESSAGES, META, SUPPRESSIONS
from agent_bridge.channel.writes import Event

MAX_EVENTS: Final = 5000

_m, _a, _s = MESSAGES.c, ACKS.c, SUPPRESSIONS.c
_MESSAGES = sa.select(*MESSAGE_COLUMNS)
_ACKS = sa.select(*ACK_COLUMNS, _m.from_agent_id, _m.to_agent_id).join(
    MESSAGES, sa.and_(_m.identity == _a.identity, _m.message_id == _a.message_id)
)
_SUPPRESSIONS = sa.select(_s.identity, _s.conversation_id, _s.agent_id, _s.seq, _s.hidden)


def _since(query: sa.Select[Any], table: sa.Table, *, of_one: bool) -> sa.Select[Any]:
    if of_one:
        query = query.where(table.c.identity == bindparam("identity"))
    return query.where(table.c.seq > bindparam("since")).order_by(table.c.seq).limit(bindparam("rows"))


QUERIES: Final = {
    of_one: tuple(
        _since(query, table, of_one=of_one)
        for query, table in ((_MESSAGES, MESSAGES), (_ACKS, ACKS), (_SUPPRESSIONS, SUPPRESSIONS))
    )
    for of_one in (True, False)
}
"""For messages, acks and suppressions; of one identity, or of all."""

_LAST_SEQ = sa.select(META.c.value).where(META.c.name == "last_seq")


def events_since(connection: sa.Connection, identity: str | None, seq: int, limit: int) -> list[Event]:
    """The next `limit` events after `seq`, in order of seq; as the rows are now, so a message that was sent
    anew or answered since appears once, as it is."""
    limit = max(1, min(limit, MAX_EVENTS))
    asked: dict[str, Any] = {"since": max(-1, min(seq, (1 << 63) - 1)), "rows": limit}
    if identity is not None:
        asked["identity"] = identity
    messages, acks, suppressions = QUERIES[identity is not None]
    events = [message_event(message_of(row)) for row in connection.execute(messages, asked)]
    events += [
        ack_event(ack_of(row[:-2]), from_agent_id=row[-2], to_agent_id=row[-1])
        for row in connection.execute(acks, asked)
    ]
    events += [
        suppression_event(row[0], row[1], row[2], row[3], hidden=bool(row[4]))
        for row in connection.execute(suppressions, asked)
    ]
    events.sort(key=lambda event: event.seq or 0)
    return events[:limit]


def last_seq(connection: sa.Connection) -> int:
    """The highest number drawn."""
    return int(connection.execute(_LAST_SEQ).scalar_one())
