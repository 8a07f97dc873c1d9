"""The registry's place on the network: a listening socket on loopback, and the file that says where it is.

Light to import: the service listens before it is ready, and loads the registry only for somebody who calls.
"""

from __future__ import annotations

import errno
import json
import os
import socket
import sys
from pathlib import Path

from agent_bridge import files
from agent_bridge.errors import AgentBridgeError

HOST = "127.0.0.1"
BACKLOG = 512
"""Connections that may wait while the registry is being loaded."""
_FURTHER_PORTS = 100
_LAST_PORT = 65_535
_REQUEST_SECONDS = 0.2


class PortError(AgentBridgeError):
    """No port can be listened on."""

    code = "port"


def listen(wanted: int) -> socket.socket:
    """Listen on `wanted`, or on the next port that is free; after a hundred on any that is.

    Never takes a port from another process, and takes its own again right after a restart. Raises PortError
    where the system refuses for another reason than that a port is in use.
    """
    for port in (*range(wanted, min(wanted + _FURTHER_PORTS, _LAST_PORT) + 1), 0):
        found = _listen_on(port)
        if found is not None:
            return found
    raise PortError(f"No port is free on {HOST}.", remedy="End a program that listens there.")


def url_of(listener: socket.socket) -> str:
    """The registry's address: `http://127.0.0.1:<port>`."""
    return f"http://{HOST}:{listener.getsockname()[1]}"


def publish(path: Path, url: str) -> None:
    """Write down where the registry of this process answers (0600), unless it stands there already.

    Raises AgentBridgeError."""
    document = json.dumps({"url": url, "pid": os.getpid()}).encode() + b"\n"
    try:
        is_there = path.read_bytes() == document
    except OSError:
        is_there = False
    if not is_there:
        files.write_own(path, document, sync=False)


def withdraw(path: Path) -> None:
    """Remove that file, if it still speaks of this process."""
    try:
        if json.loads(path.read_bytes())["pid"] == os.getpid():
            path.unlink()
    except (OSError, ValueError, KeyError, TypeError):
        return  # gone, or somebody else's by now


def turn_away(listener: socket.socket, sentence: str) -> None:
    """Answer one waiting connection with 503 and `sentence`, so that its caller needn't wait for nothing."""
    body = json.dumps({"error": sentence, "code": "storage"}).encode()
    head = (
        "HTTP/1.1 503 Service Unavailable\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n"
    )
    try:
        peer, _address = listener.accept()
        with peer:
            peer.settimeout(_REQUEST_SECONDS)
            peer.recv(65_536)
            peer.sendall(head.encode() + body)
    except OSError:
        return  # whoever called has gone again, or says nothing


def _listen_on(port: int) -> socket.socket | None:
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        # Without this a restart would have to wait for old connections to be forgotten. Linux refuses a
        # port in use all the same; other systems let 127.0.0.1 be taken from a listener on all addresses.
        if sys.platform == "linux" or not _is_answered(port):
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((HOST, port))
        listener.listen(BACKLOG)
        listener.settimeout(0)
    except OSError as error:
        listener.close()
        if error.errno == errno.EADDRINUSE:
            return None
        raise PortError(
            f"Port {port} of {HOST} can't be listened on.",
            detail=error.strerror or str(error),
            remedy="Set registry_port to another one.",
        ) from error
    return listener


def _is_answered(port: int) -> bool:
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as caller:
        caller.settimeout(1.0)
        return caller.connect_ex((HOST, port)) == 0
