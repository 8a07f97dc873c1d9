"""The registry inside the service: it listens from the start on and is loaded when somebody calls.

Its thread waits at the listening socket, which costs next to nothing; with the first caller, or once the
service is ready if messages are kept already, it imports the registry and becomes its event loop. What ends
that loop is told and tried again after a while. The rest of the service never waits for it.
"""

from __future__ import annotations

import contextlib
import select
import socket
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from agent_bridge import paths
from agent_bridge.channel.storage.place import Place
from agent_bridge.daemon.registry_figures import Figures, FiguresKeeper
from agent_bridge.daemon.registry_sweeps import Sweeps
from agent_bridge.errors import AgentBridgeError
from agent_bridge.log import get_logger
from agent_bridge.registry import listening
from agent_bridge.registry.token import TokenFile

if TYPE_CHECKING:
    from agent_bridge.config import Settings
    from agent_bridge.registry.mounted import Mounted
    from agent_bridge.registry.server import RegistryServer

STOP_SECONDS = 5.0
"""What sockets, requests and the database get to end well."""
FIRST_REST, LONGEST_REST = 1.0, 15.0
"""Seconds until a registry that failed is tried again: from the first, doubled each time, to the longest."""
ADDRESS_SECONDS = 60.0
"""Seconds between two looks whether the registry's address still stands where clients look for it."""

_log = get_logger("registry")


class RegistryHost:
    """The registry's thread, from `start` to `stop`; `describe` is its part of the status document."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._loaded_with = settings
        self._wanted_port = settings.registry_port
        self._token = TokenFile(paths.registry_token())
        self._listener: socket.socket | None = None
        self._url: str | None = None
        self._wake, self._waker = socket.socketpair()
        self._waker.settimeout(0)
        self._thread: threading.Thread | None = None
        self._stopping = threading.Event()
        self._wanted = threading.Event()
        self._state = "idle"
        self._trouble: str | None = None
        self._failure: str | None = None
        self._failures = 0
        self._server: RegistryServer | None = None
        self._sweeps: Sweeps | None = None
        self._figures = FiguresKeeper()
        self.mount: Callable[[], Mounted] | None = None
        """Makes what answers `/mcp` in each run of the registry; set before `start`."""

    def start(self) -> None:
        """Listen, and write down where. What can't be done is told by `describe`; nothing is raised."""
        self._wanted_port = self._settings.registry_port
        try:
            listener = listening.listen(self._wanted_port)
        except AgentBridgeError as error:
            self._state = "failed"
            self._trouble = error.sentence()
            _log.error("the registry can't listen", error=error)
            return
        self._listener, self._url = listener, listening.url_of(listener)
        self._state = "idle"
        for notice in self._notices():
            _log.warning(notice)
        self.check_address()
        self._thread = threading.Thread(target=self._live, args=(listener,), name="registry", daemon=True)
        self._thread.start()

    def check_address(self) -> None:
        """See to it that clients find address and token: their files may have been removed."""
        if self._url is None or self._stopping.is_set():
            return
        self._token.problem()  # makes the token where there is none; `describe` tells what is wrong with it
        try:
            listening.publish(paths.registry_address(), self._url)
        except AgentBridgeError as error:
            self._trouble = error.sentence()
            _log.error("the registry's address can't be written down", error=error)
        else:
            self._trouble = None

    def service_is_ready(self) -> None:
        """Load the registry now if there are messages already: some may be due."""
        try:
            wanted = Place.of(self._settings.database_url).exists()
        except AgentBridgeError:
            wanted = True  # loading it is what tells why
        if wanted:
            self._wanted.set()
            self._nudge()

    def want(self) -> None:
        """Load the registry for a user inside this process, if it isn't yet. From any thread."""
        if not self._wanted.is_set():
            self._wanted.set()
            self._nudge()

    def running(self) -> RegistryServer | None:
        """The registry if it answers now. From any thread."""
        server = self._server
        is_there = self._state == "ok" and not self._stopping.is_set()
        return server if is_there and server is not None and not server.hub.is_stopping else None

    @property
    def is_over(self) -> bool:
        """Whether it was stopped, or has no port to listen on: it won't answer any more."""
        return self._stopping.is_set() or self._thread is None

    def why_not(self) -> str | None:
        """Why it can't answer for now, as a sentence; None while it is loaded, or works."""
        if self._stopping.is_set():
            return "The service is about to end."
        if self._state == "failed":
            return self._failure or self._trouble or "The registry is not running."
        return None

    @property
    def settings(self) -> Settings:
        """The settings as they are now."""
        return self._settings

    @property
    def url(self) -> str | None:
        """Where it listens; None where it can't."""
        return self._url

    def apply(self, settings: Settings) -> None:
        """Take new settings. Another port or database needs a restart of the service; `describe` says so."""
        self._settings = settings
        server, sweeps = self._server, self._sweeps
        if self._listener is None:
            self.start()
        if server is not None:
            server.apply(settings)
        if sweeps is not None:
            sweeps.apply(settings)
        if self._state == "failed":
            self._nudge()

    def stop(self) -> None:
        """End it: nobody finds it any more, sockets are told, requests answered, the database is closed."""
        if self._stopping.is_set():
            return
        self._stopping.set()
        listening.withdraw(paths.registry_address())
        self._nudge()
        server, sweeps = self._server, self._sweeps
        if sweeps is not None:
            sweeps.tell_to_stop()
        if server is not None:
            server.stop()
        if self._thread is not None:
            self._thread.join(STOP_SECONDS)
            if self._thread.is_alive():
                _log.error("the registry did not end in time", seconds=STOP_SECONDS)
                return
        for used in (self._listener, self._wake, self._waker):
            if used is not None:
                used.close()

    def describe(self) -> dict[str, Any]:
        """The registry for the status. From any thread; waits for nothing but a glance at the database."""
        server, sweeps, state = self._server, self._sweeps, self._state
        figures = self._figures.of(server) if server is not None and state == "ok" else Figures()
        reasons = [*self._reasons(), *figures.reasons, *(sweeps.reasons() if sweeps is not None else ())]
        return {
            "state": "degraded" if state == "ok" and reasons else state,
            "url": self._url,
            "token_file": str(self._token.path),
            "reasons": reasons,
            "notices": [*self._notices(), *figures.notices],
            "failures": self._failures,
            "agents": figures.hub.get("agents", {}),
            "sockets": figures.hub.get("sockets", {}),
            "refused": figures.hub.get("refused", {}),
            "store": figures.store,
            "sweeps": sweeps.describe() if sweeps is not None else [],
        }

    def _reasons(self) -> list[str]:
        problem = self._token.problem() if self._url is not None else None
        return [told for told in (self._trouble, self._failure, problem) if told]

    def _notices(self) -> list[str]:
        found = []
        port = int(self._url.rpartition(":")[2]) if self._url is not None else self._wanted_port
        if port != self._wanted_port:
            found.append(
                f"Port {self._wanted_port} was in use, so the registry listens on {port}. The commands of "
                "agent-bridge find it there; what was told the other port doesn't."
            )
        if self._settings.registry_port != self._wanted_port:
            found.append("The new registry_port holds after a restart of the service.")
        if self._server is not None and self._settings.database_url != self._loaded_with.database_url:
            found.append("The new database_url holds after a restart of the service.")
        return found

    def _live(self, listener: socket.socket) -> None:
        rest = FIRST_REST
        self._await_somebody(listener)
        while not self._stopping.is_set():
            begun = time.monotonic()
            self._serve(listener)
            if time.monotonic() - begun > LONGEST_REST:
                rest = FIRST_REST
            self._turn_away(listener, time.monotonic() + rest)
            rest = min(rest * 2, LONGEST_REST)

    def _await_somebody(self, listener: socket.socket) -> None:
        while not (self._stopping.is_set() or self._wanted.is_set()):
            if self._is_called(listener, None):
                return

    def _serve(self, listener: socket.socket) -> None:
        """One run of the registry, to its end; a failure is told by `describe` until the next one works."""
        self._state = "loading"
        self._loaded_with = self._settings
        failure: BaseException | None = None
        try:
            from agent_bridge.registry.server import RegistryServer

            server = RegistryServer(listener, self._token, self._settings, mount=self.mount)
            self._server = server
            server.run(lambda: self._has_started(server))
        except (Exception, SystemExit) as error:  # noqa: BLE001 (nothing of it may reach the projections)
            failure = error
        if self._sweeps is not None:
            self._sweeps.stop()
        self._server = self._sweeps = None
        if failure is not None or not self._stopping.is_set():
            self._fail(failure or AgentBridgeError("The registry's event loop ended."))

    def _has_started(self, server: RegistryServer) -> None:
        if self._stopping.is_set():
            server.stop()  # `stop` may have come before there was a loop to tell
            return
        self._sweeps = Sweeps(server, self._settings)
        self._sweeps.start()
        self._failure = None
        self._state = "ok"
        _log.info("the registry answers", url=listening.url_of(server.listener))

    def _fail(self, error: BaseException) -> None:
        self._failures += 1
        if isinstance(error, AgentBridgeError):
            told = error.sentence()
        else:
            told = f"The registry failed: {type(error).__name__}: {' '.join(str(error).split())}."
        if told != self._failure:  # what fails again and again is logged once
            _log.error("the registry failed", exc_info=error)
        self._failure = told
        self._state = "failed"

    def _turn_away(self, listener: socket.socket, until: float) -> None:
        """While a registry that failed rests, whoever calls is told so. A nudge ends the rest."""
        while not self._stopping.is_set() and (left := until - time.monotonic()) > 0:
            if not self._is_called(listener, left):
                return
            listening.turn_away(listener, self._failure or "The registry is not running.")

    def _is_called(self, listener: socket.socket, seconds: float | None) -> bool:
        """Wait for a caller or a nudge, at most so long; whether it is a caller."""
        waiting = select.poll()
        waiting.register(listener, select.POLLIN)
        waiting.register(self._wake, select.POLLIN)
        ready = {descriptor for descriptor, _ in waiting.poll(None if seconds is None else seconds * 1000)}
        if self._wake.fileno() in ready:
            self._wake.recv(64)
            return False
        return bool(ready)

    def _nudge(self) -> None:
        with contextlib.suppress(BlockingIOError):  # nobody has heard the last ones yet
            self._waker.send(b"!")
