"""A relay in front of a server that can break off right after a commit was asked for."""

from __future__ import annotations

import socket
import threading
import time
from contextlib import suppress


class Relay:
    """Passes bytes between its own port on 127.0.0.1 and `port`; both ways on threads of its own.

    `cut` "after": the next COMMIT reaches the server, its answer is lost with the connection. "before": it
    doesn't reach the server. "for good": as "after", and nobody gets through any more.
    """

    def __init__(self, port: int) -> None:
        self._target = port
        self.cut = ""
        self.cuts = 0
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._open: list[socket.socket] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        """Break off everything."""
        self._listener.close()
        self._drop(*self._open)

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _address = self._listener.accept()
                server = socket.create_connection(("127.0.0.1", self._target))
                self._open += [client, server]
                for source, sink, is_client in ((client, server, True), (server, client, False)):
                    threading.Thread(
                        target=self._pass_on, args=(source, sink, is_client), daemon=True
                    ).start()

    def _pass_on(self, source: socket.socket, sink: socket.socket, is_client: bool) -> None:
        with suppress(OSError):
            while data := source.recv(1 << 16):
                if is_client and self.cut and b"COMMIT" in data:
                    self._cut_off(data, source, sink)
                    return
                sink.sendall(data)
        self._drop(source, sink)

    def _cut_off(self, data: bytes, client: socket.socket, server: socket.socket) -> None:
        how, self.cut = self.cut, ""
        self.cuts += 1
        if how == "for good":
            self._listener.shutdown(socket.SHUT_RDWR)
            self._listener.close()
        client.shutdown(socket.SHUT_RDWR)
        if how != "before":
            server.sendall(data)
            time.sleep(0.1)  # or the server might see the end before the commit
        self._drop(client, server)

    def _drop(self, *sockets: socket.socket) -> None:
        for one in sockets:
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            with suppress(OSError):
                one.close()
