"""What a signal asks of the service; a module of its own, so that signals are caught before slow imports."""

from __future__ import annotations

import enum


class Order(enum.Enum):
    """What a signal asks for."""

    STOP = "stop"
    """SIGTERM, SIGINT."""
    RELOAD = "reload"
    """SIGHUP: read the settings and the list of projects again."""
