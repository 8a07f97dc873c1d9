"""`kill -9` of the real service, again and again, while sessions write to its registry."""

from __future__ import annotations

import random
import sqlite3
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent_bridge import paths
from agent_bridge.channel import states
from agent_bridge.channel.model import Ack, Conversation, Message
from agent_bridge.client.address import find
from agent_bridge.client.http import Registry
from system.home import Bridge
from system.senders import Sender, SocketSender

LIVES = 20


@pytest.fixture
def bridge(sealed_home: Path, short_tmp: Path) -> Iterator[Bridge]:
    yield from Bridge.made(sealed_home, short_tmp)


@pytest.mark.timeout(600)
def test_what_was_answered_outlives_every_kill(bridge: Bridge) -> None:
    chance = random.Random(4)
    senders = [*(Sender(f"sender{number}") for number in range(3)), SocketSender("socket")]
    for _ in range(LIVES):
        service = bridge.start("--inbox-limit", "1000000", "--send-burst", "1000000")
        threads = [threading.Thread(target=sender.live) for sender in senders]
        for sender, thread in zip(senders, threads, strict=True):
            sender.first.clear()
            thread.start()
        for sender in senders:
            assert sender.first.wait(90), f"{sender.last_words}\n{service.log.read_text()[-3000:]}"
        time.sleep(chance.uniform(0.0, 0.25))
        service.process.kill()
        service.process.wait()
        for thread in threads:
            thread.join(30)
            assert not thread.is_alive()
    bridge.start()

    stored = {name: where for sender in senders for name, where in sender.stored.items()}
    in_doubt = {message_id for sender in senders for message_id in sender.in_doubt}
    with Registry(find()) as registry:
        listed = every_conversation(registry)
        threads_read = {one.conversation_id: every_message(registry, one.conversation_id) for one in listed}
    messages = [message for found, _ in threads_read.values() for message in found]

    assert len(stored) > LIVES * 10, "the load was too small to tell anything"
    times = Counter(message.message_id for message in messages)
    assert set(times.values()) == {1}, "a message is there twice"
    assert set(stored) <= set(times), "an answered message is lost"
    assert set(times) - set(stored) <= in_doubt, "there is a message that nobody sent"
    for message in messages:
        assert stored.get(message.message_id, message.conversation_id) == message.conversation_id
        assert (
            message.content == f"{message.message_id.split('-')[0]} says {message.message_id.split('-')[-1]}"
        )
    acked = {(ack.message_id, ack.state) for _, acks in threads_read.values() for ack in acks}
    told = {pair for sender in senders for pair in sender.acked}
    assert len(told) > LIVES
    assert told <= acked, "an answered ack is lost"
    sequence = [message.seq for message in messages]
    assert len(set(sequence)) == len(sequence)
    for one in listed:
        assert rolled(one) == recomputed(*threads_read[one.conversation_id]), one.conversation_id
    assert integrity() == "ok"


def every_conversation(registry: Registry) -> list[Conversation]:
    found: list[Conversation] = []
    before = None
    while True:
        page = registry.conversations(limit=200, before=before)
        found += page.items
        if page.next_before is None:
            return found
        before = page.next_before


def every_message(registry: Registry, conversation_id: str) -> tuple[list[Message], list[Ack]]:
    thread = registry.conversation(conversation_id, limit=200)
    assert thread.next_before is None
    return list(thread.messages), list(thread.acks)


def rolled(one: Conversation) -> tuple[object, ...]:
    """What the registry keeps up with each message and ack."""
    return (
        one.status,
        one.message_count,
        one.pending_count,
        set(one.pending_message_ids),
        one.last_message.message_id,
        one.last_ack_state,
        set(one.participants),
    )


def recomputed(messages: list[Message], acks: list[Ack]) -> tuple[object, ...]:
    """The same from scratch."""
    roll = states.roll(messages, acks)
    return (
        roll.status(),
        roll.message_count,
        roll.pending_count,
        {
            message.message_id
            for message in messages
            if states.awaits_answer(message.kind, message.expects_response, message.state)
        },
        max(messages, key=lambda message: message.seq).message_id,
        roll.last_ack_state,
        {party for message in messages for party in (message.from_agent_id, message.to_agent_id)},
    )


def integrity() -> str:
    with sqlite3.connect(f"file:{paths.channel_database()}?mode=ro", uri=True) as connection:
        return str(connection.execute("pragma integrity_check").fetchone()[0])
