"""What a signal asks of the service; a module of its own, so that signals are caught before slow imports."""

from __future__ import annotations

import enum
from dataclasses import dataclass


class Order(enum.Enum):
    """What a signal asks for."""

    STOP = "stop"
    """SIGTERM, SIGINT."""
    RELOAD = "reload"
    """SIGHUP: read the settings and the list of projects again."""


@dataclass(slots=True)
class StopFlag:
    """Whether a stop was ordered; set by the signal's handler, looked at between the steps of a long pass."""

    is_set: bool = False


class StopOrdered(BaseException):
    """Ends a pass between two steps. Each file is written in one step, so nothing is left half done."""
