"""A database with many messages, and how long its inboxes take inside one process.

    channel_store.py fill COUNT AGENTS   stores that many more, to so many agents, in threads of ten, of each
                                         agent's the last hundred open; prints the writes a second
    channel_store.py query TURNS AGENTS  prints milliseconds of 25 of an inbox and of 25 conversations, a line
                                         for each turn
    channel_store.py age COUNT           stores that many conversations that were answered long ago
    channel_store.py sweep SECONDS       has 500 messages a second come in, alone, then beside the sweeps of
                                         what `age` has stored; prints the waits of both as JSON, in ms

Uses the state directory of its environment; no service may run there.
"""

import json
import sys
import time
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any, cast

from agent_bridge.channel.clock import Timeline, wall_ms
from agent_bridge.channel.errors import ChannelError
from agent_bridge.channel.model import AckState, ActorType, Draft, Kind
from agent_bridge.channel.storage.answers import ConversationQuery
from agent_bridge.channel.storage.place import Place
from agent_bridge.channel.storage.store import Store
from agent_bridge.channel.writes import Acknowledge, Send, Settled
from agent_bridge.config import Settings
from agent_bridge.daemon.registry_sweeps import Sweeps

RECIPIENTS = 200
OPEN_EACH = 100
UNDER_WAY = 20_000
EVERY_S = 0.002
LONG_AGO_MS = 400 * 86_400_000
TEXT = "The build of part seven is red since this morning; I look at the tests of the parser now. " * 2

settled = 0
waits: list[float] = []


def count(batch: Sequence[Settled]) -> None:
    """Count what was stored; anything refused ends the measurement."""
    global settled
    for one in batch:
        if isinstance(one.outcome, ChannelError):
            print(one.outcome, file=sys.stderr, flush=True)
        elif isinstance(one.tag, float):
            waits.append((time.perf_counter() - one.tag) * 1000)
    settled += len(batch)


def fill(store: Store, amount: int, agents: int) -> None:
    """Store messages; of each recipient's the last hundred stay open."""
    begun, submitted, already = time.monotonic(), 0, store.last_seq()
    for number in range(amount):
        thread, recipient = f"thread-{already}-{number // 10}", f"agent-{number // 10 % agents}"
        name = f"message-{already}-{number}"
        store.submit(
            Send(
                Draft(
                    identity="global",
                    from_agent_id=f"sender-{number % 50}",
                    to_agent_id=recipient,
                    conversation_id=thread,
                    message_id=name,
                    kind=Kind.CHAT,
                    content=TEXT,
                    expects_response=number % 10 == 9,
                )
            )
        )
        submitted += 1
        if number < amount - agents * OPEN_EACH:
            store.submit(
                Acknowledge(
                    identity="global",
                    conversation_id=thread,
                    message_id=name,
                    state=AckState.ANSWERED,
                    actor_id=recipient,
                    actor_type=ActorType.CLIENT,
                )
            )
            submitted += 1
        while submitted - settled > UNDER_WAY:
            time.sleep(0.01)
    while settled < submitted:
        time.sleep(0.01)
    print(submitted / (time.monotonic() - begun))


def query(store: Store, turns: int, agents: int) -> None:
    """Time pages of inboxes and of the list."""
    for turn in range(-20, turns):
        begun = time.perf_counter()
        page = store.inbox("global", f"agent-{turn % agents}", limit=25)
        found = time.perf_counter()
        listed = store.conversations(ConversationQuery(identity="global", limit=25))
        ended = time.perf_counter()
        if not page.items or not listed.items:
            sys.exit("lost: a page was empty")
        if turn >= 0:
            print((found - begun) * 1000, (ended - found) * 1000)


def age(store: Store, amount: int) -> None:
    """Store conversations of two messages, both answered."""
    submitted = 0
    for number in range(2 * amount):
        thread, name = f"old-{number // 2}", f"old-message-{number}"
        store.submit(Send(draft(thread, name, f"agent-{number % RECIPIENTS}")))
        store.submit(
            Acknowledge(
                identity="global",
                conversation_id=thread,
                message_id=name,
                state=AckState.ANSWERED,
                actor_id=f"agent-{number % RECIPIENTS}",
                actor_type=ActorType.CLIENT,
            )
        )
        submitted += 2
        while submitted - settled > UNDER_WAY:
            time.sleep(0.01)


def sweep(store: Store, seconds: int) -> None:
    """How long a write waits, alone and while the service's own sweeps run once."""
    ends = time.monotonic() + seconds
    alone, _ = come_in(store, lambda: time.monotonic() < ends)
    server = SimpleNamespace(store=store, timeline=timeline, sweep_presence=lambda: 0)
    sweeps = Sweeps(cast("Any", server), Settings())
    began = time.monotonic()
    sweeps.start()
    beside, most = come_in(store, lambda: not all(one["last_run"] for one in sweeps.describe()))
    took = time.monotonic() - began
    swept = {one["name"]: one["counts"] for one in sweeps.describe()}
    sweeps.stop()
    print(json.dumps({"alone": alone, "beside": beside, "log": most, "seconds": took, "swept": swept}))


def come_in(store: Store, goes_on: Callable[[], bool]) -> tuple[list[float], int]:
    """The waits of 500 messages a second, and the most bytes that the log had meanwhile."""
    waits.clear()
    most, number, at = 0, 0, time.monotonic()
    while number % 100 or goes_on():
        tag = time.perf_counter()
        store.submit(Send(draft(f"new-{number % 97}", None, f"agent-{number % RECIPIENTS}")), tag)
        number += 1
        most = max(most, store.health().wal_bytes if number % 20 == 0 else 0)
        at += EVERY_S
        time.sleep(max(0.0, at - time.monotonic()))
    while len(waits) < number:
        time.sleep(0.01)
    return list(waits), most


def draft(thread: str, name: str | None, recipient: str) -> Draft:
    """A message that asks for an answer."""
    return Draft(
        identity="global",
        from_agent_id="sender",
        to_agent_id=recipient,
        conversation_id=thread,
        message_id=name,
        kind=Kind.CHAT,
        content=TEXT,
        expects_response=True,
    )


timeline = Timeline(lambda: wall_ms() - LONG_AGO_MS) if sys.argv[1] == "age" else Timeline()
store = Store(Place.of(""), timeline, inbox_limit=1_000_000, on_commit=count)
store.open()
try:
    tasks: dict[str, Callable[..., None]] = {"fill": fill, "query": query, "age": age, "sweep": sweep}
    tasks[sys.argv[1]](store, *map(int, sys.argv[2:]))
finally:
    store.close()
