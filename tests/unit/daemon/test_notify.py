"""Messages to the service manager."""

from __future__ import annotations

import errno
import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent_bridge.daemon.notify import Notifier


@pytest.fixture
def manager(short_tmp: Path) -> Iterator[socket.socket]:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listening:
        listening.bind(str(short_tmp / "notify"))
        listening.settimeout(5)
        yield listening


def test_what_it_sends(manager: socket.socket) -> None:
    notifier = Notifier({"NOTIFY_SOCKET": manager.getsockname()})
    notifier.extend_start(60)
    notifier.ready("Watching 2 projects.")
    notifier.watchdog()
    notifier.status("text")
    notifier.stopping()
    assert [manager.recv(4096) for _ in range(5)] == [
        b"EXTEND_TIMEOUT_USEC=60000000",
        b"READY=1\nSTATUS=Watching 2 projects.",
        b"WATCHDOG=1",
        b"STATUS=text",
        b"STOPPING=1",
    ]


def test_an_abstract_socket(short_tmp: Path) -> None:
    name = f"agent-bridge-test-{os.getpid()}"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listening:
        listening.bind("\0" + name)
        Notifier({"NOTIFY_SOCKET": "@" + name}).watchdog()
        assert listening.recv(100) == b"WATCHDOG=1"


@pytest.mark.parametrize("env", [{}, {"NOTIFY_SOCKET": "/nowhere/notify"}])
def test_without_a_manager_it_is_silent(env: dict[str, str]) -> None:
    Notifier(env).ready("text")


@pytest.mark.parametrize(
    ("env", "interval"),
    [
        ({}, None),
        ({"WATCHDOG_USEC": "30000000"}, None),
        ({"NOTIFY_SOCKET": "/x", "WATCHDOG_USEC": "30000000"}, 15.0),
        ({"NOTIFY_SOCKET": "/x", "WATCHDOG_USEC": "30000000", "WATCHDOG_PID": str(os.getpid())}, 15.0),
        ({"NOTIFY_SOCKET": "/x", "WATCHDOG_USEC": "30000000", "WATCHDOG_PID": "1"}, None),
        ({"NOTIFY_SOCKET": "/x", "WATCHDOG_USEC": "soon"}, None),
        ({"NOTIFY_SOCKET": "/x", "WATCHDOG_USEC": "0"}, None),
    ],
)
def test_the_watchdogs_interval_is_half_of_what_the_manager_allows(
    env: dict[str, str], interval: float | None
) -> None:
    assert Notifier(env).watchdog_interval == interval


def test_no_file_descriptor_left_does_not_end_the_service(
    manager: socket.socket, monkeypatch: pytest.MonkeyPatch
) -> None:
    def none_left(*_: object) -> None:
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    notifier = Notifier({"NOTIFY_SOCKET": manager.getsockname()})
    with monkeypatch.context() as patched:
        patched.setattr(socket, "socket", none_left)
        notifier.watchdog()
    notifier.watchdog()
    assert manager.recv(4096) == b"WATCHDOG=1"
