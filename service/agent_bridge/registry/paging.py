"""Pages of bounded weight: two hundred messages may be two hundred kilobytes, or more than there is memory.

How large rows are is known only once they are read, so a page is gathered in small steps: a few rows first,
then as many as have room if they are like the heaviest so far. It ends early when it weighs enough; its
cursor leads on from there, as at any page's end.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

from agent_bridge.channel.model import Message
from agent_bridge.channel.storage.answers import Page, Thread
from agent_bridge.channel.writes import Event

HEAVY = 16 << 20
"""Characters of content after which a page is full."""
FIRST = 5
"""Rows that are read before anything is known of them: each may be as large as `message_bytes` allows."""
STEP = 25
"""Rows that are read at once at most."""

T = TypeVar("T")


def gather(
    fetch: Callable[[int | None, int], Page[T]], before: int | None, limit: int, weigh: Callable[[T], int]
) -> Page[T]:
    """A page of at most `limit` entries; `fetch(before, limit)` reads a part of it."""
    items: list[T] = []
    load = _Load(HEAVY)
    while True:
        page = fetch(before, load.step(limit - len(items)))
        items += page.items
        load.add(map(weigh, page.items))
        before = page.next
        if before is None or len(items) >= limit or load.is_full:
            return Page(tuple(items), before)


def gather_thread(fetch: Callable[[int | None, int], Thread], before: int | None, limit: int) -> Thread:
    """A page of one conversation: the newest messages before the cursor, oldest first, and their acks."""
    load = _Load(HEAVY)
    thread = fetch(before, load.step(limit))
    load.add(map(weight_of, thread.messages))
    while thread.next is not None and len(thread.messages) < limit and not load.is_full:
        older = fetch(thread.next, load.step(limit - len(thread.messages)))
        load.add(map(weight_of, older.messages))
        thread = dataclasses.replace(
            thread,
            messages=older.messages + thread.messages,
            acks=tuple(sorted(older.acks + thread.acks, key=lambda ack: ack.seq)),
            next=older.next,
        )
    return thread


def gather_events(
    fetch: Callable[[int, int], list[Event]], since: int, limit: int, heavy: int | None = None
) -> tuple[list[Event], bool]:
    """The next events, at most `limit` and about `heavy` (HEAVY) characters, and whether there may be more;
    `fetch(since, limit)` reads some."""
    events: list[Event] = []
    load = _Load(HEAVY if heavy is None else heavy)
    while True:
        step = load.step(limit - len(events))
        found = fetch(since, step)
        events += found
        load.add(_weight(event.data.get("content", ""), event.data.get("meta")) for event in found)
        if len(found) < step:
            return events, False
        since = found[-1].seq or since
        if len(events) >= limit or load.is_full:
            return events, True


def weight_of(message: Message) -> int:
    """Roughly what a message adds to an answer, in characters."""
    return _weight(message.content, message.meta)


class _Load:
    """What the rows of a page weigh so far, and how many may be read next."""

    def __init__(self, most: int) -> None:
        self._left = most
        self._heaviest: int | None = None

    @property
    def is_full(self) -> bool:
        return self._left <= 0

    def add(self, weights: Iterable[int]) -> None:
        for weight in weights:
            self._left -= weight
            self._heaviest = max(self._heaviest or 1, weight)

    def step(self, rows: int) -> int:
        fitting = FIRST if self._heaviest is None else self._left // self._heaviest
        return min(rows, max(1, min(STEP, fitting)))


def _weight(content: str, meta: Mapping[str, Any] | None) -> int:
    return len(content) + (len(repr(meta)) if meta else 0)
