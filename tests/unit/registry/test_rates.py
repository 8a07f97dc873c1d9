"""How fast one sender may send, by a clock of the test's own."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_bridge.channel.errors import TooManyError
from agent_bridge.registry import rates
from agent_bridge.registry.rates import Rates, TooFastError, whole_seconds


class _Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> _Clock:
    return _Clock()


def test_a_burst_and_then_the_rate(clock: _Clock) -> None:
    limits = Rates(2.0, 3, clock)
    for _ in range(3):
        limits.take("global", "a")
    with pytest.raises(TooFastError) as refused:
        limits.take("global", "a")
    assert refused.value.retry_after_s == pytest.approx(0.5)
    assert whole_seconds(refused.value) == 1
    clock.now += 0.5
    limits.take("global", "a")
    with pytest.raises(TooFastError):
        limits.take("global", "a")
    assert limits.describe() == {"senders": 1, "refused": 2}


def test_senders_and_identities_have_their_own(clock: _Clock) -> None:
    limits = Rates(1.0, 1, clock)
    for identity, sender in (("global", "a"), ("global", "b"), ("work", "a")):
        limits.take(identity, sender)
    with pytest.raises(TooFastError):
        limits.take("global", "a")


def test_a_clock_that_goes_back_gives_and_takes_nothing(clock: _Clock) -> None:
    limits = Rates(1.0, 1, clock)
    limits.take("global", "a")
    clock.now -= 1000
    with pytest.raises(TooFastError) as refused:
        limits.take("global", "a")
    assert refused.value.retry_after_s == pytest.approx(1.0)


def test_new_limits_hold_at_once(clock: _Clock) -> None:
    limits = Rates(1.0, 1, clock)
    limits.take("global", "a")
    limits.change(1000.0, 5)
    clock.now += 1
    for _ in range(5):
        limits.take("global", "a")


def test_however_many_names_come_what_is_remembered_is_bounded(
    clock: _Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rates, "BUCKETS", 10)
    limits = Rates(1.0, 1, clock)
    for number in range(100):
        limits.take("global", f"sender-{number}")
    assert limits.describe()["senders"] == 10
    with pytest.raises(TooFastError):
        limits.take("global", "sender-99")


def test_a_full_inbox_says_when_to_come_back_too() -> None:
    assert whole_seconds(TooManyError("full")) == 60


@given(st.lists(st.floats(0, 3), max_size=60), st.floats(0.5, 50), st.integers(1, 20))
def test_no_more_than_burst_and_rate_allow(waits: list[float], per_second: float, burst: int) -> None:
    clock = _Clock()
    limits = Rates(per_second, burst, clock)
    start, taken = clock.now, 0
    for wait in waits:
        clock.now += wait
        with contextlib.suppress(TooFastError):
            limits.take("global", "a")
            taken += 1
        assert taken <= burst + (clock.now - start) * per_second + 1e-6
