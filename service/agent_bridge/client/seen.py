"""Which messages were offered already: nothing is shown twice, and the memory for it is bounded."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass

LIMIT = 5000


@dataclass(slots=True)
class _Known:
    attempt: int
    settled: bool = False


class Seen:
    """Remembers the last `limit` messages by id; who hasn't been heard of for longest goes first.

    A retry (the same id, a higher attempt) is offered again, unless the message was displayed or answered.
    """

    def __init__(self, limit: int = LIMIT) -> None:
        self._limit = limit
        self._known: OrderedDict[str, _Known] = OrderedDict()

    def __len__(self) -> int:
        return len(self._known)

    def admit(self, message_id: str, attempt: int) -> bool:
        """Whether this attempt is to be offered; from then on it counts as offered."""
        known = self._known.get(message_id)
        if known is None:
            self._known[message_id] = _Known(attempt)
            if len(self._known) > self._limit:
                self._known.popitem(last=False)
            return True
        self._known.move_to_end(message_id)
        if known.settled or attempt <= known.attempt:
            return False
        known.attempt = attempt
        return True

    def is_due(self, message_id: str, attempt: int) -> bool:
        """Whether this attempt, admitted before, is still to be shown: not settled, no later one came."""
        known = self._known.get(message_id)
        return known is None or not (known.settled or known.attempt > attempt)

    def settle(self, message_id: str, attempt: int = 1) -> None:
        """The message was displayed or answered: no retry of it is shown any more."""
        known = self._known.get(message_id)
        if known is None:
            self.admit(message_id, attempt)
            known = self._known[message_id]
        known.settled = True
