"""HTTP and WebSocket as thin as they can be, so that the load costs little beside what is measured."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Callable
from typing import cast

TEXT, CLOSE, PING, PONG = 0x1, 0x8, 0x9, 0xA


class Http(asyncio.Protocol):
    """One connection, one request at a time."""

    def __init__(self, head: bytes) -> None:
        self._head = head
        self._buffer = b""
        self._answer: asyncio.Future[tuple[int, bytes]] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Connected."""
        self.transport = cast("asyncio.Transport", transport)

    def connection_lost(self, exc: Exception | None) -> None:
        """Gone; a request under way fails."""
        if self._answer is not None and not self._answer.done():
            self._answer.set_exception(ConnectionError(str(exc)))

    def ask(self, method: str, path: str, body: bytes = b"") -> asyncio.Future[tuple[int, bytes]]:
        """Send a request; its status and body come later."""
        self._answer = asyncio.get_running_loop().create_future()
        line = f"{method} {path} HTTP/1.1\r\nContent-Length: {len(body)}\r\n".encode()
        self.transport.write(line + self._head + b"\r\n" + body)
        return self._answer

    def data_received(self, data: bytes) -> None:
        """A part of the answer."""
        self._buffer += data
        end = self._buffer.find(b"\r\n\r\n")
        if end < 0:
            return
        head = self._buffer[:end].lower()
        begun = head.index(b"content-length:") + 15
        length = int(head[begun:].split(b"\r\n", 1)[0])
        if len(self._buffer) >= end + 4 + length:
            body, self._buffer = self._buffer[end + 4 : end + 4 + length], b""
            assert self._answer is not None
            self._answer.set_result((int(head[9:12]), body))


class Socket(asyncio.Protocol):
    """One WebSocket client; `on_text` gets each text frame. Its mask is zero: nothing has to be masked."""

    def __init__(self, head: bytes, path: str, on_text: Callable[[bytes], None]) -> None:
        self._head = head
        self._path = path
        self._buffer = bytearray()
        self._upgraded = False
        self._on_text = on_text
        self.open: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Connected: ask for the upgrade."""
        self.transport = cast("asyncio.Transport", transport)
        self.transport.write(
            f"GET {self._path} HTTP/1.1\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
            "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n".encode()
            + self._head
            + b"\r\n"
        )

    def connection_lost(self, exc: Exception | None) -> None:
        """Gone."""
        if not self.open.done():
            self.open.set_exception(ConnectionError(str(exc)))

    def send(self, payload: bytes, kind: int = TEXT) -> None:
        """Send one frame."""
        self.transport.write(self.frame(payload, kind))

    @staticmethod
    def frame(payload: bytes, kind: int = TEXT) -> bytes:
        """One whole frame with a mask of zeros."""
        size = len(payload)
        if size < 126:
            head = struct.pack("!BB", 0x80 | kind, 0x80 | size)
        elif size < 65536:
            head = struct.pack("!BBH", 0x80 | kind, 0x80 | 126, size)
        else:
            head = struct.pack("!BBQ", 0x80 | kind, 0x80 | 127, size)
        return head + b"\0\0\0\0" + payload

    def data_received(self, data: bytes) -> None:
        """The answer to the upgrade, then frames."""
        self._buffer += data
        if not self._upgraded:
            end = self._buffer.find(b"\r\n\r\n")
            if end < 0:
                return
            if b" 101 " not in self._buffer[:20]:
                self.open.set_exception(ConnectionError(bytes(self._buffer[:200]).decode("latin-1")))
                return
            del self._buffer[: end + 4]
            self._upgraded = True
            self.open.set_result(None)
        self._frames()

    def _frames(self) -> None:
        buffer, at = self._buffer, 0
        while len(buffer) - at >= 2:
            kind, size, begun = buffer[at] & 0xF, buffer[at + 1] & 0x7F, at + 2
            if size >= 126:
                width = 2 if size == 126 else 8
                if len(buffer) < begun + width:
                    break
                size, begun = int.from_bytes(buffer[begun : begun + width], "big"), begun + width
            if len(buffer) < begun + size:
                break
            at = begun + size
            if kind == TEXT:
                self._on_text(bytes(buffer[begun:at]))
            elif kind == PING:
                self.send(bytes(buffer[begun:at]), PONG)
            elif kind == CLOSE:
                self.transport.close()
        del buffer[:at]
