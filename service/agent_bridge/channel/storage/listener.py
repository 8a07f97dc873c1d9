"""Hearing that somebody has stored something in a PostgreSQL database that several registries share."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any, Final

from sqlalchemy import Connection, create_engine
from sqlalchemy.pool import NullPool

from agent_bridge.channel.storage.place import Place
from agent_bridge.channel.storage.postgresql import CONNECT, NOTICES
from agent_bridge.log import get_logger

LOOK_S: Final = 15.0
"""Seconds after which it is looked without a notice, too: a connection may be gone without a word."""
_WAKE_S: Final = 0.5
_FIRST_PAUSE_S: Final = 0.2
_LONGEST_PAUSE_S: Final = 10.0
_STOP_S: Final = 2.0

_log = get_logger("storage")


class Listener:
    """A thread with a connection of its own, made again whenever it is lost.

    `heard` is called on that thread: for each notice, for each connection that was made, as notices before
    that weren't heard, and every `LOOK_S`. It must not block.
    """

    def __init__(self, place: Place, heard: Callable[[], None]) -> None:
        self._place = place
        self._heard = heard
        self.problem: str | None = None
        """Why nothing is heard at the moment, in one sentence for `status`."""
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="channel-listener", daemon=True)

    def start(self) -> None:
        """Begin to listen."""
        self._thread.start()

    def stop(self) -> None:
        """End it; a connection that hangs is left behind."""
        self._ended.set()
        self._thread.join(_STOP_S)

    def _run(self) -> None:
        pause = _FIRST_PAUSE_S
        while not self._ended.is_set():
            began = time.monotonic()
            try:
                self._listen()
            except Exception as error:  # noqa: BLE001 - whatever it is: told, and tried again
                self._tell(" ".join(self._place.without_secrets(str(error)).split()))
            pause = _FIRST_PAUSE_S if time.monotonic() - began > LOOK_S else min(2 * pause, _LONGEST_PAUSE_S)
            self._ended.wait(pause)

    def _listen(self) -> None:
        engine = create_engine(
            self._place.url, poolclass=NullPool, isolation_level="AUTOCOMMIT", connect_args=CONNECT
        )
        with engine.connect() as connection:
            connection.exec_driver_sql(f"LISTEN {NOTICES}")
            self.problem = None
            self._hear(connection)

    def _tell(self, reason: str) -> None:
        told = f"What other registries store in {self._place.shown} can't be heard of: {reason}"
        if told != self.problem:  # what fails again and again is logged once
            _log.warning(told)
        self.problem = told

    def _hear(self, connection: Connection) -> None:
        driver: Any = connection.connection.driver_connection
        looked = 0.0
        while not self._ended.is_set():
            if time.monotonic() - looked > LOOK_S:
                looked = time.monotonic()
                self._heard()
            for _notice in driver.notifies(timeout=_WAKE_S, stop_after=1):
                self._heard()
