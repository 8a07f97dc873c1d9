"""What one transaction knows and has changed: read in few statements, judged in memory, written in few.

A batch holds up to some hundred writes that may depend on each other. `load` reads every row that they name,
the rules in `apply` work on these and on what the batch itself has made, `flush` writes what differs.
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
from agent_bridge.channel.storage.broadcasts import note_seen
from agent_bridge.channel.storage.prepared import Prepared
from agent_bridge.channel.storage.rows import (
    MESSAGE_COLUMNS,
    STATES,
    STATUS_NUMBERS,
    message_of,
    message_row,
)
from agent_bridge.channel.storage.schema import (
    ACKS,
    CONVERSATIONS,
    IS_HIDDEN,
    IS_OPEN,
    MESSAGES,
    META,
    PARTICIPANTS,
    SUPPRESSIONS,
    insert_missing,
    read_moment,
    written_moment,
)

Key = tuple[str, str]
"""Identity, then the id of a message, conversation or agent."""

_IDS_AT_ONCE: Final = 500

_m, _c, _s, _p = MESSAGES.c, CONVERSATIONS.c, SUPPRESSIONS.c, PARTICIPANTS.c
_IDS: sa.BindParameter[str] = bindparam("ids", expanding=True)
_META = Prepared(sa.select(META.c.name, META.c.value))
_NOTED_AFTER_MS: Final = 1000
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
        self._suppressions: dict[tuple[str, str, str], tuple[bool, int]] = {}
        self._meta: dict[str, str] = dict(_META.all(connection, {}))
        self._seq = self._stored_seq = int(self._meta["last_seq"])

    def next_seq(self) -> int:
        """Draw the next number."""
        self._seq += 1
        return self._seq

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
        self._suppressions[identity, conversation_id, agent_id] = hidden, seq

    def flush(self) -> None:
        """Write what the batch has made and changed."""
        self._flush_messages()
        self._flush_acks()
        self._flush_conversations()
        self._flush_suppressions()
        self._flush_meta()

    def _flush_meta(self) -> None:
        noted = []
        if self._seq != self._stored_seq:
            noted.append({"key": "last_seq", "new_value": str(self._seq)})
            self._stored_seq = self._seq
        if self.moment.steady - read_moment(self._meta["moment"]).steady >= _NOTED_AFTER_MS:
            noted.append({"key": "moment", "new_value": written_moment(self.moment)})
        _SET_META.run(self._connection, noted)

    def _flush_messages(self) -> None:
        made = [held for held in self.messages.values() if held.stored_seq is None]
        _INSERT_MESSAGES.run(self._connection, [_new_row(held) for held in made])
        changed = [held for held in self.messages.values() if held.changed and held.stored_seq is not None]
        acked = [held for held in changed if held.message.seq == held.stored_seq]
        _UPDATE_STATES.run(self._connection, [_acked_row(held) for held in acked])
        retried = [held for held in changed if held.message.seq != held.stored_seq]
        _SEND_ANEW.run(self._connection, [_retried_row(held) for held in retried])

    def _flush_acks(self) -> None:
        _INSERT_ACKS.run(self._connection, self.acks)
        if self.seen:
            note_seen(self._connection, list(self.seen))

    def _flush_conversations(self) -> None:
        changed = [talk for talk in self.talks.values() if talk.changed]
        made = [talk for talk in changed if not talk.stored]
        _INSERT_CONVERSATIONS.run(self._connection, [_rolled(talk) | _key(talk) for talk in made])
        known = [talk for talk in changed if talk.stored]
        _UPDATE_CONVERSATIONS.run(self._connection, [_rolled(talk) | _key(talk) for talk in known])
        joined = [
            _key(talk) | {"agent_id": agent_id, "last_seq": talk.roll.last_message_seq, "archived": 0}
            for talk in changed
            for agent_id in sorted(talk.joined)
        ]
        _JOIN.run(self._connection, joined)
        moved = [_key(talk) | {"last_seq": talk.roll.last_message_seq} for talk in known if talk.moved]
        _MOVE_PARTICIPANTS.run(self._connection, moved)

    def _flush_suppressions(self) -> None:
        rows = [
            {
                "identity": identity,
                "conversation_id": conversation_id,
                "agent_id": agent_id,
                "hidden": int(hidden),
                "seq": seq,
            }
            for (identity, conversation_id, agent_id), (hidden, seq) in self._suppressions.items()
        ]
        _DROP_SUPPRESSION.run(self._connection, rows)
        _INSERT_SUPPRESSIONS.run(self._connection, rows)


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
