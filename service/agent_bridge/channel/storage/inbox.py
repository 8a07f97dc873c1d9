"""Inboxes: what awaits one agent. Messages to it, and broadcasts that it hasn't seen."""

from __future__ import annotations

from typing import Any, Final

import sqlalchemy as sa
from sqlalchemy import bindparam

from agent_bridge.channel.model import AckState, Message
from agent_bridge.channel.storage.answers import BROADCAST_LIMIT, COUNT_LIMIT, MAX_PAGE, Page, View
from agent_bridge.channel.storage.broadcasts import UNSEEN, seen_up_to
from agent_bridge.channel.storage.rows import MESSAGE_COLUMNS, message_of
from agent_bridge.channel.storage.schema import HAS_DEADLINE, IS_BROADCAST, IS_CLOSED, IS_OPEN, MESSAGES

_m = MESSAGES.c
_MINE = (_m.identity == bindparam("identity"), _m.to_agent_id == bindparam("agent_id"))
_OTHERS = (_m.identity == bindparam("identity"), IS_BROADCAST, _m.from_agent_id != bindparam("agent_id"))
_IN_TIME = sa.or_(_m.due.is_(None), _m.due > bindparam("now"))
_TOO_LATE = _m.due <= bindparam("now")
_UNANSWERED = sa.or_(
    sa.and_(_m.expects_response == 1, _m.state < AckState.ANSWERED.rank),
    sa.and_(_m.expects_response == 0, _m.state < AckState.DISPLAYED.rank),
)

_BY_RECIPIENT: Final[dict[View, tuple[tuple[Any, ...], ...]]] = {
    "open": ((*_MINE, IS_OPEN, _IN_TIME),),
    "expired": ((*_MINE, HAS_DEADLINE, _TOO_LATE, _UNANSWERED),),
    "all": ((*_MINE, IS_OPEN), (*_MINE, IS_CLOSED), _OTHERS),
}
_BY_SIGHT: Final[dict[View, tuple[Any, ...]]] = {
    "open": (*UNSEEN, _IN_TIME),
    "expired": (*UNSEEN, _TOO_LATE),
}
AWAITING: Final = {view: (_BY_RECIPIENT[view][0], _BY_SIGHT[view]) for view in _BY_SIGHT}
"""What the open and the expired view hold, messages to the agent and broadcasts; takes what `inbox` asks."""


def _pages(view: View, *, newest_first: bool) -> tuple[sa.Select[Any], ...]:
    order = _m.seq.desc() if newest_first else _m.seq
    cursor = (_m.seq < bindparam("cursor"),) if newest_first else (_m.seq > bindparam("cursor"),)
    every = [(*conditions, *cursor) for conditions in _BY_RECIPIENT[view]]
    if view in _BY_SIGHT:
        # Upwards the cursor is in `seen_up_to`: with two bounds SQLite would take another index.
        every.append((*_BY_SIGHT[view], *(cursor if newest_first else ())))
    return tuple(
        sa.select(*MESSAGE_COLUMNS).where(*conditions).order_by(order).limit(bindparam("rows"))
        for conditions in every
    )


def _count(conditions: tuple[Any, ...], most: int) -> sa.Select[Any]:
    few = sa.select(_m.seq).where(*conditions).limit(most).subquery()
    return sa.select(sa.func.count()).select_from(few)


PAGES: Final = {
    (view, newest_first): _pages(view, newest_first=newest_first)
    for view in _BY_RECIPIENT
    for newest_first in (False, True)
}
"""Each view's queries, for messages to the agent and for broadcasts, by view and order."""
COUNTS: Final = (
    _count(_BY_RECIPIENT["open"][0], COUNT_LIMIT),
    _count(_BY_SIGHT["open"], BROADCAST_LIMIT),
)
"""The two counts of the open view."""

_HIGHEST = (1 << 63) - 1


def inbox(
    connection: sa.Connection,
    identity: str,
    agent_id: str,
    *,
    now: int,
    limit: int,
    before: int | None,
    view: View,
    newest_first: bool,
) -> Page[Message]:
    """A page of an inbox; `now` is steady time in ms, `before` the `next` of the page before."""
    limit = max(1, min(limit, MAX_PAGE))
    cursor = before if before is not None else _HIGHEST if newest_first else 0
    asked = _asked(connection, identity, agent_id, now)
    asked |= {"cursor": max(-1, min(cursor, _HIGHEST)), "rows": limit + 1}
    if not newest_first:
        asked["seen_up_to"] = max(asked["seen_up_to"], asked["cursor"])
    rows = [row for query in PAGES[view, newest_first] for row in connection.execute(query, asked)]
    rows.sort(key=lambda row: row[0], reverse=newest_first)
    messages = tuple(message_of(row) for row in rows[:limit])
    return Page(messages, messages[-1].seq if len(rows) > limit else None)


def inbox_count(connection: sa.Connection, identity: str, agent_id: str, *, now: int) -> int:
    """How many messages the open view has on all pages; of broadcasts at most `BROADCAST_LIMIT`."""
    asked = _asked(connection, identity, agent_id, now)
    counts: list[int] = [connection.execute(query, asked).scalar_one() for query in COUNTS]
    return min(COUNT_LIMIT, sum(counts))


def _asked(connection: sa.Connection, identity: str, agent_id: str, now: int) -> dict[str, Any]:
    return {
        "identity": identity,
        "agent_id": agent_id,
        "now": now,
        "seen_up_to": seen_up_to(connection, identity, agent_id),
    }
