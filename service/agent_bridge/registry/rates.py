"""How fast one sender may send: a bucket of tokens for each (identity, sender)."""

from __future__ import annotations

import math
import time
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

from agent_bridge.channel.errors import TooManyError

BUCKETS = 10_000
"""Senders that are remembered; past that the one that has been quiet for longest is forgotten."""


class TooFastError(TooManyError):
    """A sender is over its rate; `retry_after_s` is when the next message would be taken."""

    def __init__(self, sender: str, retry_after_s: float) -> None:
        super().__init__(
            f"{sender} sends too fast; nothing was stored",
            detail=f"the next message is taken in {retry_after_s:.2f} s",
        )
        self.retry_after_s = retry_after_s


class Rates:
    """`burst` messages at once, then `per_second`. Used on one thread; `clock` in seconds."""

    def __init__(self, per_second: float, burst: int, clock: Callable[[], float] = time.monotonic) -> None:
        self.change(per_second, burst)
        self._clock = clock
        self._refused = 0
        self._buckets: OrderedDict[tuple[str, str], tuple[float, float]] = OrderedDict()

    def change(self, per_second: float, burst: int) -> None:
        """Other limits from now on; what was used stays used."""
        self._per_second = per_second
        self._burst = float(burst)

    def take(self, identity: str, sender: str) -> None:
        """Count one message. Raises TooFastError, and counts nothing, when the sender has none left."""
        now = self._clock()
        key = (identity, sender)
        level, since = self._buckets.get(key, (self._burst, now))
        level = min(self._burst, level + max(0.0, now - since) * self._per_second)
        if level < 1.0:
            # Kept at what was reckoned: the time until now has been paid out.
            self._buckets[key] = (level, now)
            self._refused += 1
            raise TooFastError(sender, (1.0 - level) / self._per_second)
        self._buckets[key] = (level - 1.0, now)
        self._buckets.move_to_end(key)
        if len(self._buckets) > BUCKETS:
            self._buckets.popitem(last=False)

    def describe(self) -> dict[str, Any]:
        """Figures for `status`."""
        return {"senders": len(self._buckets), "refused": self._refused}


def whole_seconds(error: TooManyError) -> int:
    """What `Retry-After` says: whole seconds, at least 1; a minute where an inbox is full."""
    return max(1, math.ceil(error.retry_after_s)) if isinstance(error, TooFastError) else 60
