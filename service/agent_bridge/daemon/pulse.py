"""The main loop's sign of life: for the status and for the service manager, from within a long pass too."""

from __future__ import annotations

import time
from collections.abc import Callable

from agent_bridge.daemon.notify import Notifier
from agent_bridge.daemon.orders import StopFlag, StopOrdered
from agent_bridge.daemon.status import StatusBoard

_START_EXTENSION = 60.0
_INTERVAL = 1.0
"""Seconds between two messages from within a pass, however short its steps are."""


class Pulse:
    """Beats for the main loop. `starting` until the first pass over everything is done."""

    def __init__(self, board: StatusBoard, notifier: Notifier, stop: StopFlag | None = None) -> None:
        self.starting = True
        self.when_ready: Callable[[], None] = lambda: None
        """Called once the manager has been told that the service is ready."""
        self._board = board
        self._notifier = notifier
        self._stop = stop or StopFlag()
        self._next = 0.0
        self._interval = min(_INTERVAL, notifier.watchdog_interval or _INTERVAL)

    @property
    def interval(self) -> float:
        """How often the manager wants to hear a beat, in seconds; at most a second."""
        return self._interval

    def beat(self) -> None:
        """The main loop has come round."""
        self._board.beat()
        self._next = time.monotonic() + self._interval
        if self.starting:
            self._notifier.extend_start(_START_EXTENSION)
        else:
            self._notifier.watchdog()

    def ready(self, sentence: str) -> None:
        """The first pass is done."""
        self.starting = False
        self._notifier.ready(sentence)
        self.when_ready()

    def stopping(self) -> None:
        """The service is about to end."""
        self._notifier.stopping()

    def step(self) -> None:
        """A pass goes on: one file, one project is done. Raises StopOrdered when the service is to end.

        What hangs within a step isn't covered, so a watchdog still catches it.
        """
        if self._stop.is_set:
            raise StopOrdered
        if time.monotonic() >= self._next:
            self.beat()
