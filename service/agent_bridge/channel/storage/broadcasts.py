"""Which broadcasts an agent has seen: one mark for all up to some seq, and a receipt for each beyond it.

Without the mark an inbox would have to step over every broadcast that its agent ever saw.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import sqlalchemy as sa
from sqlalchemy import bindparam

from agent_bridge.channel.states import NEVER_OPEN
from agent_bridge.channel.storage.prepared import Prepared
from agent_bridge.channel.storage.schema import (
    BROADCAST_MARKS,
    IS_BROADCAST,
    MESSAGES,
    RECEIPTS,
    insert_missing,
)

_MARKS_AT_ONCE: Final = 20
"""Marks that one transaction moves on: the receipts of other agents lie until their next one."""

_m, _r, _b = MESSAGES.c, RECEIPTS.c, BROADCAST_MARKS.c
_OF_AGENT: Final[dict[str, sa.BindParameter[str]]] = {
    "identity": bindparam("identity"),
    "agent_id": bindparam("agent_id"),
}
SEEN_UP_TO: Final = sa.select(_b.seen_up_to).filter_by(**_OF_AGENT)
"""Takes `identity` and `agent_id`."""
HAS_NO_RECEIPT: Final = ~(
    sa.select(sa.literal(1))
    .where(_r.identity == bindparam("identity"), _r.agent_id == bindparam("agent_id"), _r.seq == _m.seq)
    .correlate(MESSAGES)
    .exists()
)
UNSEEN: Final = (
    _m.identity == bindparam("identity"),
    IS_BROADCAST,
    _m.seq > bindparam("seen_up_to"),
    _m.from_agent_id != bindparam("agent_id"),
    _m.kind.not_in(sorted(NEVER_OPEN)),
    HAS_NO_RECEIPT,
)
"""The broadcasts that an agent hasn't seen; takes `identity`, `agent_id`, `seen_up_to`."""

_FIRST_UNSEEN = sa.select(_m.seq).where(*UNSEEN).order_by(_m.seq).limit(1)
_NEWEST_RECEIPT = sa.select(sa.func.max(_r.seq)).filter_by(**_OF_AGENT)
_DROP_RECEIPTS = sa.delete(RECEIPTS).filter_by(**_OF_AGENT).where(_r.seq <= bindparam("mark"))
_DROP_MARK = sa.delete(BROADCAST_MARKS).filter_by(**_OF_AGENT)
_NOTE = Prepared(insert_missing(RECEIPTS))
_INSERT_MARK = sa.insert(BROADCAST_MARKS)


def seen_up_to(connection: sa.Connection, identity: str, agent_id: str) -> int:
    """The agent's mark."""
    found: int | None = connection.execute(SEEN_UP_TO, {"identity": identity, "agent_id": agent_id}).scalar()
    return found or 0


def note_seen(connection: sa.Connection, seen: Sequence[tuple[str, str, int]]) -> None:
    """Note (identity, agent, the broadcast's seq), whose messages are in their table already."""
    _NOTE.run(
        connection,
        [{"identity": identity, "agent_id": agent_id, "seq": seq} for identity, agent_id, seq in seen],
    )
    agents = dict.fromkeys((identity, agent_id) for identity, agent_id, _seq in seen)
    for identity, agent_id in list(agents)[:_MARKS_AT_ONCE]:
        _move_mark(connection, identity, agent_id)


def _move_mark(connection: sa.Connection, identity: str, agent_id: str) -> None:
    agent = {"identity": identity, "agent_id": agent_id}
    mark = seen_up_to(connection, identity, agent_id)
    unseen: int | None = connection.execute(_FIRST_UNSEEN, agent | {"seen_up_to": mark}).scalar()
    last_seen = connection.execute(_NEWEST_RECEIPT, agent).scalar() or mark
    moved = last_seen if unseen is None else unseen - 1
    if moved > mark:
        connection.execute(_DROP_MARK, agent)
        connection.execute(_INSERT_MARK, agent | {"seen_up_to": moved})
        connection.execute(_DROP_RECEIPTS, agent | {"mark": moved})
