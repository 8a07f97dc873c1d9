"""The upgrade of a connection to a WebSocket, as an ASGI application sees it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, MutableMapping
from http import HTTPStatus
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from websockets.datastructures import Headers
from websockets.http11 import Response

if TYPE_CHECKING:
    from websockets.http11 import Request
    from websockets.server import ServerProtocol


class Handshake:
    """The ASGI conversation of one upgrade."""

    def __init__(self, wire: ServerProtocol, response: Response, write_out: Callable[[], None]) -> None:
        self._wire = wire
        self._response = response
        self._write_out = write_out
        self._asked = False
        self._answered = False
        self._gone = asyncio.Event()
        self._refusal: tuple[int, list[tuple[bytes, bytes]]] | None = None

    def gone(self) -> None:
        """The peer has left."""
        self._gone.set()

    async def receive(self) -> MutableMapping[str, Any]:
        """`websocket.connect`, and then nothing until the peer has left."""
        if not self._asked:
            self._asked = True
            return {"type": "websocket.connect"}
        await self._gone.wait()
        return {"type": "websocket.disconnect", "code": 1006}

    async def send(self, message: MutableMapping[str, Any]) -> None:
        """Accept or refuse the upgrade; whatever comes after that is left to whoever took over."""
        kind = message["type"]
        if self._answered or self._gone.is_set():
            return
        if kind == "websocket.accept":
            self._answered = True
            self._wire.send_response(self._response)
            self._write_out()
        elif kind == "websocket.close":
            self.refuse(HTTPStatus.FORBIDDEN, [], b"")
        elif kind == "websocket.http.response.start":
            self._refusal = (message["status"], list(message.get("headers", ())))
        elif kind == "websocket.http.response.body" and self._refusal is not None:
            self.refuse(*self._refusal, message.get("body", b""))

    def refuse(self, status: int, headers: list[tuple[bytes, bytes]], body: bytes) -> None:
        """Answer the upgrade as a request that failed, and close."""
        if self._answered:
            return
        self._answered = True
        shown = Headers((name.decode("latin-1"), value.decode("latin-1")) for name, value in headers)
        for name, value in (("Connection", "close"), ("Content-Length", str(len(body)))):
            if name not in shown:
                shown[name] = value
        self._wire.send_response(Response(status, HTTPStatus(status).phrase, shown, body))
        self._write_out()


def scope_of(request: Request, transport: asyncio.Transport, *, root_path: str) -> dict[str, Any]:
    """The ASGI scope of a request to upgrade."""
    raw_path, _, query = request.path.partition("?")
    server, client = (transport.get_extra_info(name) for name in ("sockname", "peername"))
    return {
        "type": "websocket",
        "asgi": {"version": "3.0", "spec_version": "2.4"},
        "http_version": "1.1",
        "scheme": "ws",
        "server": tuple(server[:2]) if isinstance(server, tuple) else None,
        "client": tuple(client[:2]) if isinstance(client, tuple) else None,
        "root_path": root_path,
        "path": root_path + unquote(raw_path),
        "raw_path": raw_path.encode("ascii", "replace"),
        "query_string": query.encode("ascii", "replace"),
        "headers": [
            (name.lower().encode("latin-1"), value.encode("latin-1", "surrogateescape"))
            for name, value in request.headers.raw_items()
        ],
        "subprotocols": [],
        "extensions": {"websocket.http.response": {}},
    }
