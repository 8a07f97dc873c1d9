"""The registry's figures for the status: from memory at once, from the database without a long wait."""

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
    """What there is to tell: `hub` as it describes itself, `store` its health and counts, or None so far."""

    hub: dict[str, Any] = field(default_factory=dict)
    store: dict[str, Any] | None = None
    reasons: tuple[str, ...] = ()


class FiguresKeeper:
    """Asks a running registry for its figures, and keeps the last ones of its database."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._asking: threading.Thread | None = None
        self._of: RegistryServer | None = None
        self._asked_at = 0.0
        self._store: dict[str, Any] | None = None
        self._reasons: tuple[str, ...] = ()

    def of(self, server: RegistryServer) -> Figures:
        """The figures as of now; those of the database may be a second old, or older while it is slow."""
        asking = self._ask(server)
        if asking is not None:
            asking.join(PATIENCE_SECONDS)
        store = self._store if self._of is server else None
        return Figures(server.describe(), store, self._reasons if store else ())

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
        health = server.store.health()
        store = plain(health)
        try:
            store |= server.store.counts()
        except Exception as error:  # noqa: BLE001 (what the database can't tell is no reason to say nothing)
            store["counts_error"] = " ".join(str(error).split())
        self._store, self._reasons, self._of = store, tuple(store.pop("reasons", ())), server
