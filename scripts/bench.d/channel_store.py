"""A database with many messages, and how long its inboxes take inside one process.

    channel_store.py fill COUNT      stores that many more, in threads of ten; prints the writes a second
    channel_store.py query TURNS     prints milliseconds of 25 of an inbox and 25 conversations, a line each

Uses the state directory of its environment; no service may run there.
"""

import sys
import time
from collections.abc import Sequence

from agent_bridge.channel.clock import Timeline
from agent_bridge.channel.errors import ChannelError
from agent_bridge.channel.model import AckState, ActorType, Draft, Kind
from agent_bridge.channel.storage.answers import ConversationQuery
from agent_bridge.channel.storage.place import Place
from agent_bridge.channel.storage.store import Store
from agent_bridge.channel.writes import Acknowledge, Send, Settled

RECIPIENTS = 200
OPEN_EACH = 100
UNDER_WAY = 20_000
TEXT = "The build of part seven is red since this morning; I look at the tests of the parser now. " * 2

settled = 0


def count(batch: Sequence[Settled]) -> None:
    """Count what was stored; anything refused ends the measurement."""
    global settled
    for one in batch:
        if isinstance(one.outcome, ChannelError):
            print(one.outcome, file=sys.stderr, flush=True)
    settled += len(batch)


def fill(store: Store, amount: int) -> None:
    """Store messages; of each recipient's the last hundred stay open."""
    begun, submitted, already = time.monotonic(), 0, store.last_seq()
    for number in range(amount):
        thread, recipient = f"thread-{already}-{number // 10}", f"agent-{number // 10 % RECIPIENTS}"
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
        if number < amount - RECIPIENTS * OPEN_EACH:
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


def query(store: Store, turns: int) -> None:
    """Time pages of inboxes and of the list."""
    for turn in range(-20, turns):
        begun = time.perf_counter()
        page = store.inbox("global", f"agent-{turn % RECIPIENTS}", limit=25)
        found = time.perf_counter()
        listed = store.conversations(ConversationQuery(identity="global", limit=25))
        ended = time.perf_counter()
        if not page.items or not listed.items:
            sys.exit("lost: a page was empty")
        if turn >= 0:
            print((found - begun) * 1000, (ended - found) * 1000)


store = Store(Place.of(""), Timeline(), inbox_limit=1_000_000, on_commit=count)
store.open()
try:
    {"fill": fill, "query": query}[sys.argv[1]](store, int(sys.argv[2]))
finally:
    store.close()
