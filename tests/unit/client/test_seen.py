"""Nothing is offered twice, a retry only while it may still be news, and the memory stays small."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from agent_bridge.client.seen import Seen


def test_a_message_is_offered_once() -> None:
    seen = Seen()
    assert seen.admit("m", 1)
    assert not seen.admit("m", 1)
    assert seen.admit("n", 1)


def test_a_retry_is_offered_until_the_message_is_settled() -> None:
    seen = Seen()
    assert seen.admit("m", 1)
    assert seen.admit("m", 2)
    assert not seen.admit("m", 2)
    assert not seen.admit("m", 1)
    seen.settle("m")
    assert not seen.admit("m", 3)


def test_an_attempt_is_due_until_it_is_overtaken_or_settled() -> None:
    seen = Seen()
    seen.admit("m", 1)
    assert seen.is_due("m", 1)
    seen.admit("m", 2)
    assert not seen.is_due("m", 1)
    assert seen.is_due("m", 2)
    seen.settle("m")
    assert not seen.is_due("m", 2)


def test_what_was_settled_before_it_came_is_not_offered() -> None:
    seen = Seen()
    seen.settle("m", 1)
    assert not seen.admit("m", 1)
    assert not seen.admit("m", 2)


def test_who_was_not_heard_of_for_longest_is_forgotten_first() -> None:
    seen = Seen(3)
    for name in "abc":
        seen.admit(name, 1)
    seen.admit("a", 1)
    seen.admit("d", 1)
    assert len(seen) == 3
    assert seen.admit("b", 1)
    assert not seen.admit("a", 1)


@given(st.lists(st.tuples(st.integers(0, 30), st.integers(1, 4)), max_size=300))
def test_the_memory_is_bounded_and_exact_within_its_bound(arrivals: list[tuple[int, int]]) -> None:
    small, whole = Seen(10), Seen(10_000)
    offered: dict[int, int] = {}
    for name, attempt in arrivals:
        small.admit(str(name), attempt)
        assert len(small) <= 10
        assert whole.admit(str(name), attempt) == (attempt > offered.get(name, 0))
        offered[name] = max(attempt, offered.get(name, 0))
