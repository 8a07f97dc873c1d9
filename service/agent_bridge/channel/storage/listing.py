"""The list of conversations: pages of roll-ups, the one with the newest message first."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from operator import itemgetter
from typing import Any, Final

import sqlalchemy as sa
from sqlalchemy import bindparam

from agent_bridge.channel.model import Conversation, ConversationStatus
from agent_bridge.channel.states import status_of
from agent_bridge.channel.storage.answers import COUNT_LIMIT, MAX_PAGE, ConversationQuery, Page
from agent_bridge.channel.storage.keys import Key, by_identity
from agent_bridge.channel.storage.rows import MESSAGE_COLUMNS, STATES, STATUS_NUMBERS, Row, message_of
from agent_bridge.channel.storage.schema import (
    CONVERSATIONS,
    IS_DUE,
    IS_HIDDEN,
    IS_LISTED,
    IS_PENDING,
    MESSAGES,
    PARTICIPANTS,
    SUPPRESSIONS,
)

SHOWN_PENDING: Final = 20
"""Ids of pending messages that one entry names."""

_m, _c, _p, _s = MESSAGES.c, CONVERSATIONS.c, PARTICIPANTS.c, SUPPRESSIONS.c
_ROLLED: Final = (
    _c.identity,
    _c.conversation_id,
    _c.message_count,
    _c.pending_count,
    _c.last_ack_state,
    _c.outcome,
    _c.updated_at,
    _c.archived,
)
_KEY = sa.tuple_(_c.identity, _c.conversation_id)
# Once for the whole list: the sweep leaves few that are due.
_IS_EXPIRED = _KEY.in_(
    sa.select(_m.identity, _m.conversation_id).where(
        IS_DUE, _m.expects_response == 1, _m.due <= bindparam("now")
    )
)
_IS_SUPPRESSED = (
    sa.select(sa.literal(1))
    .where(
        _s.identity == _c.identity,
        _s.conversation_id == _c.conversation_id,
        _s.agent_id == bindparam("agent_id"),
        IS_HIDDEN,
    )
    .correlate(CONVERSATIONS)
    .exists()
)
_IDS: sa.BindParameter[str] = bindparam("ids", expanding=True)
_EXPIRED = (
    sa.select(_m.conversation_id)
    .where(
        _m.identity == bindparam("identity"),
        _m.conversation_id.in_(_IDS),
        IS_PENDING,
        _m.due <= bindparam("now"),
    )
    .distinct()
)
_OF_ALL = sa.select(_m.seq, _m.conversation_id, _m.message_id).where(
    _m.identity == bindparam("identity"), _m.conversation_id.in_(_IDS), IS_PENDING
)
_OF_ONE = (
    sa.select(_m.message_id)
    .where(
        _m.identity == bindparam("identity"),
        _m.conversation_id == bindparam("conversation_id"),
        IS_PENDING,
    )
    .order_by(_m.seq)
    .limit(SHOWN_PENDING)
)
_PARTICIPANTS = (
    sa.select(_p.conversation_id, _p.agent_id)
    .where(_p.identity == bindparam("identity"), _p.conversation_id.in_(_IDS))
    .order_by(_p.conversation_id, _p.agent_id)
)


def conversations(connection: sa.Connection, query: ConversationQuery, *, now: int) -> Page[Conversation]:
    """A page of the list; `now` is steady time in ms."""
    limit = max(1, min(query.limit, MAX_PAGE))
    statement, asked = page_statement(query, now=now)
    rows = connection.execute(statement, asked | {"rows": limit + 1}).all()
    shown = rows[:limit]
    expired = _expired(connection, shown, now)
    pending = _pending_ids(connection, shown)
    participants = _participants(connection, shown)
    items = tuple(
        _entry(
            row,
            expired=(row[0], row[1]) in expired,
            pending_ids=tuple(pending[row[0], row[1]]),
            participants=tuple(participants[row[0], row[1]]),
        )
        for row in shown
    )
    return Page(items, items[-1].last_message.seq if len(rows) > limit else None)


def conversation_count(connection: sa.Connection, query: ConversationQuery, *, now: int) -> int:
    """How many entries all pages have, `COUNT_LIMIT` at most."""
    source, conditions, asked = _conditions(query, now=now)
    few = sa.select(sa.literal(1)).select_from(source).where(*conditions).limit(COUNT_LIMIT).subquery()
    return connection.execute(sa.select(sa.func.count()).select_from(few), asked).scalar_one()


def page_statement(query: ConversationQuery, *, now: int) -> tuple[sa.Select[Any], dict[str, Any]]:
    """The query for a page and its values, `rows` apart."""
    source, conditions, asked = _conditions(query, now=now)
    order = _c.last_seq if query.participant is None else _p.last_seq
    if query.before is not None:
        conditions.append(order < bindparam("before"))
        asked["before"] = max(0, min(query.before, (1 << 63) - 1))
    statement = (
        sa.select(*_ROLLED, *MESSAGE_COLUMNS)
        .select_from(source.join(MESSAGES, _m.seq == _c.last_seq))
        .where(*conditions)
        .order_by(order.desc())
        .limit(bindparam("rows"))
    )
    return statement, asked


def _conditions(
    query: ConversationQuery, *, now: int
) -> tuple[sa.FromClause, list[sa.ColumnElement[bool]], dict[str, Any]]:
    asked: dict[str, Any] = {}
    conditions: list[Any] = []
    source: sa.FromClause = CONVERSATIONS
    owner, paged = _c.identity, CONVERSATIONS
    if query.participant is not None:
        source = PARTICIPANTS.join(
            CONVERSATIONS,
            sa.and_(_c.identity == _p.identity, _c.conversation_id == _p.conversation_id),
        )
        owner, paged = _p.identity, PARTICIPANTS
        conditions.append(_p.agent_id == bindparam("participant"))
        asked["participant"] = query.participant
    if query.identity is not None:
        conditions.append(owner == bindparam("identity"))
        asked["identity"] = query.identity
    if query.archived is not None:
        conditions.append(sa.text(f"{paged.name}.archived = {int(query.archived)}"))
    if query.agent_id is not None:
        conditions.append(~_IS_SUPPRESSED)
        asked["agent_id"] = query.agent_id
    for status in {query.status, ConversationStatus.PENDING if query.pending else None} - {None}:
        conditions += _with_status(status, listed=query.archived is False)
        if status in (ConversationStatus.PENDING, ConversationStatus.EXPIRED):
            asked["now"] = now
    return source, conditions, asked


def _with_status(status: ConversationStatus | None, *, listed: bool) -> list[Any]:
    if status is ConversationStatus.EXPIRED:
        found = [_c.status == STATUS_NUMBERS[ConversationStatus.PENDING], _IS_EXPIRED]
    elif status is ConversationStatus.PENDING:
        found = [_c.status == STATUS_NUMBERS[ConversationStatus.PENDING], ~_IS_EXPIRED]
    else:
        found = [_c.status == STATUS_NUMBERS[status or ConversationStatus.ACTIVE]]
    return [*found, IS_LISTED] if listed else found


def _expired(connection: sa.Connection, rows: Iterable[Row], now: int) -> set[Key]:
    """Those with a pending message whose time is over."""
    return {
        (identity, conversation_id)
        for identity, ids in by_identity((row[0], row[1]) for row in rows if row[3])
        for conversation_id in connection.execute(
            _EXPIRED, {"identity": identity, "ids": ids, "now": now}
        ).scalars()
    }


def _pending_ids(connection: sa.Connection, rows: Sequence[Row]) -> defaultdict[Key, list[str]]:
    """The first pending messages of each: of those with few all at once, of the others as many as shown."""
    found: defaultdict[Key, list[str]] = defaultdict(list)
    for identity, ids in by_identity((row[0], row[1]) for row in rows if 0 < row[3] <= SHOWN_PENDING):
        messages = connection.execute(_OF_ALL, {"identity": identity, "ids": ids}).all()
        for _seq, conversation_id, message_id in sorted(messages, key=itemgetter(0)):
            found[identity, conversation_id].append(message_id)
    for row in rows:
        if row[3] > SHOWN_PENDING:
            asked = {"identity": row[0], "conversation_id": row[1]}
            found[row[0], row[1]] += connection.execute(_OF_ONE, asked).scalars()
    return found


def _participants(connection: sa.Connection, rows: Iterable[Row]) -> defaultdict[Key, list[str]]:
    found: defaultdict[Key, list[str]] = defaultdict(list)
    for identity, ids in by_identity((row[0], row[1]) for row in rows):
        for conversation_id, agent_id in connection.execute(
            _PARTICIPANTS, {"identity": identity, "ids": ids}
        ):
            found[identity, conversation_id].append(agent_id)
    return found


def _entry(
    row: Row,
    *,
    expired: bool,
    pending_ids: tuple[str, ...],
    participants: tuple[str, ...],
) -> Conversation:
    identity, conversation_id, message_count, pending_count, last_ack, outcome, updated_at, archived = row[
        : len(_ROLLED)
    ]
    ended = None if outcome is None else STATES[outcome]
    return Conversation(
        identity=identity,
        conversation_id=conversation_id,
        status=status_of(pending_count, ended, expired=expired),
        last_message=message_of(row[len(_ROLLED) :]),
        pending_count=pending_count,
        pending_message_ids=pending_ids,
        message_count=message_count,
        last_ack_state=None if last_ack is None else STATES[last_ack],
        participants=participants,
        updated_at=updated_at,
        archived=bool(archived),
    )
