"""What the registry does by the clock: expiry, the terminal sweep, retention, presence, upkeep.

APScheduler says when, one thread of its own does the work: in small batches with a pause after each, so that
a message that comes in never waits for more than one of them.
"""

from __future__ import annotations

import functools
import queue
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from agent_bridge.daemon.jobs import Jobs
from agent_bridge.errors import AgentBridgeError
from agent_bridge.log import get_logger

if TYPE_CHECKING:
    from agent_bridge.config import Settings
    from agent_bridge.registry.server import RegistryServer

PAUSE_SECONDS = 0.005
"""Rest between two batches, at least; else as long as the batch took: half the time is for what comes in."""
RETRY_SECONDS = 5.0
"""How soon one that failed is tried again, if its own time doesn't come sooner."""
_STOP_SECONDS = 1.0
_BATCHES_PER_CHECKPOINT = 5
_MS_PER_MINUTE = 60_000
_MS_PER_DAY = 86_400_000

_log = get_logger("registry")


@dataclass(slots=True)
class Sweep:
    """One sweep: `batch` does a little and says how much it was and whether there is more."""

    name: str
    setting: str
    batch: Callable[[], tuple[int, bool]]
    counts: int = 0
    last_count: int = 0
    last_ms: float | None = None
    error: str | None = None


class Sweeps:
    """The sweeps of one run of the registry, from `start` to `stop`. `apply` changes how often they come."""

    def __init__(self, server: RegistryServer, settings: Settings) -> None:
        self._server = server
        self._settings = settings
        self._due: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        self._waiting: set[str] = set()
        self._stopped = threading.Event()
        self._jobs = Jobs(self._post)
        self._sweeps = {sweep.name: sweep for sweep in self._all()}
        self._thread = threading.Thread(target=self._work, name="registry-sweeps", daemon=True)

    def start(self) -> None:
        """Run each once, since nobody knows how long no service ran; then by the clock."""
        self._schedule()
        self._jobs.start()
        self._thread.start()
        for name in self._sweeps:
            self._post(name)

    def apply(self, settings: Settings) -> None:
        """Take new intervals and limits."""
        changed = {name for name in self._sweeps if self._interval(name, settings) != self._interval(name)}
        self._settings = settings
        self._schedule(changed)

    def tell_to_stop(self) -> None:
        """Begin no further batch."""
        self._stopped.set()
        self._due.put(None)

    def stop(self) -> None:
        """Stop after the batch under way."""
        self.tell_to_stop()
        self._jobs.stop()
        if self._thread.is_alive():
            self._thread.join(_STOP_SECONDS)

    def describe(self) -> list[dict[str, Any]]:
        """The sweeps for the status."""
        return [self._describe(job) for job in self._jobs.describe()]

    def reasons(self) -> list[str]:
        """What failed the last time, in sentences."""
        return [
            f"The registry's {sweep.name} sweep failed and is tried again: {sweep.error}"
            for sweep in self._sweeps.values()
            if sweep.error
        ]

    def _all(self) -> tuple[Sweep, ...]:
        store, now = self._server.store, self._server.timeline.now

        def expiry() -> tuple[int, bool]:
            done = store.expire(now())
            return done.count, done.more

        def terminal() -> tuple[int, bool]:
            done = store.archive(now(), int(self._settings.terminal_retention_min * _MS_PER_MINUTE))
            return done.count, done.more

        def retention() -> tuple[int, bool]:
            done = store.delete_old(now(), int(self._settings.retention_days * _MS_PER_DAY))
            return done.count, done.more

        def upkeep() -> tuple[int, bool]:
            store.upkeep(truncate=True)
            return 0, False

        return (
            Sweep("presence", "presence_sweep_s", lambda: (self._server.sweep_presence(), False)),
            Sweep("expiry", "expiry_sweep_s", expiry),
            Sweep("terminal", "terminal_sweep_s", terminal),
            Sweep("retention", "retention_sweep_s", retention),
            Sweep("upkeep", "database_upkeep_s", upkeep),
        )

    def _schedule(self, names: set[str] | None = None) -> None:
        for name in self._sweeps if names is None else names:
            self._jobs.add(name, self._interval(name), functools.partial(self._run, self._sweeps[name]))

    def _interval(self, name: str, settings: Settings | None = None) -> float:
        return float(getattr(settings or self._settings, self._sweeps[name].setting))

    def _post(self, name: str) -> None:
        """One that waits already covers a second one."""
        if name not in self._waiting:
            self._waiting.add(name)
            self._due.put(name)

    def _work(self) -> None:
        while not self._stopped.is_set():
            try:
                name = self._due.get(timeout=RETRY_SECONDS if self._failing() else None)
            except queue.Empty:
                for failing in self._failing():
                    self._post(failing)
                continue
            if name is None:
                return
            self._waiting.discard(name)
            try:
                self._jobs.run(name)
            except Exception as error:  # noqa: BLE001 (counted, told and tried again)
                self._failed(self._sweeps[name], error)

    def _failing(self) -> list[str]:
        return [sweep.name for sweep in self._sweeps.values() if sweep.error]

    def _run(self, sweep: Sweep) -> None:
        started = time.monotonic()
        batches, sweep.last_count = 0, 0
        more = True
        while more and not self._stopped.is_set():
            began = time.monotonic()
            count, more = sweep.batch()
            took = time.monotonic() - began
            sweep.last_count += count
            sweep.counts += count
            batches += 1
            if batches % _BATCHES_PER_CHECKPOINT == 0:
                self._server.store.upkeep()
            if more:
                self._stopped.wait(max(PAUSE_SECONDS, took))
        if batches >= _BATCHES_PER_CHECKPOINT:
            self._server.store.upkeep(truncate=True)
        sweep.last_ms = round((time.monotonic() - started) * 1000, 1)
        sweep.error = None

    def _failed(self, sweep: Sweep, error: Exception) -> None:
        told = sweep.error
        if isinstance(error, AgentBridgeError):
            sweep.error = error.sentence()
        else:
            sweep.error = f"{type(error).__name__}: {' '.join(str(error).split())}."
        if sweep.error != told and not self._stopped.is_set():
            _log.error("a sweep failed", sweep=sweep.name, error=error)

    def _describe(self, job: Mapping[str, Any]) -> dict[str, Any]:
        sweep = self._sweeps[job["name"]]
        known = {key: job[key] for key in ("name", "interval_s", "last_run", "next_run", "runs", "failures")}
        return known | {
            "last_ms": sweep.last_ms,
            "last_count": sweep.last_count,
            "counts": sweep.counts,
            "error": sweep.error,
        }
