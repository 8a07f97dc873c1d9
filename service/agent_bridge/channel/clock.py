"""Two times for everything: the wall's, which people read, and a steady one, by which things grow old.

A wall clock is set: by a day, back and forth. The steady time goes on with the machine's uptime, suspended
time included, and over restarts by what the wall says has passed, never backwards. Deadlines and ages are
compared in steady time only, so a jump makes nothing expire and nothing younger than it is.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass

# On macOS CLOCK_MONOTONIC goes on while the machine sleeps; on Linux only CLOCK_BOOTTIME does.
_CLOCK = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


def wall_ms() -> int:
    """The wall's time, Unix milliseconds."""
    return time.time_ns() // 1_000_000


def elapsed_ms() -> int:
    """Milliseconds since some fixed moment, suspended time included."""
    if sys.platform == "win32":
        return time.monotonic_ns() // 1_000_000
    return time.clock_gettime_ns(_CLOCK) // 1_000_000


@dataclass(frozen=True, slots=True)
class Moment:
    """One moment in both times, milliseconds."""

    wall: int
    steady: int

    def due(self, wall_deadline: int) -> int:
        """A deadline that was given in wall time, in steady time; never before this moment."""
        return self.steady + max(0, wall_deadline - self.wall)


class Timeline:
    """Tells moments; `resume` joins it to the last one that a run before had written down."""

    def __init__(self, wall: Callable[[], int] = wall_ms, elapsed: Callable[[], int] = elapsed_ms) -> None:
        self._wall = wall
        self._elapsed = elapsed
        self._from = elapsed()
        self._steady = wall()

    def resume(self, last: Moment | None) -> None:
        """Go on from the last moment of a run before: later by what the wall says, never earlier."""
        if last is None:
            return
        now = self._wall()
        self._from = self._elapsed()
        self._steady = last.steady + max(0, now - last.wall)

    def now(self) -> Moment:
        """This moment."""
        return Moment(self._wall(), self._steady + self._elapsed() - self._from)
