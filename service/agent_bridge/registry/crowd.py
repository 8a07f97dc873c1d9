"""How many connections there may be, and who makes room when there are too many.

Any process of this machine can connect, token or not, and each connection takes a file descriptor of a
process that has other work to do. So there is a bound, and whoever has nothing under way goes for whoever
comes: the one that has been waiting for longest first. Pure.
"""

from __future__ import annotations

from typing import Protocol


class Waiting(Protocol):
    """A connection without a request under way."""

    def give_way(self) -> None:
        """Close at once."""


class Crowd:
    """The connections that wait for a request, oldest first. At most `most` may be open in all."""

    def __init__(self, most: int) -> None:
        self.most = most
        self._waiting: dict[Waiting, None] = {}

    def __len__(self) -> int:
        return len(self._waiting)

    def waits(self, connection: Waiting) -> None:
        """Nothing is under way on this connection, from now on."""
        self._waiting.pop(connection, None)
        self._waiting[connection] = None

    def leaves(self, connection: Waiting) -> None:
        """A request has come on it, or it is gone."""
        self._waiting.pop(connection, None)

    def make_room(self, newcomer: Waiting, count: int) -> bool:
        """`newcomer` is one of `count` that are open. False: there are too many, and none has to give way."""
        while count > self.most:
            oldest = next(iter(self._waiting), newcomer)
            if oldest is newcomer:
                return False
            self.leaves(oldest)
            oldest.give_way()
            count -= 1
        return True
