"""One WebSocket connection under uvicorn: from the upgrade to the last byte.

The upgrade goes through the application like any request, so that it is checked like one. Once accepted, the
endpoint takes the connection over: frames come as calls, without a queue or a task for each socket, and
frames go out in large pieces, the same bytes for every socket. What a peer doesn't take is never waited for.
"""

from __future__ import annotations

import asyncio
import logging
import time
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Protocol, cast

from websockets.frames import Frame, Opcode
from websockets.http11 import Request
from websockets.protocol import SEND_EOF, State
from websockets.server import ServerProtocol

from agent_bridge.registry.outbox import Outbox
from agent_bridge.registry.upgrade import Handshake, scope_of

if TYPE_CHECKING:
    from uvicorn.config import Config
    from uvicorn.server import ServerState

EXTENSION = "agent_bridge.connection"
"""Where in the scope's extensions the endpoint finds the connection that it may take over."""
CLOSE_SECONDS = 2.0
"""What a peer gets to answer a close frame."""
REASON_SECONDS = 0.5
"""What a peer that broke the protocol, or was refused, gets to read why: it needs no token to come again."""
HIGH_WATER = 256 * 1024
"""Bytes in the transport from which the peer counts as slow."""
CONTROL_BYTES = 1 << 20
"""Bytes of pongs that a peer may leave unread."""
SLICE_BYTES = 4096
"""How much is taken in before looking at the clock: some hundreds of the smallest frames."""
TURN_SECONDS = 0.002
"""What one connection may take up at a time. Frames of six bytes come in faster than they can be handled, and
the loop reads on as long as there is something: a single peer made all others wait for ten seconds."""

_QUIET = logging.getLogger("agent_bridge.websocket")
_QUIET.setLevel(logging.CRITICAL)


class Handler(Protocol):
    """Who speaks for a connection after it was accepted. Nothing that these raise reaches other sockets."""

    def received(self, payload: bytes) -> None:
        """A whole text message; what is put into the outbox meanwhile goes afterwards."""

    def ignored(self) -> None:
        """A binary message."""

    def drained(self) -> None:
        """The peer takes frames again."""

    def lost(self) -> None:
        """The connection is gone; the last call."""

    def cut_off(self, why: str) -> None:
        """The connection is about to be broken off because of its peer."""


class Connection(asyncio.Protocol):
    """The `ws` class for `uvicorn.Config`, see `sockets.uvicorn_options`."""

    def __init__(
        self,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        self._app = config.loaded_app
        self._root_path = config.root_path
        self._state = app_state
        self._connections = cast("set[Connection]", server_state.connections)
        self._tasks = server_state.tasks
        self._loop = _loop or asyncio.get_running_loop()
        self._wire = ServerProtocol(max_size=config.ws_max_size, logger=_QUIET)
        self._ping_seconds = config.ws_ping_interval
        self._transport: asyncio.Transport
        self._handler: Handler | None = None
        self._outbox: Outbox | None = None
        self._early: list[Frame] = []
        self._parts = bytearray()
        self._is_text = False
        self._timer: asyncio.TimerHandle | None = None
        self._awaits_pong = False
        self._taken = -1
        self._reading = True
        self._is_paused = False
        self._rest = memoryview(b"")
        self._turn: asyncio.Handle | None = None
        self._write_paused = False
        self._unread_control = 0
        self._closing = False
        self._handshake: Handshake | None = None

    # The endpoint's side.

    def take_over(self, handler: Handler, *, frames: int, size: int) -> None:
        """From now on `handler` speaks for this accepted connection, whose outbox has these limits."""
        self._handler = handler
        self._handshake = None
        self._outbox = Outbox(self._transport.write, frames=frames, size=size)
        if self._write_paused:
            self._outbox.pause()
        if self._ping_seconds:
            self._timer = self._loop.call_later(self._ping_seconds, self._beat)

    def begin(self) -> None:
        """Read from the peer, and handle what it has sent already."""
        early, self._early = self._early, []
        for frame in early:
            self._take(frame)
        self.flush()
        self.read_on(reading=True)

    @property
    def is_open(self) -> bool:
        """Whether frames can still be sent."""
        return not self._closing

    @property
    def is_reading(self) -> bool:
        """Whether what the peer sends is read, rather than left on its side."""
        return self._reading

    @property
    def waiting(self) -> int:
        """Frames that the peer hasn't taken."""
        return 0 if self._outbox is None else len(self._outbox)

    @property
    def is_congested(self) -> bool:
        """Whether the peer doesn't take frames at the moment."""
        return self._write_paused

    @property
    def frames_sent(self) -> int:
        """Frames handed to the transport."""
        return 0 if self._outbox is None else self._outbox.taken

    def put(self, frame: bytes) -> None:
        """Send a frame with the next `flush`; a peer that doesn't keep up is broken off."""
        if self._outbox is not None and not self._closing and not self._outbox.put(frame):
            self._break_off("it doesn't read what it gets")

    def flush(self) -> None:
        """Write what waits, as far as the peer takes it."""
        if self._outbox is not None and not self._closing:
            self._outbox.flush()

    def read_on(self, *, reading: bool) -> None:
        """Read from the peer, or let what it sends wait on its side."""
        if reading is self._reading or self._transport.is_closing():
            return
        self._reading = reading
        if self._rest:
            self._ask_for_turn()
        else:
            self._pause(paused=not reading)

    def close(self, code: int, reason: str) -> None:
        """Say goodbye after what was sent before; the peer has `CLOSE_SECONDS` to answer."""
        if self._closing:
            return
        self.flush()
        self._closing = True
        if self._wire.state is State.OPEN:
            self._wire.send_close(code, reason)
        self._write_out()
        # Its answer has to be read, whatever else it still sends before.
        self.read_on(reading=True)
        self._linger(CLOSE_SECONDS)

    def abort(self) -> None:
        """Break the connection off."""
        self._closing = True
        self._transport.abort()

    # uvicorn's side.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        self._transport.set_write_buffer_limits(high=HIGH_WATER)
        self._connections.add(self)

    def shutdown(self) -> None:
        """The server stops."""
        if self._handshake is not None and self._handler is None:
            self.abort()
        self.close(1001, "the registry stops")

    # The transport's side.

    def data_received(self, data: bytes) -> None:
        # While some is left nothing is read, so there is some only where the transport doesn't heed that.
        self._rest = memoryview(b"".join((self._rest, data)) if self._rest else data)
        self._take_turn()

    def eof_received(self) -> bool:
        self._closing = True
        return False

    def pause_writing(self) -> None:
        self._write_paused = True
        if self._outbox is not None:
            self._outbox.pause()

    def resume_writing(self) -> None:
        self._write_paused = False
        self._unread_control = 0
        if self._outbox is None or self._handler is None:
            return
        if not self._closing:
            self._outbox.resume()
        if not self._write_paused:
            self._handler.drained()

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - asyncio's own
        self._closing = True
        self._rest = memoryview(b"")
        self._connections.discard(self)
        if self._timer is not None:
            self._timer.cancel()
        if self._outbox is not None:
            self._outbox.clear()
        if self._handshake is not None:
            self._handshake.gone()
        if self._handler is not None:
            self._handler.lost()

    # Inside.

    def _take_turn(self) -> None:
        """Handle what has come, as long as one peer may take; what is left has to wait for its next turn."""
        self._turn = None
        until = time.monotonic() + TURN_SECONDS
        while self._rest and self._reading:
            piece, self._rest = self._rest[:SLICE_BYTES], self._rest[SLICE_BYTES:]
            self._take_in(bytes(piece))
            if time.monotonic() >= until:
                break
        self.flush()
        self._write_out()
        self._end_if_told()
        if not self._rest:
            # Not before the others had a turn, where this one took all of its own.
            self._pause(paused=not self._reading or time.monotonic() >= until)
        if (self._rest or (self._is_paused and self._reading)) and not self._transport.is_closing():
            self._ask_for_turn()

    def _ask_for_turn(self) -> None:
        """Go on with what is left once the others had theirs; nothing is read meanwhile."""
        self._pause(paused=True)
        if self._turn is None and self._reading:
            self._turn = self._loop.call_soon(self._take_turn)

    def _pause(self, *, paused: bool) -> None:
        if paused is self._is_paused or self._transport.is_closing():
            return
        self._is_paused = paused
        if paused:
            self._transport.pause_reading()
        else:
            self._transport.resume_reading()

    def _take_in(self, data: bytes) -> None:
        self._wire.receive_data(data)
        for event in self._wire.events_received():
            if isinstance(event, Frame):
                self._take(event)
            elif isinstance(event, Request):
                self._upgrade(event)

    def _end_if_told(self) -> None:
        if not self._wire.close_expected() or self._closing:
            return
        self._closing = True
        if self._wire.close_rcvd is not None:
            self._linger(CLOSE_SECONDS)  # the peer said goodbye
        else:
            # It broke the protocol (too large a message: 1009). What it still sends isn't read, but it gets
            # the time to see why before it is broken off.
            self.read_on(reading=False)
            self._linger(REASON_SECONDS)

    def _take(self, frame: Frame) -> None:
        if frame.opcode in (Opcode.TEXT, Opcode.BINARY, Opcode.CONT):
            if self._handler is None:
                # Nothing may be sent before the upgrade is answered; whoever does waits.
                self._early.append(frame)
                self.read_on(reading=False)
            else:
                self._take_data(frame, self._handler)
        elif frame.opcode is Opcode.PONG:
            self._awaits_pong = False

    def _take_data(self, frame: Frame, handler: Handler) -> None:
        if self._closing:
            return
        if frame.opcode is not Opcode.CONT:
            self._is_text = frame.opcode is Opcode.TEXT
            if not frame.fin:
                # Bytes rather than a list: parts may be empty, and as many as a peer likes.
                self._parts = bytearray(frame.data)
                return
            payload = bytes(frame.data)
        else:
            self._parts += frame.data
            if not frame.fin:
                return
            payload, self._parts = bytes(self._parts), bytearray()
        if self._is_text:
            handler.received(payload)
        else:
            handler.ignored()

    def _beat(self) -> None:
        self._timer = self._loop.call_later(self._ping_seconds or 0, self._beat)
        if self._closing or self._outbox is None:
            return
        taken = self._outbox.written - self._transport.get_write_buffer_size()
        is_moving, self._taken = taken != self._taken, taken
        if self._write_paused:
            # A ping would wait behind everything else; that some of it was taken is a sign of life, too.
            if not is_moving:
                self._break_off("it has read nothing for a whole interval")
        elif self._awaits_pong and not self._is_paused:
            self._break_off("it didn't answer a ping")
        else:
            self._awaits_pong = True
            self._wire.send_ping(b"agent-bridge")
            self._write_out()

    def _break_off(self, why: str) -> None:
        if self._handler is not None:
            self._handler.cut_off(why)
        self.abort()

    def _write_out(self) -> None:
        """Write what the WebSocket protocol itself has to say: pongs, closing frames, the end."""
        chunks = self._wire.data_to_send()
        if not chunks or self._transport.is_closing():
            return
        data = b"".join(chunks)
        if data:
            self._transport.write(data)
            if self._write_paused:
                self._unread_control += len(data)
        if chunks[-1] == SEND_EOF:
            if self._wire.close_rcvd is not None:
                self._transport.close()
            elif self._transport.can_write_eof():
                self._transport.write_eof()
        if self._unread_control > CONTROL_BYTES:
            self._break_off("it sends pings and doesn't read the answers")

    def _linger(self, seconds: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._loop.call_later(seconds, self._transport.abort)

    def _upgrade(self, request: Request) -> None:
        response = self._wire.accept(request)
        if response.status_code != HTTPStatus.SWITCHING_PROTOCOLS:
            self._wire.send_response(response)
            self._closing = True
            self._linger(REASON_SECONDS)
            return
        self._handshake = Handshake(self._wire, response, self._write_out)
        task = self._loop.create_task(self._run(request, self._handshake))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _run(self, request: Request, handshake: Handshake) -> None:
        try:
            scope = scope_of(request, self._transport, root_path=self._root_path)
            scope |= {"state": self._state.copy()}
            scope["extensions"][EXTENSION] = self
            await self._app(scope, handshake.receive, handshake.send)
        except Exception:
            logging.getLogger("uvicorn.error").exception("The WebSocket upgrade failed")
        if self._handler is None and not self._transport.is_closing():
            # Refused, failed, or accepted by something else than our endpoint.
            handshake.refuse(HTTPStatus.INTERNAL_SERVER_ERROR, [], b"")
            self._closing = True
            self._linger(REASON_SECONDS)
