"""What one transaction knows and has changed: read in few statements, judged in memory, written in few.

A batch holds up to some hundred writes that may depend on each other. `load` reads every row that they name,
the rules work on these and on what the batch itself has made, `saving` writes what differs.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final

import sqlalchemy as sa
from sqlalchemy import bindparam

from agent_bridge.channel.clock import Moment
from agent_bridge.channel.model import Message
from agent_bridge.channel.states import Roll
from agent_bridge.channel.storage.prepared import Prepared
from agent_bridge.channel.storage.rows import (
    MESSAGE_COLUMNS,
    STATES,
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

Key = tuple[str, str]
"""Identity, then the id of a message, conversation or agent."""

_IDS_AT_ONCE: Final = 500

_m, _c, _s = MESSAGES.c, CONVERSATIONS.c, SUPPRESSIONS.c
_IDS: sa.BindParameter[str] = bindparam("ids", expanding=True)
_META = Prepared(sa.select(META.c.name, META.c.value))
_MESSAGES = sa.select(*MESSAGE_COLUMNS).where(_m.identity == bindparam("identity"), _m.message_id.in_(_IDS))
_CONVERSATIONS = sa.select(CONVERSATIONS).where(
    _c.identity == bindparam("identity"), _c.conversation_id.in_(_IDS)
)
_HIDDEN = sa.select(_s.conversation_id, _s.agent_id).where(
    _s.identity == bindparam("identity"), _s.conversation_id.in_(_IDS), IS_HIDDEN
)
_OPEN_COUNTS = (
    sa.select(_m.to_agent_id, sa.func.count())
    .where(_m.identity == bindparam("identity"), _m.to_agent_id.in_(_IDS), IS_OPEN)
    .group_by(_m.to_agent_id)
)


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
        for identity, ids in _grouped(keys):
            for row in self._connection.execute(_MESSAGES, {"identity": identity, "ids": ids}):
                message = message_of(row)
                self.messages[identity, message.message_id] = Held(
                    message, due=row.due, is_open=bool(row.open), stored_seq=message.seq
                )

    def load_conversations(self, keys: Iterable[Key]) -> None:
        """Read these conversations, and who has suppressed them."""
        for identity, ids in _grouped(keys):
            asked = {"identity": identity, "ids": ids}
            for row in self._connection.execute(_CONVERSATIONS, asked):
                self.talks[identity, row.conversation_id] = talk_of(row)
            for conversation_id, agent_id in self._connection.execute(_HIDDEN, asked):
                self.hidden[identity, conversation_id].add(agent_id)

    def load_open_counts(self, keys: Iterable[Key]) -> None:
        """Count the open messages of these recipients."""
        for identity, ids in _grouped(keys):
            for agent_id, count in self._connection.execute(_OPEN_COUNTS, {"identity": identity, "ids": ids}):
                self.open_counts[identity, agent_id] = count

    def suppress(self, identity: str, conversation_id: str, agent_id: str, seq: int, *, hidden: bool) -> None:
        """Hide a conversation from an agent, or show it again."""
        agents = self.hidden[identity, conversation_id]
        if hidden:
            agents.add(agent_id)
        else:
            agents.discard(agent_id)
        self.suppressions[identity, conversation_id, agent_id] = hidden, seq


def _grouped(keys: Iterable[Key]) -> Iterator[tuple[str, list[str]]]:
    """Ids by identity, some hundred at once: SQLite scans where a list has pairs."""
    by_identity: defaultdict[str, dict[str, None]] = defaultdict(dict)
    for identity, name in keys:
        by_identity[identity][name] = None
    for identity, names in by_identity.items():
        ids = list(names)
        for start in range(0, len(ids), _IDS_AT_ONCE):
            yield identity, ids[start : start + _IDS_AT_ONCE]


def talk_of(row: sa.Row[Any]) -> Talk:
    """The conversation in a row of its table."""
    return Talk(
        row.identity,
        row.conversation_id,
        roll=Roll(
            message_count=row.message_count,
            pending_count=row.pending_count,
            last_message_seq=row.last_seq,
            last_ack_state=None if row.last_ack_state is None else STATES[row.last_ack_state],
            outcome=None if row.outcome is None else STATES[row.outcome],
        ),
        updated_at=row.updated_at,
        touched=row.touched,
        archived=bool(row.archived),
        stored=True,
    )
