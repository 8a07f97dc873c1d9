"""What one agent has sent, the newest first, with how far each message came."""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from itertools import islice

from agent_bridge.channel.model import Message
from agent_bridge.client.answers import Page
from agent_bridge.client.http import Registry

_PAGE = 200


def sent_by(registry: Registry, agent_id: str, *, limit: int, before: str | None) -> Page[Message]:
    """A page of them; `before` is the `next_before` of the page before it. `total` isn't known.

    The registry lists by recipient and by conversation, so the agent's conversations are walked through, from
    the newest on and no further than the page needs.
    """
    cursor = None if before is None else int(before)
    heap = [_waiting(registry, agent_id, archived=archived) for archived in (False, True)]
    found: list[Message] = []
    open_threads: list[tuple[int, int, Iterator[Message], Message]] = []
    conversations = heapq.merge(*heap, key=lambda one: -one[0])
    upcoming = next(conversations, None)
    number = 0
    while len(found) <= limit:
        # A conversation's number is that of its newest message: those below can't hold a newer one.
        while upcoming is not None and (not open_threads or upcoming[0] >= -open_threads[0][0]):
            messages = _own(registry, agent_id, upcoming[1], cursor)
            number += 1
            _push(open_threads, number, messages)
            upcoming = next(conversations, None)
        if not open_threads:
            break
        _, which, messages, message = heapq.heappop(open_threads)
        found.append(message)
        _push(open_threads, which, messages)
    page = tuple(islice(found, limit))
    return Page(page, str(page[-1].seq) if len(found) > limit else None, None)


def _push(
    threads: list[tuple[int, int, Iterator[Message], Message]], number: int, messages: Iterator[Message]
) -> None:
    message = next(messages, None)
    if message is not None:
        heapq.heappush(threads, (-message.seq, number, messages, message))


def _waiting(registry: Registry, agent_id: str, *, archived: bool) -> Iterator[tuple[int, str]]:
    """The agent's conversations with the number of the newest message in each, the newest first."""
    before: str | None = None
    while True:
        page = registry.conversations(participant=agent_id, archived=archived, limit=_PAGE, before=before)
        for one in page.items:
            yield one.last_message.seq, one.conversation_id
        before = page.next_before
        if before is None:
            return


def _own(registry: Registry, agent_id: str, conversation_id: str, cursor: int | None) -> Iterator[Message]:
    """The agent's messages in a conversation, below the cursor, the newest first."""
    before = None if cursor is None else str(cursor)
    while True:
        thread = registry.conversation(conversation_id, limit=_PAGE, before=before)
        yield from (one for one in reversed(thread.messages) if one.from_agent_id == agent_id)
        before = thread.next_before
        if before is None:
            return
