"""Delays: they grow, they are bounded, they begin again."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from agent_bridge.client.backoff import Backoff


def test_the_bounds_grow_by_half_to_half_a_minute() -> None:
    delays = Backoff(uniform=lambda _low, high: high)
    assert [delays.next() for _ in range(7)] == [5, 7.5, 11.25, 16.875, 25.3125, 30, 30]


def test_the_whole_range_is_drawn_from() -> None:
    asked: list[tuple[float, float]] = []

    def uniform(low: float, high: float) -> float:
        asked.append((low, high))
        return low

    delays = Backoff(uniform=uniform)
    assert (delays.next(), delays.next()) == (0, 0)
    assert asked == [(0, 5), (0, 7.5)]


def test_a_success_begins_again() -> None:
    delays = Backoff(uniform=lambda _low, high: high)
    for _ in range(5):
        delays.next()
    delays.reset()
    assert delays.next() == 5


@given(st.floats(0.001, 100), st.floats(1, 5), st.floats(0.001, 100), st.integers(1, 200))
def test_no_delay_is_negative_or_over_the_longest(
    first: float, factor: float, longest: float, n: int
) -> None:
    delays = Backoff(first, factor, longest)
    assert all(0 <= delays.next() <= longest for _ in range(n))
