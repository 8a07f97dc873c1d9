"""HTTP/1.1 as uvicorn reads it, with bounds on the head of a request and on how many connections there are.

uvicorn waits for ever for the end of a head, and keeps all of it. A caller that sends a byte a minute, or a
header without end, costs nothing here but a timer and a few kilobytes, and is then broken off; nor does it
leave a line in the log, which whoever has no token could fill that way. The bounds on bodies lie in `calls`.
"""

from __future__ import annotations

import asyncio
import logging
from http import HTTPStatus
from typing import Any, ClassVar

from pydantic_core import to_json
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from agent_bridge.registry.crowd import Crowd

HEAD_SECONDS = 10.0
"""What the head of a request may take to come, from its first byte or from the connection on."""
HEAD_BYTES = 64 * 1024
"""Bytes of an incomplete head that are kept; complete ones are judged by `security`."""
UNREAD_SECONDS = 30.0
"""What an answer that nobody reads may wait in our buffers without moving, once it is complete."""
PIPELINED = 32
"""Requests that may wait on one connection for the answers to those before them. uvicorn reads on while it
answers: 200 MB of them within three seconds, from whoever connects."""

_QUIET = logging.getLogger("agent_bridge.http")
_QUIET.setLevel(logging.ERROR)


def bounded_http(most: int) -> type[BoundedHttp]:
    """The class for a server that has at most `most` connections open."""

    class Bounded(BoundedHttp):
        crowd = Crowd(most)

    return Bounded


class BoundedHttp(HttpToolsProtocol):
    """One connection. Give it to `uvicorn.Config(http=…)`."""

    crowd: ClassVar[Crowd | None] = None
    """All connections of the server that wait; None: as many as come."""
    head_seconds = HEAD_SECONDS
    unread_seconds = UNREAD_SECONDS

    def __init__(self, *arguments: Any, **options: Any) -> None:  # noqa: ANN401 - uvicorn's own
        super().__init__(*arguments, **options)
        self.logger = _QUIET
        self._in_head = True
        self._heads = 0
        self._head_bytes = 0
        self._patience: asyncio.TimerHandle | None = None
        self._unread: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override] # as uvicorn has it
        """Somebody has connected, and has to say what for."""
        super().connection_made(transport)
        self._be_patient()
        if self.crowd is not None:
            self.crowd.waits(self)
            if not self.crowd.make_room(self, len(self.connections)):
                self._break_off(503, "crowded", "Too many connections are open.")

    def give_way(self) -> None:
        """Close at once, for somebody else."""
        self.connections.discard(self)
        self.transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        """The connection is gone."""
        if self.crowd is not None:
            self.crowd.leaves(self)
        self._head_is_there()
        if self._unread is not None:
            self._unread.cancel()
            self._unread = None
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Take the next bytes."""
        heads, was_in_head = self._heads, self._in_head
        super().data_received(data)
        if not self._in_head or self.transport.is_closing():
            return
        if was_in_head and heads == self._heads:
            self._head_bytes += len(data)
        if self._head_bytes > HEAD_BYTES:
            self._break_off(431, "headers_too_large", "The headers are too large.")
        elif self._patience is None:
            self._be_patient()

    def on_message_begin(self) -> None:
        """The first byte of a request."""
        self._in_head = True
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        """The head is there; what follows is judged elsewhere."""
        if len(self.pipeline) >= PIPELINED:
            raise _TooManyError  # the parser stops there, and what came is answered with 400
        self._in_head = False
        self._heads += 1
        self._head_is_there()
        if self.crowd is not None:
            self.crowd.leaves(self)
        super().on_headers_complete()

    def on_response_complete(self) -> None:
        """An answer has been written, though perhaps not been read."""
        super().on_response_complete()
        if self.crowd is not None and self.cycle.response_complete and not self.transport.is_closing():
            self.crowd.waits(self)
        self._watch_reader()

    def send_400_response(self, msg: str) -> None:
        """What came isn't HTTP."""
        self._break_off(400, "invalid", msg)

    def _be_patient(self) -> None:
        self._patience = self.loop.call_later(self.head_seconds, self._lose_patience)

    def _head_is_there(self) -> None:
        self._head_bytes = 0
        if self._patience is not None:
            self._patience.cancel()
            self._patience = None

    def _lose_patience(self) -> None:
        self._patience = None
        # In the middle of a request there may be an answer of another one on its way (pipelining).
        if self._in_head and (self.cycle is None or self.cycle.response_complete):
            self._break_off(408, "too_slow", f"The head of the request took over {self.head_seconds:g} s.")

    def _watch_reader(self) -> None:
        left = self.transport.get_write_buffer_size()
        if left and self._unread is None:
            self._unread = self.loop.call_later(self.unread_seconds, self._check_reader, left)

    def _check_reader(self, before: int) -> None:
        self._unread = None
        if self.transport.get_write_buffer_size() >= before:
            self.transport.abort()
        else:
            self._watch_reader()

    def _break_off(self, status: int, code: str, sentence: str) -> None:
        if self.transport.is_closing():
            return
        body = to_json({"error": sentence, "code": code})
        self.transport.write(
            b"HTTP/1.1 %d %b\r\ncontent-type: application/json\r\ncontent-length: %d\r\n"
            b"connection: close\r\n\r\n%b" % (status, HTTPStatus(status).phrase.encode(), len(body), body)
        )
        self.transport.close()


class _TooManyError(Exception):
    """More requests have come on one connection than may wait there."""
