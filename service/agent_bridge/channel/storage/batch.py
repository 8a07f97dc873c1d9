"""What one transaction knows and has changed: read in few statements, judged in memory, written in few.

A batch holds up to some hundred writes that may depend on each other. `load` reads every row that they name,
the rules work on these and on what the batch itself has made, `saving` writes what differs.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import sqlalchemy as sa
from sqlalchemy import bindparam

from agent_bridge.channel.clock import Moment
from agent_bridge.channel.model import Message
from agent_bridge.channel.states import Roll
from agent_bridge.channel.storage.keys import Key, by_identity
from agent_bridge.channel.storage.prepared import Prepared, PreparedForIds
from agent_bridge.channel.storage.rows import (
    MESSAGE_COLUMNS,
    STATES,
    Row,
    message_of,
)
from agent_bridge.channel.storage.schema import (
    CONVERSATIONS,
    IS_HIDDEN,
    IS_OPEN,
    MESSAGES,
    META,
    SUPPRESSIONS,
)

_m, _c, _s = MESSAGES.c, CONVERSATIONS.c, SUPPRESSIONS.c
_IDS: sa.BindParameter[str] = bindparam("ids", expanding=True)
_META = Prepared(sa.select(META.c.name, META.c.value))
_MESSAGES = PreparedForIds(
    sa.select(*MESSAGE_COLUMNS).where(_m.identity == bindparam("identity"), _m.message_id.in_(_IDS))
)
_CONVERSATIONS = PreparedForIds(
    sa.select(CONVERSATIONS).where(_c.identity == bindparam("identity"), _c.conversation_id.in_(_IDS))
)
_HIDDEN = PreparedForIds(
    sa.select(_s.conversation_id, _s.agent_id).where(
        _s.identity == bindparam("identity"), _s.conversation_id.in_(_IDS), IS_HIDDEN
    )
)
_OPEN_COUNTS = PreparedForIds(
    sa.select(_m.to_agent_id, sa.func.count())
    .where(_m.identity == bindparam("identity"), _m.to_agent_id.in_(_IDS), IS_OPEN)
    .group_by(_m.to_agent_id)
)
_DUE, _OPEN = (MESSAGE_COLUMNS.index(column) for column in (_m.due, _m.open))


@dataclass(slots=True)
class Held:
    """A message as the batch has it. `stored_seq` None: the batch made it, `payload` is its JSON."""

    message: Message
    due: int | None
    is_open: bool
    stored_seq: int | None
    payload: str = ""
    changed: bool = False


@dataclass(slots=True)
class Talk:
    """A conversation as the batch has it."""

    identity: str
    conversation_id: str
    roll: Roll = field(default_factory=Roll)
    updated_at: int = 0
    touched: int = 0
    archived: bool = False
    stored: bool = False
    changed: bool = False
    moved: bool = False
    joined: set[str] = field(default_factory=set)


class Batch:
    """The rows of one transaction. Not for more than one thread."""

    def __init__(self, connection: sa.Connection, moment: Moment) -> None:
        self.moment = moment
        self.messages: dict[Key, Held] = {}
        self.talks: dict[Key, Talk] = {}
        self.hidden: defaultdict[Key, set[str]] = defaultdict(set)
        self.open_counts: defaultdict[Key, int] = defaultdict(int)
        self.acks: list[dict[str, Any]] = []
        self.seen: dict[tuple[str, str, int], None] = {}
        self._connection = connection
        self.suppressions: dict[tuple[str, str, str], tuple[bool, int]] = {}
        self.meta: dict[str, str] = dict(_META.all(connection, {}))
        self.seq = int(self.meta["last_seq"])

    def next_seq(self) -> int:
        """Draw the next number."""
        self.seq += 1
        return self.seq

    def load_messages(self, keys: Iterable[Key]) -> None:
        """Read the messages of these ids; those that aren't there stay away."""
        for identity, ids in by_identity(keys):
            for row in _MESSAGES.all(self._connection, identity, ids):
                message = message_of(row)
                self.messages[identity, message.message_id] = Held(
                    message, due=row[_DUE], is_open=bool(row[_OPEN]), stored_seq=message.seq
                )

    def load_conversations(self, keys: Iterable[Key]) -> None:
        """Read these conversations, and who has suppressed them."""
        for identity, ids in by_identity(keys):
            found = [talk_of(row) for row in _CONVERSATIONS.all(self._connection, identity, ids)]
            self.talks |= {(identity, talk.conversation_id): talk for talk in found}
            if not found:
                continue
            known = [talk.conversation_id for talk in found]
            for conversation_id, agent_id in _HIDDEN.all(self._connection, identity, known):
                self.hidden[identity, conversation_id].add(agent_id)

    def load_open_counts(self, keys: Iterable[Key]) -> None:
        """Count the open messages of these recipients."""
        for identity, ids in by_identity(keys):
            for agent_id, count in _OPEN_COUNTS.all(self._connection, identity, ids):
                self.open_counts[identity, agent_id] = count

    def suppress(self, identity: str, conversation_id: str, agent_id: str, seq: int, *, hidden: bool) -> None:
        """Hide a conversation from an agent, or show it again."""
        agents = self.hidden[identity, conversation_id]
        if hidden:
            agents.add(agent_id)
        else:
            agents.discard(agent_id)
        self.suppressions[identity, conversation_id, agent_id] = hidden, seq


def talk_of(row: Row) -> Talk:
    """The conversation in a row of its table."""
    (
        identity,
        conversation_id,
        message_count,
        pending_count,
        last_seq,
        last_ack_state,
        outcome,
        _status,
        updated_at,
        touched,
        archived,
    ) = row
    return Talk(
        identity,
        conversation_id,
        roll=Roll(
            message_count=message_count,
            pending_count=pending_count,
            last_message_seq=last_seq,
            last_ack_state=None if last_ack_state is None else STATES[last_ack_state],
            outcome=None if outcome is None else STATES[outcome],
        ),
        updated_at=updated_at,
        touched=touched,
        archived=bool(archived),
        stored=True,
    )
