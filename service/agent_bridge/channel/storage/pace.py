"""How many rows one batch of a sweep takes, so that no write waits long for it on any machine. Pure."""

from __future__ import annotations

from typing import Final

FEWEST: Final = 20
MOST: Final = 1000
TOO_LONG_S: Final = 0.020
SHORT_S: Final = 0.008


class Pace:
    """The size of the next batch, learnt from how long the last ones took. For one thread."""

    def __init__(self) -> None:
        self.rows = 100

    def took(self, seconds: float, rows: int) -> None:
        """Learn from a batch of `rows` and its commit."""
        if seconds > TOO_LONG_S:
            self.rows = max(FEWEST, self.rows // 2)
        elif seconds < SHORT_S and rows >= self.rows:
            self.rows = min(MOST, self.rows * 2)
