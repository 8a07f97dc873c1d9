"""Pages of bounded weight: two hundred messages may be two hundred kilobytes, or more than there is memory.

How large rows are is known only once they are read, so a page is gathered in small steps and ends early when
it weighs enough. Its cursor leads on from there, as at any page's end.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from agent_bridge.channel.model import Message
from agent_bridge.channel.storage.answers import Page, Thread
from agent_bridge.channel.writes import Event

HEAVY = 16 << 20
"""Characters of content after which a page is full."""
STEP = 25
"""Rows that are read at once."""

T = TypeVar("T")


def gather(
    fetch: Callable[[int | None, int], Page[T]], before: int | None, limit: int, weigh: Callable[[T], int]
) -> Page[T]:
    """A page of at most `limit` entries; `fetch(before, limit)` reads a part of it."""
    items: list[T] = []
    weight = 0
    while True:
        page = fetch(before, min(STEP, limit - len(items)))
        items += page.items
        weight += sum(map(weigh, page.items))
        before = page.next
        if before is None or len(items) >= limit or weight >= HEAVY:
            return Page(tuple(items), before)


def gather_thread(fetch: Callable[[int | None, int], Thread], before: int | None, limit: int) -> Thread:
    """A page of one conversation: the newest messages before the cursor, oldest first, and their acks."""
    thread = fetch(before, min(STEP, limit))
    weight = sum(map(weight_of, thread.messages))
    while thread.next is not None and len(thread.messages) < limit and weight < HEAVY:
        older = fetch(thread.next, min(STEP, limit - len(thread.messages)))
        weight += sum(map(weight_of, older.messages))
        thread = dataclasses.replace(
            thread,
            messages=older.messages + thread.messages,
            acks=tuple(sorted(older.acks + thread.acks, key=lambda ack: ack.seq)),
            next=older.next,
        )
    return thread


def gather_events(
    fetch: Callable[[int, int], list[Event]], since: int, limit: int
) -> tuple[list[Event], bool]:
    """The next events, at most `limit`, and whether there may be more; `fetch(since, limit)` reads some."""
    events: list[Event] = []
    weight = 0
    while True:
        step = min(STEP, limit - len(events))
        found = fetch(since, step)
        events += found
        weight += sum(_weight(event.data.get("content", ""), event.data.get("meta")) for event in found)
        if len(found) < step:
            return events, False
        since = found[-1].seq or since
        if len(events) >= limit or weight >= HEAVY:
            return events, True


def weight_of(message: Message) -> int:
    """Roughly what a message adds to an answer, in characters."""
    return _weight(message.content, message.meta)


def _weight(content: str, meta: Mapping[str, Any] | None) -> int:
    return len(content) + (len(repr(meta)) if meta else 0)
