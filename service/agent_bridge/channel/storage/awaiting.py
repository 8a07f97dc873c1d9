"""What awaits one agent, and whose answer it awaits, by conversation: names alone, without any text.

Texts may be megabytes each; whoever shows a list reads those that it shows one by one.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final, Literal

import sqlalchemy as sa
from sqlalchemy import bindparam

from agent_bridge.channel.storage.answers import COUNT_LIMIT
from agent_bridge.channel.storage.broadcasts import seen_up_to
from agent_bridge.channel.storage.inbox import AWAITING
from agent_bridge.channel.storage.schema import (
    IS_BROADCAST,
    IS_HIDDEN,
    IS_PENDING,
    MESSAGES,
    PARTICIPANTS,
    SUPPRESSIONS,
)

Side = Literal["open", "expired", "asked"]
"""`open`: messages that await the agent; `expired`: those that it left unanswered until their time was over;
`asked`: its own questions that await an answer."""


@dataclass(frozen=True, slots=True)
class Awaiting:
    """A conversation and its messages that are so, newest first; `seq` is that of the newest."""

    conversation_id: str
    seq: int
    message_ids: tuple[str, ...]


_m, _p, _s = MESSAGES.c, PARTICIPANTS.c, SUPPRESSIONS.c
_ASKED = (
    sa.select(_m.seq, _m.conversation_id, _m.message_id)
    .select_from(
        PARTICIPANTS.join(
            MESSAGES, sa.and_(_m.identity == _p.identity, _m.conversation_id == _p.conversation_id)
        )
    )
    .where(
        _p.identity == bindparam("identity"),
        _p.agent_id == bindparam("agent_id"),
        sa.text("participants.archived = 0"),
        IS_PENDING,
        _m.from_agent_id == bindparam("agent_id"),
    )
)
_NAMES: Final = sa.select(_m.seq, _m.conversation_id, _m.message_id)
_QUERIES: Final[dict[Side, tuple[sa.Select[Any], ...]]] = {
    "open": tuple(_NAMES.where(*conditions) for conditions in AWAITING["open"]),
    "expired": tuple(_NAMES.where(*conditions) for conditions in AWAITING["expired"]),
    "asked": (_ASKED,),
}
_HIDDEN: Final = sa.select(_s.conversation_id).where(
    _s.identity == bindparam("identity"), _s.agent_id == bindparam("agent_id"), IS_HIDDEN
)
_AGENTS: Final = (
    sa.select(_p.agent_id)
    .where(_p.identity == bindparam("identity"), _p.conversation_id == bindparam("conversation_id"))
    .order_by(_p.agent_id)
)
_HAS_BROADCAST: Final = (
    sa.select(sa.literal(1))
    .where(
        _m.identity == bindparam("identity"), _m.conversation_id == bindparam("conversation_id"), IS_BROADCAST
    )
    .limit(1)
)


def awaiting(
    connection: sa.Connection,
    identity: str,
    agent_id: str,
    side: Side,
    *,
    now: int,
    with_hidden: bool = False,
) -> list[Awaiting]:
    """All of them, the conversation with the newest message first; of 10,000 messages at most. `now` is
    steady time in ms. Those that the agent has suppressed are left out."""
    names = {"identity": identity, "agent_id": agent_id}
    asked = names | {"now": now, "seen_up_to": seen_up_to(connection, identity, agent_id)}
    rows: list[tuple[int, str, str]] = []
    for query in _QUERIES[side]:
        found = connection.execute(query.order_by(_m.seq.desc()).limit(COUNT_LIMIT), asked)
        rows += [(row[0], row[1], row[2]) for row in found]
    hidden = set() if with_hidden else set(connection.execute(_HIDDEN, names).scalars())
    return _by_conversation(sorted((row for row in rows if row[1] not in hidden), reverse=True))


def agents_in(connection: sa.Connection, identity: str, conversation_id: str) -> tuple[tuple[str, ...], bool]:
    """Who sent or was sent a message in a conversation, and whether there was one for everybody."""
    asked = {"identity": identity, "conversation_id": conversation_id}
    agents = tuple(connection.execute(_AGENTS, asked).scalars())
    return agents, connection.execute(_HAS_BROADCAST, asked).first() is not None


def _by_conversation(rows: Iterable[tuple[int, str, str]]) -> list[Awaiting]:
    found: dict[str, list[tuple[int, str, str]]] = {}
    for row in rows:
        found.setdefault(row[1], []).append(row)
    return [Awaiting(name, held[0][0], tuple(row[2] for row in held)) for name, held in found.items()]
