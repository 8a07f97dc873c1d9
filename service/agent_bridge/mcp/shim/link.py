"""The connection to the service: made, lost and made again, and the service started where there is none."""

from __future__ import annotations

import os
import sys

from agent_bridge.mcp.shim import catalogue, places
from agent_bridge.mcp.shim.hello import Origin, RefusedError, answer_to_hello
from agent_bridge.mcp.shim.lines import LineCutter
from agent_bridge.mcp.shim.notes import note

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from socket import socket as Socket  # noqa: N812

    from agent_bridge.mcp.shim.relay import Relay
    from agent_bridge.mcp.shim.starter import Starter

GREETING_S = 10.0
"""How long a service may take until it has answered `initialize`; its first client makes it load much."""
_QUICK_S = (0.01, 0.5)
"""From and to: between two attempts while a call waits or the service starts."""
_SLOW_S = (2.0, 30.0)
"""The same while nothing waits."""
_LASTING_S = 1.0
"""A connection that is lost sooner was of no use: the next one isn't begun as if all had been well."""
_RETURN_S = 5.0
"""A service that was there and is gone is looked for quickly for so long: others write to this session."""
_RESTART_S = 3.0
"""Between the end of a start that failed and the next one."""
_SETTLE_S = 1.0
"""After a start has failed: another one's service may be about to listen."""


class Link:
    """Connects a relay, whose client has said `initialize`, with the service.

    Call `step` when something has happened, and at `wakes_at`.
    """

    def __init__(
        self, relay: Relay, origin: Origin, env: Mapping[str, str], *, starts_service: bool, digest: str
    ) -> None:
        self._relay = relay
        self._origin = origin
        self._env = env
        self._starts_service = starts_service
        self._digest = digest
        self._agent_id = ""
        self._socket: Socket | None = None
        self._cutter = LineCutter()
        self._is_welcome = False
        self._greeted_by = 0.0
        self._next_attempt = 0.0
        self._last_attempt = 0.0
        self._quick, self._slow = _QUICK_S[0], _SLOW_S[0]
        self._opened_at = 0.0
        self._returns_by = 0.0
        self._starter: Starter | None = None
        self._has_answered = False
        self._is_past_beginning = False
        self._next_start = 0.0
        self._gives_up_at: float | None = None
        self._reason = "There is no service yet."
        self._is_refused = False

    @property
    def descriptor(self) -> int | None:
        """What to wait on, None while there is no connection."""
        return None if self._socket is None else self._socket.fileno()

    def wakes_at(self, now: float) -> float | None:
        """When `step` has something to do although nothing happened."""
        moments = [self._relay.next_deadline(), self._gives_up_at]
        if self._socket is None:
            moments.append(self._due())
        elif not self._relay.is_open:
            moments.append(self._greeted_by)
        if self._is_starting:
            moments.append(now + _QUICK_S[1])
        return min((moment for moment in moments if moment is not None), default=None)

    def step(self, now: float) -> None:
        """Do what is due: connect, start a service, give up on one, answer what has waited long enough."""
        self._look_at_start(now)
        if self._socket is None and now >= self._due():
            self._connect(now)
        elif self._socket is not None and not self._relay.is_open and now >= self._greeted_by:
            self._lose(now, "The service took the connection, but didn't answer.")
        if self._gives_up_at is not None and now >= self._gives_up_at:
            self._gives_up_at = None
            self._relay.give_up(None, self._explained())
        self._relay.give_up(now, self._explained())

    def read(self, now: float) -> None:
        """Take what the service has sent; for when the descriptor is readable."""
        descriptor = self.descriptor
        if descriptor is None:
            return
        try:
            data = os.read(descriptor, 65536)
        except BlockingIOError:
            return
        except OSError as error:
            self._lose(now, f"The connection to the service broke ({error.strerror}).")
            return
        if not data:
            self._lose(now, "The service closed the connection.")
            return
        for line in self._cutter.feed(data):
            try:
                self._take(line, now)
            except RefusedError as refusal:
                self._refused(now, str(refusal))
                return
            except ValueError as error:
                note(f"the service sent {error}")
                self._lose(now, f"The service sent {error}.")
                return

    def flush(self, now: float) -> None:
        """Send what waits to be sent, as far as it goes."""
        descriptor = self.descriptor
        if descriptor is None or not self._relay.to_service.size:
            return
        try:
            self._relay.to_service.flush(lambda piece: os.write(descriptor, piece))
        except OSError as error:
            # What the service said last (a refusal) is still to be read.
            self.read(now)
            if self._socket is not None:
                self._lose(now, f"The connection to the service broke ({error.strerror}).")

    def abandon(self) -> None:
        """Answer what waits for a service: there will be none any more."""
        self._relay.give_up(None, f"The session ended before this was carried out. {self._explained()}")

    def close(self) -> None:
        """The shim ends."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None
        if self._starter is not None:
            self._starter.forget()

    @property
    def _is_starting(self) -> bool:
        return self._starter is not None and self._starter.is_running

    def _due(self) -> float:
        """When the next attempt to connect is due."""
        if self._relay.is_waiting:
            return min(self._next_attempt, self._last_attempt + self._quick)
        return self._next_attempt

    def _connect(self, now: float) -> None:
        import socket  # Late: what `initialize` and `tools/list` wait for is kept small.

        self._last_attempt = now
        connection = socket.socket(socket.AF_UNIX)
        connection.settimeout(0)
        try:
            connection.connect(places.socket_path(self._env))
        except (FileNotFoundError, ConnectionRefusedError):
            connection.close()
            self._start(now)
            self._failed(now, "The service isn't running.")
            return
        except OSError as error:
            connection.close()
            self._failed(now, f"The service can't be reached: {error.strerror or error}.")
            if isinstance(error, NotADirectoryError | PermissionError):
                self._relay.give_up(None, self._explained())  # None will come to be there.
            return
        except ValueError as error:
            connection.close()
            self._failed(now, str(error))
            self._relay.give_up(None, self._explained())  # The environment stays what it is.
            return
        if not _is_ours(connection):
            connection.close()
            self._failed(now, "The service's socket is another user's, so it is told nothing.")
            return
        self._is_past_beginning = True
        self._socket = connection
        self._cutter = LineCutter()
        self._is_welcome = False
        self._greeted_by = now + GREETING_S
        client = self._relay.client or ("", "")
        self._relay.to_service.put(
            self._origin.hello(client, self._relay.agent_id or self._agent_id, self._relay.replayed())
        )

    def _take(self, line: bytes | None, now: float) -> None:
        if self._is_welcome:
            was_open = self._relay.is_open
            self._relay.from_service(line)
            if self._relay.is_open and not was_open:
                self._opened_at = now
                self._gives_up_at = None
            return
        welcome = answer_to_hello(line)
        self._is_welcome = self._has_answered = True
        self._agent_id = welcome.agent_id
        if welcome.digest != self._digest:
            found = catalogue.load_own(self._env)
            self._digest = found.digest
            self._relay.serve(found)
        self._relay.open()

    def _lose(self, now: float, reason: str) -> None:
        """The connection is of no use any more."""
        if self._relay.is_open and now >= self._opened_at + _LASTING_S:
            self._quick, self._slow = _QUICK_S[0], _SLOW_S[0]
            self._returns_by = now + _RETURN_S
        if self._socket is not None:
            self._socket.close()
            self._socket = None
        self._relay.close(now)
        self._failed(now, reason)

    def _refused(self, now: float, reason: str) -> None:
        self._lose(now, f"The service refused the connection: {reason}")
        self._is_refused = True
        self._relay.give_up(None, self._explained())

    def _failed(self, now: float, reason: str) -> None:
        """An attempt failed: the next one is later."""
        self._reason = reason
        self._is_refused = False
        if self._relay.is_waiting or self._is_starting or now < self._returns_by:
            self._next_attempt = now + self._quick
            self._quick = min(2 * self._quick, _QUICK_S[1])
        else:
            self._next_attempt = now + self._slow
            self._slow = min(2 * self._slow, _SLOW_S[1])

    def _start(self, now: float) -> None:
        """Start the service, at the beginning and when a call waits; else it may be stopped on purpose."""
        if not self._starts_service or self._is_starting or now < self._next_start:
            return
        if self._is_past_beginning and not self._relay.is_waiting:
            return
        if self._starter is None:
            from agent_bridge.mcp.shim.starter import Starter  # Late: its imports take as long as all others.

            self._starter = Starter()
        self._is_past_beginning = True
        self._next_start = now + _RESTART_S
        self._has_answered = False
        self._starter.start()

    def _look_at_start(self, now: float) -> None:
        if self._starter is None or not self._starter.has_ended():
            return
        self._next_start = now + _RESTART_S
        if self._starter.failed and self._has_answered:
            # It did start, and was ended before all of it was ready: that is what the start waited for.
            self._starter.failed = ""
            self._next_start = now
        elif self._starter.failed:
            note(f"the service couldn't be started: {self._starter.failed}")
            self._gives_up_at = now + _SETTLE_S
        self._next_attempt = now

    def _explained(self) -> str:
        """Why a call can't be carried out, and what to do. A service that refuses says both, and runs."""
        if self._is_refused:
            return self._reason
        failed = self._starter.failed if self._starter is not None else ""
        tried = f" It couldn't be started: {failed}." if failed else ""
        return f"{self._reason}{tried} Run `agent-bridge up`; `agent-bridge status` tells what is wrong."


def _is_ours(connection: Socket) -> bool:
    """Whether this user or root listens there: it could be anybody where others may write."""
    import socket

    if sys.platform != "linux":
        return True
    pid_uid_gid = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
    return int.from_bytes(pid_uid_gid[4:8], sys.byteorder) in (os.getuid(), 0)
