"""Times of any usual spelling."""

from __future__ import annotations

import pytest

from agent_bridge.memory.times import timestamp


@pytest.mark.parametrize(("value", "expected"), [
    ("2026-01-02T03:04:05.678Z", "2026-01-02T03:04:05.678Z"),
    ("2026-01-02T03:04:05Z # edited", "2026-01-02T03:04:05.000Z"),
    ("2026-01-02", "2026-01-02T00:00:00.000Z"),
    ("2026-01-02 03:04:05", "2026-01-02T03:04:05.000Z"),
    ("2001-12-14t21:59:43.10-05:00", "2001-12-15T02:59:43.100Z"),
    ("2001-12-14 21:59:43.10 -5", "2001-12-15T02:59:43.100Z"),
    ("2001-12-14 21:59:43.1234567 +5:30", "2001-12-14T16:29:43.123Z"),
    ("0001-01-01T00:00:00+10:00", ""),
    ("2026-13-01", ""),
    ("yesterday", ""),
    ("", ""),
])  # fmt: skip
def test_times_are_normalised(value: str, expected: str) -> None:
    assert timestamp(value) == expected
