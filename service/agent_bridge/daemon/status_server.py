"""The status socket: HTTP/1.1 with JSON on a Unix socket, two read-only questions, nothing else.

    curl -s --unix-socket "$XDG_RUNTIME_DIR/agent-bridge/status.sock" http://localhost/v1/status

`GET /v1/status` answers 200 with the document of `daemon.status`; `GET /v1/health` answers 200 when all is
well and 503 otherwise, so that `curl -f` tells. The answers come from a snapshot: no client can hold the
service up.
"""

from __future__ import annotations

import json
import os
import selectors
import socket
import struct
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from agent_bridge import paths
from agent_bridge.log import get_logger

_log = get_logger("status")

HEADER_LIMIT = 8 * 1024
CLIENT_SECONDS = 2.0
CLIENTS = 16
_REASONS = {200: "OK", 400: "Bad Request", 403: "Forbidden", 404: "Not Found", 405: "Method Not Allowed"} | {
    431: "Request Header Fields Too Large",
    503: "Service Unavailable",
}


@dataclass(slots=True)
class _Client:
    peer: socket.socket
    deadline: float
    refusal: tuple[int, dict[str, Any]] | None = None
    received: bytes = b""
    answer: memoryview = field(default_factory=lambda: memoryview(b""))


class StatusServer:
    """Serves `read_status()` on the status socket from one thread of its own.

    Must be started under the service's lock: a socket file that is there is then a dead one's and is removed.
    """

    def __init__(self, read_status: Callable[[], dict[str, Any]]) -> None:
        self._read_status = read_status
        self._path = paths.status_socket()
        self._clients: dict[socket.socket, _Client] = {}
        self._selector = selectors.DefaultSelector()
        self._wake_read, self._wake_write = socket.socketpair()
        self._thread = threading.Thread(target=self._serve, name="status-socket", daemon=True)
        self._inode: tuple[int, int] | None = None

    def start(self) -> None:
        """Bind and serve. Raises OSError or an AgentBridgeError when the place can't be used."""
        paths.ensure_private_dir(self._path.parent)
        self._path.unlink(missing_ok=True)
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        if sys.platform == "linux":
            os.fchmod(self._listener.fileno(), 0o600)
        self._listener.bind(str(self._path))
        self._path.chmod(0o600)
        found = self._path.lstat()
        self._inode = (found.st_dev, found.st_ino)
        self._listener.listen(CLIENTS)
        self._listener.settimeout(0)
        self._selector.register(self._listener, selectors.EVENT_READ)
        self._selector.register(self._wake_read, selectors.EVENT_READ)
        self._thread.start()

    def stop(self) -> None:
        """Stop serving and remove the socket file, if it is still the one that was bound."""
        if self._inode is None:
            return
        self._wake_write.send(b"!")
        self._thread.join(2.0)
        for used in (self._listener, self._wake_read, self._wake_write):
            used.close()
        try:
            found = self._path.lstat()
        except FileNotFoundError:
            return
        if (found.st_dev, found.st_ino) == self._inode:
            self._path.unlink(missing_ok=True)

    def _serve(self) -> None:
        while True:
            for key, ready in self._selector.select(self._patience()):
                if key.fileobj is self._wake_read:
                    self._close_all()
                    return
                if key.fileobj is self._listener:
                    self._accept()
                else:
                    client = self._clients[key.fileobj]  # type: ignore[index]
                    self._guarded(client, self._read if ready & selectors.EVENT_READ else self._write)
            self._drop_late()

    def _patience(self) -> float | None:
        if not self._clients:
            return None
        return max(0.0, min(client.deadline for client in self._clients.values()) - time.monotonic())

    def _accept(self) -> None:
        try:
            peer, _address = self._listener.accept()
        except OSError:
            # The client has gone again, or no file descriptor is left for it.
            return
        peer.settimeout(0)
        if len(self._clients) >= 2 * CLIENTS:
            peer.close()
            return
        # Who is refused is told so when it has asked: an answer before the question would look like a reset.
        refusal: tuple[int, dict[str, Any]] | None = None
        if not is_ours(peer):
            refusal = 403, {"error": "another user's service"}
        elif len(self._clients) >= CLIENTS:
            refusal = 503, {"error": "too many clients"}
        self._clients[peer] = _Client(peer, time.monotonic() + CLIENT_SECONDS, refusal)
        self._selector.register(peer, selectors.EVENT_READ)

    def _guarded(self, client: _Client, action: Callable[[_Client], None]) -> None:
        try:
            action(client)
        except BlockingIOError:
            return
        except OSError:
            self._drop(client)
        except Exception:  # noqa: BLE001 - one bad answer must not silence the service for everybody
            _log.exception("a status request failed")
            self._drop(client)

    def _read(self, client: _Client) -> None:
        part = client.peer.recv(4096)
        if not part:
            self._drop(client)
            return
        client.received += part
        if b"\r\n\r\n" in client.received or b"\n\n" in client.received:
            self._answer(client, *(client.refusal or self._respond(client.received)))
        elif len(client.received) > HEADER_LIMIT:
            self._answer(client, 431, {"error": f"a request may have {HEADER_LIMIT} bytes"})

    def _respond(self, request: bytes) -> tuple[int, dict[str, Any]]:
        words = request.split(b"\n", 1)[0].split()
        if len(words) != 3 or not words[2].startswith(b"HTTP/1."):
            return 400, {"error": "not an HTTP/1.1 request"}
        method, path = words[0], words[1].split(b"?", 1)[0]
        if path not in (b"/v1/status", b"/v1/health"):
            return 404, {"error": "not found", "paths": ["/v1/status", "/v1/health"]}
        if method != b"GET":
            return 405, {"error": "only GET"}
        status = self._read_status()
        if path == b"/v1/status":
            return 200, status
        health = {"state": status["state"], "reasons": status["reasons"]}
        return (200 if status["state"] == "ok" else 503), health

    def _answer(self, client: _Client, code: int, document: dict[str, Any]) -> None:
        body = (
            json.dumps(document, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace") + b"\n"
        )
        head = [
            f"HTTP/1.1 {code} {_REASONS[code]}",
            "Content-Type: application/json; charset=utf-8",
            f"Content-Length: {len(body)}",
            "Cache-Control: no-store",
            "Connection: close",
        ]
        if code == 405:
            head.append("Allow: GET")
        client.answer = memoryview("\r\n".join([*head, "", ""]).encode() + body)
        self._selector.modify(client.peer, selectors.EVENT_WRITE)

    def _write(self, client: _Client) -> None:
        sent = client.peer.send(client.answer)
        client.answer = client.answer[sent:]
        if not client.answer:
            client.peer.shutdown(socket.SHUT_WR)
            self._drop(client)

    def _drop_late(self) -> None:
        now = time.monotonic()
        for client in [client for client in self._clients.values() if client.deadline <= now]:
            self._drop(client)

    def _drop(self, client: _Client) -> None:
        self._clients.pop(client.peer, None)
        if client.peer in self._selector.get_map():
            self._selector.unregister(client.peer)
        client.peer.close()

    def _close_all(self) -> None:
        for client in tuple(self._clients.values()):
            self._drop(client)
        self._selector.close()


def is_ours(peer: socket.socket) -> bool:
    """Whether the peer is this user or root. The directory's mode is the first lock, this the second."""
    if sys.platform != "linux":
        return True
    credentials = peer.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
    return struct.unpack("3i", credentials)[1] in (os.getuid(), 0)
