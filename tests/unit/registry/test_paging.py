"""Pages that end early when they weigh enough, and lead on from there without gap or double."""

from __future__ import annotations

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_bridge.channel.model import Kind, Message
from agent_bridge.channel.storage.answers import Page, Thread
from agent_bridge.channel.writes import Event
from agent_bridge.registry import paging
from agent_bridge.registry.paging import FIRST, STEP, gather, gather_events, gather_thread, weight_of

_MESSAGE = Message(
    seq=1,
    identity="global",
    conversation_id="c",
    message_id="m",
    from_agent_id="a",
    kind=Kind.CHAT,
    content="x",
    created_at=1,
    expects_response=False,
)
_WEIGHTS = st.lists(st.integers(0, 12), max_size=120)


@pytest.fixture(autouse=True)
def light(monkeypatch: pytest.MonkeyPatch) -> None:
    """A page is full at once."""
    monkeypatch.setattr(paging, "HEAVY", 100)


def _part(items: list[int], before: int | None, limit: int) -> Page[int]:
    start = before or 0
    rest = items[start : start + limit + 1]
    return Page(tuple(rest[:limit]), start + limit if len(rest) > limit else None)


@given(_WEIGHTS, st.integers(1, 90))
def test_all_pages_together_are_the_list(weights: list[int], limit: int) -> None:
    seen: list[int] = []
    before: int | None = None
    while True:
        page = gather(lambda before, limit: _part(weights, before, limit), before, limit, lambda one: one)
        assert len(page.items) <= limit
        # What it weighs more than enough came with the last step.
        assert sum(page.items[:-STEP]) < 100
        seen += page.items
        if page.next is None:
            break
        before = page.next
    assert seen == weights


def test_a_light_page_is_as_long_as_was_asked() -> None:
    assert (
        len(gather(lambda before, limit: _part([0] * 300, before, limit), None, 200, lambda one: one).items)
        == 200
    )


def test_of_heavy_rows_few_are_read_before_that_is_noticed() -> None:
    read: list[int] = []

    def fetch(before: int | None, limit: int) -> Page[int]:
        page = _part([40] * 300, before, limit)
        read.extend(page.items)
        return page

    assert len(gather(fetch, None, 200, lambda one: one).items) == len(read) == FIRST
    read.clear()
    assert (
        gather(lambda before, limit: _part([20] * 300, before, limit), None, 200, lambda one: one).next == 5
    )


def test_events_weigh_their_meta_and_may_have_a_bound_of_their_own() -> None:
    events = [
        Event(type="channel.message", identity="global", data={"meta": {"a": "y" * 50}}, seq=seq)
        for seq in range(1, 100)
    ]

    def fetch(since: int, limit: int) -> list[Event]:
        return [event for event in events if (event.seq or 0) > since][:limit]

    found, more = gather_events(fetch, 0, 90, heavy=600)
    assert 600 // 60 <= len(found) <= 600 // 50 + 1
    assert more
    assert len(gather_events(fetch, 0, 90)[0]) == FIRST


@given(_WEIGHTS, st.integers(1, 90))
def test_all_pages_of_a_thread_are_the_thread(weights: list[int], limit: int) -> None:
    messages = [
        dataclasses.replace(_MESSAGE, seq=seq, content="x" * size) for seq, size in enumerate(weights, 1)
    ]

    def fetch(before: int | None, limit: int) -> Thread:
        older = [message for message in messages if before is None or message.seq < before]
        part = tuple(older[-limit:])
        return Thread(
            identity="global",
            conversation_id="c",
            messages=part,
            acks=(),
            next=part[0].seq if len(older) > limit else None,
        )

    seen: list[Message] = []
    before: int | None = None
    while True:
        page = gather_thread(fetch, before, limit)
        assert len(page.messages) <= limit
        seen = [*page.messages, *seen]
        if page.next is None:
            break
        before = page.next
    assert seen == messages


@given(_WEIGHTS, st.integers(1, 90))
def test_all_steps_of_events_are_the_events(weights: list[int], limit: int) -> None:
    events = [
        Event(type="channel.message", identity="global", data={"content": "x" * size}, seq=3 * seq)
        for seq, size in enumerate(weights, 1)
    ]
    seen: list[Event] = []
    more = True
    while more:
        since = seen[-1].seq or 0 if seen else 0
        found, more = gather_events(
            lambda since, limit: [event for event in events if (event.seq or 0) > since][:limit], since, limit
        )
        assert len(found) <= limit
        seen += found
    assert seen == events


def test_meta_weighs_too() -> None:
    assert weight_of(dataclasses.replace(_MESSAGE, meta={"a": "y" * 1000})) > 1000
    assert weight_of(_MESSAGE) == 1
