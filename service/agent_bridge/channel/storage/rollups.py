"""The roll-ups reckoned from scratch, to compare with what every write has carried along."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from itertools import groupby
from operator import attrgetter
from typing import TypeVar

import sqlalchemy as sa

from agent_bridge.channel.model import Ack, AckState, Message
from agent_bridge.channel.states import Roll, after, is_open, roll
from agent_bridge.channel.storage.batch import talk_of
from agent_bridge.channel.storage.keys import Key
from agent_bridge.channel.storage.rows import (
    ACK_COLUMNS,
    MESSAGE_COLUMNS,
    STATUS_NUMBERS,
    ack_of,
    message_of,
)
from agent_bridge.channel.storage.schema import ACKS, CONVERSATIONS, MESSAGES, PARTICIPANTS

T = TypeVar("T", Message, Ack)

_CHUNK = 500
_m, _a, _p = MESSAGES.c, ACKS.c, PARTICIPANTS.c
_MESSAGES = sa.select(*MESSAGE_COLUMNS).order_by(_m.identity, _m.conversation_id, _m.seq)
_ACKS = sa.select(*ACK_COLUMNS).order_by(_a.identity, _a.conversation_id, _a.seq)


def stored(connection: sa.Connection) -> dict[Key, Roll]:
    """The roll-ups as they stand in their table."""
    return {
        (row.identity, row.conversation_id): talk_of(row).roll
        for row in connection.execute(sa.select(CONVERSATIONS))
    }


def recompute(connection: sa.Connection) -> dict[Key, Roll]:
    """The same from all messages and acks. Reads everything: for tests and for a person who asks."""
    acks = {key: list(some) for key, some in _by_conversation(_rows_of_acks(connection))}
    return {
        key: roll(messages, acks.get(key, ())) for key, messages in _by_conversation(_rows_of(connection))
    }


def differences(connection: sa.Connection) -> list[str]:
    """What of the derived columns isn't as it should be, a sentence each; empty where all is right."""
    carried, reckoned = stored(connection), recompute(connection)
    found = [
        f"{key}: stored {carried.get(key)}, reckoned {reckoned.get(key)}"
        for key in carried.keys() | reckoned.keys()
        if carried.get(key) != reckoned.get(key)
    ]
    return found + _wrong_states(connection) + _wrong_participants(connection) + _wrong_words(connection)


def _wrong_states(connection: sa.Connection) -> list[str]:
    reached: defaultdict[Key, AckState] = defaultdict(lambda: AckState.QUEUED)
    for ack in _rows_of_acks(connection):
        key = ack.identity, ack.message_id
        reached[key] = after(reached[key], ack.state, ack.actor_type)
    found = []
    for row in connection.execute(_MESSAGES):
        state = reached[row.identity, row.message_id]
        message = message_of(row)
        opened = is_open(message.kind, message.expects_response, state)
        if (message.state, bool(row.open)) != (state, opened):
            found.append(f"{message.message_id}: {message.state}, open {row.open}; its acks say {state}")
    return found


def _wrong_participants(connection: sa.Connection) -> list[str]:
    reckoned: defaultdict[Key, set[str]] = defaultdict(set)
    for message in _rows_of(connection):
        agents = reckoned[message.identity, message.conversation_id]
        agents.add(message.from_agent_id)
        if message.to_agent_id is not None:
            agents.add(message.to_agent_id)
    carried: defaultdict[Key, set[str]] = defaultdict(set)
    for row in connection.execute(sa.select(PARTICIPANTS)):
        carried[row.identity, row.conversation_id].add(row.agent_id)
    return [
        f"{key}: participants {sorted(carried[key])}, reckoned {sorted(reckoned[key])}"
        for key in carried.keys() | reckoned.keys()
        # Retention may have deleted somebody's only message of a long conversation.
        if not carried[key] >= reckoned[key]
    ]


def _wrong_words(connection: sa.Connection) -> list[str]:
    """Columns that repeat others: the status in conversations, place and archive in participants."""
    found = []
    places = {}
    for row in connection.execute(sa.select(CONVERSATIONS)):
        places[row.identity, row.conversation_id] = row.last_seq, row.archived
        if row.status != STATUS_NUMBERS[talk_of(row).roll.status()]:
            found.append(f"{row.conversation_id}: status {row.status}")
    found += [
        f"{row.conversation_id}: {row.agent_id} stands at {row.last_seq}, archived {row.archived}"
        for row in connection.execute(sa.select(PARTICIPANTS))
        if places.get((row.identity, row.conversation_id)) != (row.last_seq, row.archived)
    ]
    return found


def _rows_of(connection: sa.Connection) -> Iterator[Message]:
    for row in connection.execute(_MESSAGES, execution_options={"yield_per": _CHUNK}):
        yield message_of(row)


def _rows_of_acks(connection: sa.Connection) -> Iterator[Ack]:
    for row in connection.execute(_ACKS, execution_options={"yield_per": _CHUNK}):
        yield ack_of(row)


def _by_conversation(rows: Iterator[T]) -> Iterator[tuple[Key, Iterator[T]]]:
    return groupby(rows, key=attrgetter("identity", "conversation_id"))
