"""The size of a sweep's batches follows what they take."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from agent_bridge.channel.storage.pace import FEWEST, MOST, SHORT_S, TOO_LONG_S, Pace


def test_batches_shrink_while_they_take_too_long() -> None:
    pace = Pace()
    sizes = []
    for _ in range(5):
        pace.took(2 * TOO_LONG_S, pace.rows)
        sizes.append(pace.rows)

    assert sizes == [50, 25, FEWEST, FEWEST, FEWEST]


def test_full_batches_grow_while_they_are_quick() -> None:
    pace = Pace()
    sizes = []
    for _ in range(5):
        pace.took(SHORT_S / 2, pace.rows)
        sizes.append(pace.rows)

    assert sizes == [200, 400, 800, MOST, MOST]


def test_a_batch_that_was_not_full_teaches_nothing() -> None:
    pace = Pace()
    pace.took(0.0, 3)

    assert pace.rows == 100


@given(st.lists(st.floats(0, 1), max_size=50))
def test_batches_stay_within_bounds(times: list[float]) -> None:
    pace = Pace()
    for seconds in times:
        pace.took(seconds, pace.rows)
        assert FEWEST <= pace.rows <= MOST
