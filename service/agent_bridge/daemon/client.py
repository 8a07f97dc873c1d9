"""Asking the running service how it is; imports next to nothing, so that `status` is fast."""

from __future__ import annotations

import json
import os
import socket
import struct
import sys
import time
from pathlib import Path
from typing import Any

from agent_bridge import paths
from agent_bridge.errors import AgentBridgeError, NotRunningError

TIMEOUT = 2.0
"""Seconds within which a healthy service has long answered."""
_MOST = 16 * 1024 * 1024


class NotAnsweringError(AgentBridgeError):
    """The service runs (its lock is held) but doesn't answer: it hangs, is stopped, or is just starting."""

    code = "not_answering"


def read_status(timeout: float = TIMEOUT, *, path: str = "/v1/status") -> dict[str, Any]:
    """The running service's status (schema 1: `daemon.status`), within `timeout` seconds in all.

    Raises NotRunningError, or NotAnsweringError when it runs without answering.
    """
    address = paths.status_socket()
    deadline = time.monotonic() + timeout
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as peer:
            peer.settimeout(timeout)
            peer.connect(str(address))
            peer.sendall(f"GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode())
            answer = _read_all(peer, deadline)
    except OSError as error:
        raise _silence(error) from error
    return _parse(answer)


def service_is_running() -> bool:
    """Whether a service holds the lock; the pid in a file says nothing."""
    return lock_is_held(paths.service_lock())


def serving_pid() -> int | None:
    """The process that listens on the status socket, as the kernel knows it; also of one that is stopped.

    None when nobody listens, or the system can't tell (only Linux is asked).
    """
    if sys.platform != "linux":
        return None
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as peer:
            peer.settimeout(TIMEOUT)
            peer.connect(str(paths.status_socket()))
            credentials = peer.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
    except OSError:
        return None
    pid, uid, _gid = struct.unpack("3i", credentials)
    return int(pid) if uid == os.getuid() else None


def lock_is_held(path: Path) -> bool:
    """Whether some process holds the lock file `path`; tried for a moment and let go at once."""
    import fcntl

    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(descriptor)
    return False


def _read_all(peer: socket.socket, deadline: float) -> bytes:
    parts: list[bytes] = []
    size = 0
    while size < _MOST:
        left = deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError
        peer.settimeout(left)
        part = peer.recv(65536)
        if not part:
            break
        parts.append(part)
        size += len(part)
    return b"".join(parts)


def _parse(answer: bytes) -> dict[str, Any]:
    head, _, body = answer.partition(b"\r\n\r\n")
    try:
        document = json.loads(body)
    except ValueError:
        document = None
    if not head.startswith(b"HTTP/1.") or not isinstance(document, dict):
        raise NotAnsweringError(
            "The service's answer can't be understood.",
            detail=head[:80].decode("latin-1"),
            remedy="Restart it: `agent-bridge service restart`.",
        )
    return document


def _silence(error: OSError) -> AgentBridgeError:
    if service_is_running():
        return NotAnsweringError(
            "The service is running, not answering.",
            detail=error.strerror or "no answer in time",
            remedy="If that lasts, restart it: `agent-bridge service restart`.",
        )
    return NotRunningError(
        "The service isn't running.",
        remedy="Start it with `agent-bridge service start` or `agent-bridge up`.",
    )
