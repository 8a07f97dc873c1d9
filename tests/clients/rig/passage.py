"""Starts a server inside the closed network and lets the test reach it: a Unix socket leads to its port.

Started by `opencode.py` as `python -I -S passage.py SOCKET PROGRAM ARGUMENT...`, standard library only.
`{port}` in an argument becomes a free port. A Unix socket is a file, so it leads into a network namespace.
Prints "ready" once the server says that it listens; a connection before that may hang. Ends with the server.
"""

from __future__ import annotations

import socket
import subprocess
import sys
import threading
from typing import IO


def main() -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    words = [word.replace("{port}", str(port)) for word in sys.argv[2:]]
    server = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
    printed = server.stdout
    if printed is None:
        sys.exit("no pipe")
    for line in iter(printed.readline, b""):
        sys.stderr.buffer.write(line)
        if str(port).encode() in line:
            break
    threading.Thread(target=_copy, args=(printed,), daemon=True).start()
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(sys.argv[1])
        listener.listen(64)
        print("ready", flush=True)
        threading.Thread(target=_serve, args=(listener, port), daemon=True).start()
        sys.exit(server.wait())


def _copy(source: IO[bytes]) -> None:
    for line in iter(source.readline, b""):
        sys.stderr.buffer.write(line)


def _serve(listener: socket.socket, port: int) -> None:
    while True:
        near, _ = listener.accept()
        far = socket.create_connection(("127.0.0.1", port))
        for source, sink in ((near, far), (far, near)):
            threading.Thread(target=_pump, args=(source, sink), daemon=True).start()


def _pump(source: socket.socket, sink: socket.socket) -> None:
    try:
        while data := source.recv(1 << 16):
            sink.sendall(data)
        sink.shutdown(socket.SHUT_WR)
    except OSError:
        pass  # one side hung up: so does the other


if __name__ == "__main__":
    main()
