"""The registry's figures for the status, without a long wait for its loop or its database."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from agent_bridge.daemon.status import plain

if TYPE_CHECKING:
    from agent_bridge.registry.server import RegistryServer

FRESH_SECONDS = 1.0
"""Figures of the database that are not older are not asked for again."""
PATIENCE_SECONDS = 0.25
"""How long an answer may wait for them; a database that hangs must not silence the status."""


@dataclass(frozen=True, slots=True)
class Figures:
    """What there is to tell: `hub` as it describes itself, `store`: health and counts; None: not known.

    `reasons` say what is wrong now; `notices` what has happened to the database, or is unusual about it."""

    hub: dict[str, Any] = field(default_factory=dict)
    store: dict[str, Any] | None = None
    reasons: tuple[str, ...] = ()
    notices: tuple[str, ...] = ()


class FiguresKeeper:
    """Asks a running registry for its figures, and keeps the last ones of its database."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._asking: threading.Thread | None = None
        self._of: RegistryServer | None = None
        self._asked_at = 0.0
        self._known = Figures()

    def of(self, server: RegistryServer) -> Figures:
        """The figures: a second old at most, or older while loop or database are slow."""
        asking = self._ask(server)
        if asking is not None:
            asking.join(PATIENCE_SECONDS)
        return self._known if self._of is server else Figures()

    def _ask(self, server: RegistryServer) -> threading.Thread | None:
        with self._lock:
            if self._asking is not None and self._asking.is_alive():
                return self._asking
            if self._of is server and time.monotonic() - self._asked_at < FRESH_SECONDS:
                return None
            self._asked_at = time.monotonic()
            self._asking = threading.Thread(
                target=self._read, args=(server,), name="registry-figures", daemon=True
            )
            self._asking.start()
            return self._asking

    def _read(self, server: RegistryServer) -> None:
        store = plain(server.store.health())
        reasons = tuple(store.pop("reasons"))
        notices = (*store.pop("notices"), *map(_set_aside, store["set_aside"]))
        hub: dict[str, Any] = {}
        try:
            hub = server.describe()
            store |= server.store.counts()
        except Exception as error:  # noqa: BLE001 (what can't be asked is told; the rest is told all the same)
            reasons = reasons or (f"The registry's figures can't be read: {' '.join(str(error).split())}.",)
        self._known, self._of = Figures(hub, store, reasons, notices), server


def _set_aside(path: str) -> str:
    return f"A damaged message database was set aside: {path}. Remove it when you don't need it."
