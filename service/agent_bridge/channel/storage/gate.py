"""Many may use the database at once; who replaces it must be alone."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager


class Gate:
    """Shared by users, closed by one. Whoever waits to be alone goes before users that come later."""

    def __init__(self) -> None:
        self._changed = threading.Condition(threading.Lock())
        self._users = 0
        self._closed = False

    @contextmanager
    def shared(self) -> Iterator[None]:
        """Use what is behind the gate beside others. Not to be nested: a waiting `alone` would hang both."""
        with self._changed:
            while self._closed:
                self._changed.wait()
            self._users += 1
        try:
            yield
        finally:
            with self._changed:
                self._users -= 1
                if not self._users:
                    self._changed.notify_all()

    @contextmanager
    def alone(self, patience_s: float | None = None) -> Iterator[None]:
        """Wait until all users have left; nobody comes in until the end.

        Raises TimeoutError where they don't leave within `patience_s`."""
        with self._changed:
            if not self._changed.wait_for(lambda: not self._closed, patience_s):
                raise TimeoutError
            self._closed = True
            if not self._changed.wait_for(lambda: not self._users, patience_s):
                self._closed = False
                self._changed.notify_all()
                raise TimeoutError
        try:
            yield
        finally:
            with self._changed:
                self._closed = False
                self._changed.notify_all()
