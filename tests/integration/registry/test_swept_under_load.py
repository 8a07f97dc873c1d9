"""Sweeps over thousands of old conversations while messages pour in over WebSockets.

How long a write waits meanwhile is measured by `scripts/bench channel`; here nothing may be lost, stored
twice, swept away too early or left behind, and every roll-up must be right.
"""

from __future__ import annotations

import threading
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

from agent_bridge.channel.model import AckState, ActorType, Draft, Kind
from agent_bridge.channel.writes import Acknowledge, Send
from integration.registry.running import Client
from integration.registry.swept import Swept

OLD = 1_500
SENDERS = 3
WINDOW = 50
EACH_AT_LEAST = 200
HOUR = 3_600_000


def fill(registry: Swept) -> None:
    """Many conversations that ended long ago."""
    for number in range(OLD):
        name = f"old-{number}"
        registry.hub.store.submit(
            Send(
                Draft(
                    identity="global",
                    from_agent_id="a",
                    to_agent_id=f"b{number % 50}",
                    kind=Kind.CHAT,
                    content="Is it so?",
                    conversation_id=name,
                    message_id=name,
                    expects_response=True,
                )
            )
        )
        registry.hub.store.submit(
            Acknowledge(
                identity="global",
                conversation_id=name,
                message_id=name,
                state=AckState.ANSWERED,
                actor_id=f"b{number % 50}",
                actor_type=ActorType.CLIENT,
            )
        )
    registry.wait_for(lambda: registry.hub.seq >= 2 * OLD)


class Sender(threading.Thread):
    """Sends without a rest until the sweep is over, every fifth into an old conversation."""

    def __init__(self, registry: Swept, number: int, over: threading.Event) -> None:
        super().__init__(name=f"sender {number}")
        self.number = number
        self.answered: list[dict[str, Any]] = []
        self.has_begun = threading.Event()
        self._registry = registry
        self._over = over

    def run(self) -> None:
        with self._registry.agent(f"s{self.number}", query="events=none", events="own") as socket:
            sent = 0
            while not self._over.is_set() or sent < EACH_AT_LEAST:
                for _ in range(WINDOW):
                    self._send(socket, sent)
                    sent += 1
                for _ in range(WINDOW):
                    self.answered.append(socket.until("channel.sent")["data"]["message"])
                self.has_begun.set()

    def _send(self, socket: Client, count: int) -> None:
        thread = f"old-{(count * SENDERS + self.number) % OLD}" if count % 5 == 0 else f"new-{self.number}"
        socket.send(count, conversationId=thread, content=f"{self.number} {count}", expectsResponse=False)


@pytest.mark.parametrize("sweep", ["terminal", "retention"])
def test_nothing_new_is_lost_and_nothing_old_left(tmp_path: Path, sweep: str) -> None:
    limits: dict[str, Any] = {
        "terminal_retention_min": 60,
        "retention_days": 1 if sweep == "retention" else 90,
    }
    with Swept(tmp_path, inbox_limit=1_000_000, **limits) as registry:
        fill(registry)
        registry.clock.go_on(48 * HOUR)
        over = threading.Event()
        senders = [Sender(registry, number, over) for number in range(SENDERS)]
        for sender in senders:
            sender.start()
        for sender in senders:
            assert sender.has_begun.wait(20)
        before = sum(len(sender.answered) for sender in senders)
        registry.sweep(sweep)
        meanwhile = sum(len(sender.answered) for sender in senders) - before
        over.set()
        for sender in senders:
            sender.join(60)
            assert not sender.is_alive()

        store = registry.hub.store
        assert meanwhile > 0, "they came in while it swept"
        assert store.check() == []
        answered = [message for sender in senders for message in sender.answered]
        assert len({message["messageId"] for message in answered}) == len(answered)
        told: dict[str, list[str]] = defaultdict(list)
        for message in sorted(answered, key=lambda message: int(message["seq"])):
            told[message["conversationId"]].append(message["content"])
        touched = {name for name in told if name.startswith("old-")}
        listed = every_conversation(registry, archived="false")
        assert set(listed) == set(told), "what was written to is shown, whenever that was"
        swept = every_conversation(registry, archived="true")
        assert set(swept) == ({f"old-{n}" for n in range(OLD)} - touched if sweep == "terminal" else set())
        for name, contents in told.items():
            thread = store.conversation("global", name, limit=200)
            before_it = listed[name] - len(contents)
            assert before_it in ((0,) if name not in touched else (1,) if sweep == "terminal" else (0, 1))
            kept = [message.content for message in thread.messages]
            assert kept[-len(contents) :] == contents[-len(kept) :]


def every_conversation(registry: Swept, **query: str) -> dict[str, int]:
    """All pages of the list: how many messages each has."""
    found: dict[str, int] = {}
    before: dict[str, str] = {}
    while True:
        answer = registry.http.get(
            "/channel/conversations",
            params={"limit": "200", **query, **before},
            headers=registry.headers(),
        )
        found |= {one["conversationId"]: one["messageCount"] for one in answer.json()}
        if "x-next-before" not in answer.headers:
            assert len(found) == int(answer.headers["x-total-count"])
            return found
        before = {"before": answer.headers["x-next-before"]}
