"""Becomes a client program inside a network that has nothing but loopback.

Started by `sealed.py` as `python -I -S launch.py FD COUNT`, standard library only. Over the socket FD it
sends COUNT listening sockets on 127.0.0.1, made inside the new network namespace (a socket belongs to the
namespace it was made in, so the parent can serve them from outside), with one line that says how the
network was closed. Then it reads `{"argv": [...], "env": {...}}` until end of file and becomes that program.
"""

from __future__ import annotations

import ctypes
import fcntl
import json
import os
import socket
import struct
import sys

CLONE_NEWUSER = 0x10000000
CLONE_NEWNET = 0x40000000
SIOCGIFFLAGS = 0x8913
SIOCSIFFLAGS = 0x8914
IFF_UP = 1


def main() -> None:
    channel = socket.socket(fileno=int(sys.argv[1]))
    how = _close_network()
    listeners = [_listen() for _ in range(int(sys.argv[2]))]
    socket.send_fds(channel, [how.encode()], [listener.fileno() for listener in listeners])
    order = json.loads(b"".join(iter(lambda: channel.recv(1 << 16), b"")))
    os.execve(order["argv"][0], order["argv"], order["env"])  # noqa: S606 - no shell is the point


def _close_network() -> str:
    """Enter a network namespace with loopback up; "open" where the kernel refuses or has none."""
    if not sys.platform.startswith("linux"):
        return "open"
    libc = ctypes.CDLL(None, use_errno=True)
    uid, gid = os.getuid(), os.getgid()
    if libc.unshare(CLONE_NEWNET) == 0:
        _raise_loopback()
        return "namespace"
    if libc.unshare(CLONE_NEWUSER | CLONE_NEWNET) == 0:
        _write("/proc/self/setgroups", "deny")
        _write("/proc/self/uid_map", f"{uid} {uid} 1")
        _write("/proc/self/gid_map", f"{gid} {gid} 1")
        _raise_loopback()
        return "user namespace"
    return "open"


def _raise_loopback() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        request = struct.pack("16sh14x", b"lo", 0)
        flags = struct.unpack("16sh14x", fcntl.ioctl(any_socket, SIOCGIFFLAGS, request))[1]
        fcntl.ioctl(any_socket, SIOCSIFFLAGS, struct.pack("16sh14x", b"lo", flags | IFF_UP))


def _write(path: str, text: str) -> None:
    with open(path, "w", encoding="ascii") as file:  # noqa: PTH123 - pathlib is not loaded here
        file.write(text)


def _listen() -> socket.socket:
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listener.bind(("127.0.0.1", 0))
    listener.listen(64)
    return listener


if __name__ == "__main__":
    main()
