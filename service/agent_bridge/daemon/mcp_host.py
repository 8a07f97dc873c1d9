"""The tools' side of the service: the socket that the shims of agent programs connect to, and its thread.

The socket is bound when the service starts. The thread waits there without an event loop; with the first shim
it loads the tools, and with the first message the MCP SDK. What ends its loop is told and tried again. The
rest of the service never waits for it.
"""

from __future__ import annotations

import contextlib
import os
import select
import socket
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agent_bridge import files, paths
from agent_bridge.daemon.jobs import utc
from agent_bridge.errors import AgentBridgeError
from agent_bridge.log import get_logger
from agent_bridge.mcp import catalogue

if TYPE_CHECKING:
    from agent_bridge.config import Settings
    from agent_bridge.daemon.mcp_face import McpFace
    from agent_bridge.daemon.mcp_loop import McpLoop
    from agent_bridge.daemon.mcp_parts import McpParts
    from agent_bridge.daemon.registry_host import RegistryHost

STOP_SECONDS = 5.0
"""What calls under way get to end well."""
REST_SECONDS = 5.0
"""Until a loop that failed is begun anew."""
SOCKET_SECONDS = 10.0
"""Between two looks whether the socket's file is still there; a call waits longer than that for a service."""
BACKLOG = 128
"""Shims that may wait while the tools are loaded."""

_log = get_logger("mcp")


class McpHost:
    """The thread of the tools, from `start` to `stop`; `describe` is its part of the status document."""

    def __init__(self, settings: Settings, registry: RegistryHost) -> None:
        self._settings = settings
        self._registry = registry
        self._path: Path | None = None
        self._listener: socket.socket | None = None
        self._inode: tuple[int, int] | None = None
        self._wake, self._waker = socket.socketpair()
        self._waker.settimeout(0)
        self._thread: threading.Thread | None = None
        self._stopping = threading.Event()
        self._state = "idle"
        self._troubles: list[str] = []
        self._trouble: str | None = None
        self._failure: str | None = None
        self._failures = 0
        self._parts: McpParts | None = None
        self._loop: McpLoop | None = None

    def start(self) -> None:
        """Write down what the tools are, and listen; under the service's lock, since a socket that is there
        is then a dead one's. What can't be done is told by `describe`; nothing is raised."""
        try:
            from agent_bridge.daemon.mcp_parts import McpParts

            self._parts = McpParts(catalogue.shipped(), self._settings, self._registry)
            self._write_catalogue()
            self._listen()
        except (AgentBridgeError, OSError, ValueError) as error:
            self._state = "failed"
            self._troubles.append(_told(error))
            _log.error("the tools can't be served", error=error)
            return
        self._thread = threading.Thread(target=self._live, name="mcp", daemon=True)
        self._thread.start()

    @property
    def parts(self) -> McpParts | None:
        """What answers clients, for the other way in; None where the service can't serve the tools."""
        return None if self._stopping.is_set() else self._parts

    def face(self) -> McpFace:
        """The tools for a run of the registry, to be mounted there."""
        from agent_bridge.daemon.mcp_face import McpFace

        return McpFace(lambda: self.parts)

    def apply(self, settings: Settings) -> None:
        """Take new settings: the next calls go by them."""
        self._settings = settings
        if self._parts is not None:
            self._parts.apply(settings)

    def check_socket(self) -> None:
        """See to it that shims find the socket: its file may have been removed. From any thread; done by
        that of the tools soon after."""
        if (loop := self._loop) is not None:
            loop.look()
        elif not self._stopping.is_set():
            self._nudge()

    def stop(self) -> None:
        """End it: calls under way are answered, what was asked to be remembered is written."""
        if self._stopping.is_set():
            return
        self._stopping.set()
        self._withdraw()
        self._nudge()
        if (loop := self._loop) is not None:
            loop.stop()
        if self._thread is not None:
            self._thread.join(STOP_SECONDS)
            if self._thread.is_alive():
                _log.error("the tools did not end in time", seconds=STOP_SECONDS)
                return
            self._withdraw()  # one that was bound anew just now
        if self._parts is not None:
            self._parts.close()
        for used in (self._listener, self._wake, self._waker):
            if used is not None:
                used.close()

    def describe(self) -> dict[str, Any]:
        """The tools for the status. From any thread; waits for nothing."""
        reasons = [*self._troubles, *(one for one in (self._trouble, self._failure) if one)]
        brain = None if self._parts is None else self._parts.made()
        clients = [] if brain is None else brain.sessions.describe()
        return {
            "state": "degraded" if self._state == "ok" and reasons else self._state,
            "socket": None if self._path is None else str(self._path),
            "reasons": reasons,
            "failures": self._failures,
            "clients": [client | {"since": utc(client["since"])} for client in clients],
            "calls": 0 if brain is None else brain.counts.calls,
            "errors": 0 if brain is None else brain.counts.errors,
            "last_error": None if brain is None else brain.counts.last_error,
        }

    def _write_catalogue(self) -> None:
        """What is shipped is what we serve; a state directory that can't be written to is told only."""
        place, text = paths.mcp_catalogue(), catalogue.as_file(catalogue.shipped())
        try:
            if not place.is_file() or place.read_bytes() != text:
                files.write_own(place, text, sync=False)
        except (AgentBridgeError, OSError) as error:
            self._troubles.append(_told(error))
            _log.error("the tools can't be written down for the shims", error=error)

    def _listen(self) -> None:
        path = paths.mcp_socket()
        paths.ensure_private_dir(path.parent)
        path.unlink(missing_ok=True)
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            if sys.platform == "linux":
                os.fchmod(listener.fileno(), 0o600)
            listener.bind(str(path))
            path.chmod(0o600)
            listener.listen(BACKLOG)
        except BaseException:
            listener.close()
            raise
        listener.settimeout(0)
        found = path.lstat()
        self._path, self._listener, self._inode = path, listener, (found.st_dev, found.st_ino)

    def _renewed(self) -> socket.socket | None:
        """The listener that took the place of one whose file is gone; None where it is there. What somebody
        else has put there stays, and is told."""
        old = self._listener
        if self._path is None or old is None or self._stopping.is_set():
            return None
        try:
            found = self._path.lstat()
        except FileNotFoundError:
            pass
        except OSError as error:
            self._trouble = _told(error)
            return None
        else:
            is_ours = (found.st_dev, found.st_ino) == self._inode
            self._trouble = (
                None if is_ours else f"Something else lies where the tools' socket was: {self._path}."
            )
            return None
        try:
            self._listen()
        except (AgentBridgeError, OSError) as error:
            self._trouble = _told(error)
            return None
        old.close()
        self._trouble = None
        _log.warning("the tools' socket was gone; there is a new one", path=str(self._path))
        return self._listener

    def _withdraw(self) -> None:
        """Remove the socket's file, if it is still the one that was bound."""
        if self._path is None:
            return
        try:
            found = self._path.lstat()
            if (found.st_dev, found.st_ino) == self._inode:
                self._path.unlink(missing_ok=True)
        except FileNotFoundError:
            return
        except OSError as error:  # the rest of the service is to be stopped all the same
            _log.warning("the tools' socket can't be removed", path=str(self._path), reason=str(error))

    def _live(self) -> None:
        while not self._stopping.is_set():
            if self._is_called():
                self._serve()
                if not self._stopping.is_set():
                    self._stopping.wait(REST_SECONDS)

    def _serve(self) -> None:
        """One run of the loop, to its end; a failure is told until the next one works."""
        failure: BaseException | None = None
        try:
            from agent_bridge.daemon.mcp_loop import McpLoop

            if self._listener is None or self._parts is None:
                return
            self._loop = McpLoop(self._listener, self._parts, self._renewed)
            self._loop.run(self._has_started)
        except (Exception, SystemExit) as error:  # noqa: BLE001 (nothing of it may reach the projections)
            failure = error
        self._loop = None
        if failure is not None:
            self._failures += 1
            self._state = "failed"
            self._failure = _told(failure)
            _log.error("the tools failed", exc_info=failure)

    def _has_started(self) -> None:
        if self._stopping.is_set() and self._loop is not None:
            self._loop.stop()  # `stop` may have come before there was a loop to tell
            return
        self._failure = None
        self._state = "ok"

    def _is_called(self) -> bool:
        """Wait for a shim or a nudge; whether it is a shim."""
        if self._listener is None:
            return False
        waiting = select.poll()
        waiting.register(self._listener, select.POLLIN)
        waiting.register(self._wake, select.POLLIN)
        ready = {descriptor for descriptor, _ in waiting.poll()}
        if self._wake.fileno() in ready:
            self._wake.recv(64)
            self._renewed()
            return False
        return bool(ready)

    def _nudge(self) -> None:
        with contextlib.suppress(BlockingIOError):
            self._waker.send(b"!")


def _told(error: BaseException) -> str:
    if isinstance(error, AgentBridgeError):
        return error.sentence()
    return f"The tools can't be served: {type(error).__name__}: {' '.join(str(error).split())}."
