"""Signs of life from within a pass, and where a pass ends."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent_bridge.daemon.notify import Notifier
from agent_bridge.daemon.orders import StopFlag, StopOrdered
from agent_bridge.daemon.pulse import Pulse
from agent_bridge.daemon.status import StatusBoard


@pytest.fixture
def manager(short_tmp: Path) -> Iterator[socket.socket]:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listening:
        listening.bind(str(short_tmp / "notify"))
        listening.settimeout(0)
        yield listening


def heard(manager: socket.socket) -> list[bytes]:
    found = []
    while True:
        try:
            found.append(manager.recv(4096).split(b"\n")[0])
        except BlockingIOError:
            return found


def pulse(manager: socket.socket, stop: StopFlag, watchdog: str = "60000000") -> Pulse:
    env = {"NOTIFY_SOCKET": manager.getsockname(), "WATCHDOG_USEC": watchdog}
    return Pulse(StatusBoard(), Notifier(env), stop)


def test_steps_extend_the_start_and_feed_the_watchdog_afterwards(manager: socket.socket) -> None:
    beating = pulse(manager, StopFlag(), watchdog="2")  # every microsecond: each step is due
    beating.step()
    beating.ready("Ready.")
    beating.step()
    assert heard(manager) == [b"EXTEND_TIMEOUT_USEC=60000000", b"READY=1", b"WATCHDOG=1"]


def test_a_thousand_short_steps_send_one_message(manager: socket.socket) -> None:
    beating = pulse(manager, StopFlag())
    for _ in range(1000):
        beating.step()
    assert len(heard(manager)) == 1


def test_a_step_ends_the_pass_when_a_stop_was_ordered(manager: socket.socket) -> None:
    stop = StopFlag()
    beating = pulse(manager, stop)
    beating.step()
    stop.is_set = True
    with pytest.raises(StopOrdered):
        beating.step()


def test_a_manager_that_reads_nothing_holds_no_beat_up(manager: socket.socket) -> None:
    beating = pulse(manager, StopFlag())
    for _ in range(2000):  # more than its queue takes
        beating.beat()
    assert 0 < len(heard(manager)) < 2000
