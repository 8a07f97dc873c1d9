"""The registry as a running server: the hub, the application and uvicorn on one event loop."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import resource
import socket
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any, TypeVar

import uvicorn
import uvloop

from agent_bridge.channel.clock import Timeline
from agent_bridge.channel.errors import StorageError
from agent_bridge.channel.storage.place import Place
from agent_bridge.registry.app import make_app
from agent_bridge.registry.http_protocol import bounded_http
from agent_bridge.registry.hub import Hub
from agent_bridge.registry.security import Access
from agent_bridge.registry.sockets import uvicorn_options

if TYPE_CHECKING:
    from agent_bridge.channel.storage.store import Store
    from agent_bridge.config import Settings
    from agent_bridge.registry.mounted import Mounted
    from agent_bridge.registry.token import TokenFile

DRAIN_SECONDS = 2
"""What requests under way get at the end before they are broken off."""
_ANSWER_SECONDS = 5.0
_OPEN_FILES = 16_384
_SPARE_FILES = 256
"""Open files that connections never use up: projections, the database and Git need some."""
_ALLOCATIONS = 5_000
"""Objects made between two looks for garbage; Python's 700 mean one every few requests."""

T = TypeVar("T")


class RegistryServer:
    """One run of the registry on a listening socket, which stays open: callers between two runs wait.

    `run` is for a thread of its own; everything else may be called from any thread. Clock and database are
    the machine's and the settings' where none are given; `mount` makes what answers `/mcp`.
    """

    def __init__(
        self,
        listener: socket.socket,
        token: TokenFile,
        settings: Settings,
        *,
        timeline: Timeline | None = None,
        place: Place | None = None,
        mount: Callable[[], Mounted] | None = None,
    ) -> None:
        self.listener = listener
        self._settings = settings
        port: int = listener.getsockname()[1]
        self._access = Access(token, port, message_bytes=settings.message_bytes)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._server: _Uvicorn | None = None
        self.timeline = timeline or Timeline()
        self.hub = Hub(place or Place.of(settings.database_url), self.timeline, settings)
        self._mounted = None if mount is None else mount()
        self._app = make_app(self.hub, self._access, settings, self._mounted)

    @property
    def store(self) -> Store:
        """The store, once the hub has started."""
        return self.hub.store

    def run(self, started: Callable[[], None]) -> None:
        """Serve until `stop`; `started` is called on this thread once requests are answered.

        Raises whatever ended it otherwise. The database is closed in any case.
        """
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            self._loop = runner.get_loop()
            runner.run(self._serve(started))

    def stop(self) -> None:
        """Make `run` return: sockets are told, requests under way are answered, the database is closed."""
        server = self._server
        if server is not None:
            self._on_loop(server.told.set)

    def apply(self, settings: Settings) -> None:
        """Take new limits. Connections that are open keep what they have."""
        self._on_loop(lambda: self._take(settings))

    def submit(self, work: Coroutine[Any, Any, T]) -> Future[T]:
        """Have `work` run on the loop, for a loop of another thread. It is cancelled when `run` ends; where
        the loop is about to end it may never be answered. Raises StorageError after the end."""
        if self._loop is not None:
            with contextlib.suppress(RuntimeError):  # it was closed just now
                return asyncio.run_coroutine_threadsafe(work, self._loop)
        work.close()
        raise StorageError("The registry has ended")

    def sweep_presence(self) -> int:
        """Have the hub look at who is still there; how many were not. Raises TimeoutError."""
        return self._ask(self.hub.sweep_presence)

    def describe(self) -> dict[str, Any]:
        """What hub and application say of themselves; doesn't touch the disk. Raises TimeoutError."""
        return self._ask(self.hub.describe) | {"refused": self._app.describe()}

    def _on_loop(self, action: Callable[[], object]) -> bool:
        """Have `action` called on the loop; whether there is one."""
        try:
            if self._loop is not None:
                self._loop.call_soon_threadsafe(action)
                return True
        except RuntimeError:
            pass  # it was closed just now
        return False

    def _ask(self, question: Callable[[], T]) -> T:
        """The answer to what may be asked on the loop only."""
        answer: Future[T] = Future()

        def ask() -> None:
            try:
                answer.set_result(question())
            except Exception as error:  # noqa: BLE001 (raised where it was asked)
                answer.set_exception(error)

        if not self._on_loop(ask):
            raise StorageError("The registry has ended")
        return answer.result(_ANSWER_SECONDS)

    def _take(self, settings: Settings) -> None:
        self.hub.apply(settings)
        self._access.message_bytes = settings.message_bytes
        server = self._server
        if server is None:
            return
        for name, value in uvicorn_options(settings).items():
            setattr(server.config, name, value)

    async def _serve(self, started: Callable[[], None]) -> None:
        self._server = _Uvicorn(self._config(), self.hub, self._mounted, started)
        try:
            await self.hub.start()
            _spare_the_collector()
            await self._server.serve(sockets=[self.listener.dup()])
        finally:
            await self.hub.stop()

    def _config(self) -> uvicorn.Config:
        return uvicorn.Config(
            self._app,
            http=bounded_http(_most_connections()),
            lifespan="off",
            log_config=None,
            access_log=False,
            proxy_headers=False,
            server_header=False,
            date_header=False,
            timeout_graceful_shutdown=DRAIN_SECONDS,
            **uvicorn_options(self._settings),
        )


class _Uvicorn(uvicorn.Server):
    """uvicorn that sleeps until it is told to end, rather than look ten times a second."""

    def __init__(
        self, config: uvicorn.Config, hub: Hub, mounted: Mounted | None, started: Callable[[], None]
    ) -> None:
        super().__init__(config)
        self.told = asyncio.Event()
        self._hub = hub
        self._mounted = mounted
        self._tell_started = started

    async def main_loop(self) -> None:
        self._tell_started()
        await self.told.wait()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Nobody new; sockets hear 1001 from the hub, which uvicorn would close with 1012."""
        for server in self.servers:
            server.close()
        if self._mounted is not None:
            await self._mounted.close()
        await self._hub.stop()
        await super().shutdown(sockets)


def _spare_the_collector() -> None:
    """What is loaded stays: going through it again and again would hold messages up."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(_ALLOCATIONS, 10, 10)


def _most_connections() -> int:
    """As many as there are file descriptors, of which the process takes what it may have."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = _OPEN_FILES if hard == resource.RLIM_INFINITY else min(hard, _OPEN_FILES)
    if soft != resource.RLIM_INFINITY and soft < most:
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
        except (OSError, ValueError):
            most = soft  # macOS promises more than it gives
    return max(64, most - _SPARE_FILES)
