"""How long to wait before the next try: longer each time, and never all clients at once. No clock here."""

from __future__ import annotations

import random
from collections.abc import Callable

FIRST_S = 5.0
FACTOR = 1.5
LONGEST_S = 30.0


class Backoff:
    """Delays in seconds. The n-th lies anywhere between 0 and `first_s` x `factor`^n, at most `longest_s`.

    The whole range is used (full jitter): after a restart of the registry its clients come back spread out.
    `uniform(low, high)` draws; `random.uniform` unless a test has its own.
    """

    def __init__(
        self,
        first_s: float = FIRST_S,
        factor: float = FACTOR,
        longest_s: float = LONGEST_S,
        *,
        uniform: Callable[[float, float], float] = random.uniform,
    ) -> None:
        self._first = min(first_s, longest_s)
        self._factor = factor
        self._longest = longest_s
        self._uniform = uniform
        self._bound = self._first

    def next(self) -> float:
        """The next delay."""
        delay = self._uniform(0.0, self._bound)
        self._bound = min(self._longest, self._bound * self._factor)
        return delay

    def reset(self) -> None:
        """Begin again: something has worked."""
        self._bound = self._first
