"""When to act on events: pure, the clock is passed in.

A file that was closed, renamed or removed is complete and acted on at once. While it is being written, or
when many files of one directory change at once, the changes coalesce: until nothing came for the quiet
time, but never longer than the burst time. An empty file that is still open is about to be filled, so it is
waited for.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from agent_bridge.watch.events import FileEvent, Kind

_COMPLETE = frozenset({Kind.CLOSED, Kind.MOVED, Kind.REMOVED, Kind.SELF})
_STREAM = 4
"""From so many complete files of a directory at once on it is a stream (a checkout, a script), not a save."""


@dataclass(slots=True)
class _Pending:
    first: float
    last: float
    complete: bool
    not_before: float = 0.0


class Settler:
    """Collects events and hands out the paths whose time has come.

    `quiet`, `burst` and `patience` are seconds: without events until a stream is taken to be over; the
    longest that a stream is held up; and how long an empty open file is waited for.
    """

    def __init__(self, *, quiet: float, burst: float, patience: float = 2.0) -> None:
        self._quiet = quiet
        self._burst = burst
        self._patience = patience
        self._pending: dict[Path, _Pending] = {}

    def __len__(self) -> int:
        return len(self._pending)

    def __contains__(self, path: object) -> bool:
        return path in self._pending

    def add(self, event: FileEvent, now: float) -> None:
        """Note an event that arrived at `now`."""
        complete = event.kind in _COMPLETE or event.is_directory
        known = self._pending.get(event.path)
        if known is None:
            self._pending[event.path] = _Pending(now, now, complete)
            return
        known.last = now
        if event.kind is not Kind.ATTRIBUTES:
            known.complete = complete

    def due(self) -> float | None:
        """When `take` will next have something to hand out; None when nothing is pending."""
        if not self._pending:
            return None
        streams = self._streams()
        return min(self._due(pending, streams.get(path.parent)) for path, pending in self._pending.items())

    def take(self, now: float, *, is_empty: Callable[[Path], bool]) -> frozenset[Path]:
        """The paths to act on now; `is_empty` is asked about files that nobody has closed yet."""
        streams = self._streams()
        ready: set[Path] = set()
        for path, pending in self._pending.items():
            if self._due(pending, streams.get(path.parent)) > now:
                continue
            if not pending.complete and now - pending.first < self._patience and is_empty(path):
                pending.not_before = now + self._quiet
                continue
            ready.add(path)
        for path in ready:
            del self._pending[path]
        return frozenset(ready)

    def _streams(self) -> dict[Path, float]:
        """The directories in which a stream is under way, and when its newest event came."""
        if len(self._pending) < _STREAM:
            return {}
        complete = Counter(path.parent for path, pending in self._pending.items() if pending.complete)
        newest: dict[Path, float] = {}
        for path, pending in self._pending.items():
            if complete[path.parent] >= _STREAM:
                newest[path.parent] = max(pending.last, newest.get(path.parent, pending.last))
        return newest

    def _due(self, pending: _Pending, newest: float | None) -> float:
        if pending.complete and newest is None:
            return pending.first
        last = pending.last if newest is None else newest
        return max(pending.not_before, min(last + self._quiet, pending.first + self._burst))
