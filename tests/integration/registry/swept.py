"""The registry as the service runs it, with its sweeps, by a clock that the test sets."""

from __future__ import annotations

from pathlib import Path
from types import TracebackType
from typing import Any

from agent_bridge.channel.storage.place import Place
from agent_bridge.daemon.registry_sweeps import Sweeps
from agent_bridge.registry.server import RegistryServer
from integration.channel.records import Clock
from integration.registry.running import PATIENCE, Running

NEVER = 86_400
SWEEPS = ("presence", "expiry", "terminal", "retention", "upkeep")


class Swept(Running):
    """A registry with its sweeps, each of which runs once at the start and whenever `sweep` says so."""

    def __init__(self, directory: Path, clock: Clock | None = None, **settings: Any) -> None:  # noqa: ANN401
        rarely = {f"{name}_sweep_s": NEVER for name in SWEEPS[:-1]} | {"database_upkeep_s": NEVER}
        super().__init__(directory, **(rarely | settings))
        self.clock = clock or Clock()
        self.server = RegistryServer(
            self._listener,
            self.token,
            self.settings,
            timeline=self.clock.timeline(),
            place=Place.file(self.database),
        )
        self.hub = self.server.hub
        self.sweeps = Sweeps(self.server, self.settings)

    def __enter__(self) -> Swept:
        super().__enter__()
        assert self.server._loop is not None
        self._loop = self.server._loop
        self.sweeps.start()
        self.wait_for(lambda: self._rounds() > 0)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.http.close()
        self.sweeps.stop()
        self.server.stop()
        self._thread.join(PATIENCE)
        self._listener.close()
        assert not self._thread.is_alive()

    def sweep(self, *names: str) -> None:
        """Have these sweeps (or all) run once, on their own thread, to their end."""
        before = self._rounds()
        for name in (*(names or SWEEPS[:-1]), SWEEPS[-1]):
            self.sweeps._post(name)
        self.wait_for(lambda: self._rounds() > before)
        assert self.sweeps.reasons() == []

    def _rounds(self) -> int:
        """How often the last of them began: those before it have ended by then."""
        runs: int = self.sweeps.describe()[-1]["runs"]
        return runs

    def _run(self) -> None:
        try:
            self.server.run(lambda: self._started.set_result(None))
        except BaseException as error:
            if self._started.done():
                raise
            self._started.set_exception(error)
