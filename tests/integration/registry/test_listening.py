"""The registry's listening socket: which port it takes, and what the file beside it says."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import socket
import stat
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import httpx
import pytest

from agent_bridge.registry import listening


@pytest.fixture
def free_port() -> int:
    """A port of loopback that is free, and the next one too."""
    for _ in range(50):
        with socket.socket() as first, socket.socket() as second:
            first.bind((listening.HOST, 0))
            port: int = first.getsockname()[1]
            try:
                second.bind((listening.HOST, port + 1))
            except OSError:
                continue
            return port
    raise AssertionError("no two ports in a row are free")


@pytest.fixture(params=["127.0.0.1", ""], ids=["loopback", "every address"])
def stranger(request: pytest.FixtureRequest, free_port: int) -> Iterator[socket.socket]:
    """Another program that listens on the port, as carelessly as it can: with SO_REUSEADDR."""
    with socket.socket() as other:
        other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        other.bind((request.param, free_port))
        other.listen()
        yield other


def port_of(listener: socket.socket) -> int:
    port: int = listener.getsockname()[1]
    return port


def test_it_takes_the_port_that_is_set_on_loopback_only(free_port: int) -> None:
    with closing(listening.listen(free_port)) as listener:
        assert listener.getsockname() == ("127.0.0.1", free_port)
        assert listening.url_of(listener) == f"http://127.0.0.1:{free_port}"


def test_a_port_in_use_is_never_taken_but_the_next(stranger: socket.socket) -> None:
    with closing(listening.listen(port_of(stranger))) as listener:
        assert port_of(listener) == port_of(stranger) + 1
        with closing(socket.create_connection(("127.0.0.1", port_of(stranger)), 5)):
            stranger.settimeout(5)
            stranger.accept()[0].close()


def test_a_port_that_is_bound_but_not_listened_on_is_in_use_too(free_port: int) -> None:
    with socket.socket() as other:
        other.bind((listening.HOST, free_port))
        with closing(listening.listen(free_port)) as listener:
            assert port_of(listener) == free_port + 1


def test_nobody_takes_it_from_us(free_port: int) -> None:
    with closing(listening.listen(free_port)), socket.socket() as other:
        other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        with pytest.raises(OSError, match=os.strerror(errno.EADDRINUSE)):
            other.bind((listening.HOST, free_port))


def test_after_a_restart_it_has_its_port_again_though_connections_linger(free_port: int) -> None:
    first = listening.listen(free_port)
    caller = socket.create_connection((listening.HOST, free_port), 5)
    first.settimeout(5)
    peer, _ = first.accept()
    peer.close()  # whoever closes first keeps the connection's memory: TIME_WAIT
    caller.close()
    first.close()
    with closing(listening.listen(free_port)) as second:
        assert port_of(second) == free_port


def test_the_highest_port_in_use_leads_to_any() -> None:
    with socket.socket() as other:
        with contextlib.suppress(OSError):  # then somebody else has it
            other.bind((listening.HOST, 65_535))
        with closing(listening.listen(65_535)) as listener:
            assert port_of(listener) != 65_535


@pytest.mark.skipif(os.getuid() == 0, reason="root may listen anywhere")
def test_a_port_that_is_not_ours_to_take_is_an_error_that_says_so() -> None:
    if int(Path("/proc/sys/net/ipv4/ip_unprivileged_port_start").read_text()) <= 80:
        pytest.skip("every port is anybody's here")
    with pytest.raises(listening.PortError, match=r"Port 80 .* can't be listened on") as caught:
        listening.listen(80)
    assert "registry_port" in caught.value.remedy


def test_the_address_is_published_whole_private_and_withdrawn_by_its_owner_only(tmp_path: Path) -> None:
    path = tmp_path / "state" / "registry.json"
    listening.publish(path, "http://127.0.0.1:4999")
    assert json.loads(path.read_bytes()) == {"url": "http://127.0.0.1:4999", "pid": os.getpid()}
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    path.write_text(json.dumps({"url": "http://127.0.0.1:5000", "pid": os.getpid() + 1}))
    listening.withdraw(path)
    assert path.exists(), "another service's address was removed"
    listening.publish(path, "http://127.0.0.1:4999")
    listening.withdraw(path)
    assert list(path.parent.iterdir()) == []
    listening.withdraw(path)


def test_who_calls_a_registry_that_rests_is_told_at_once(free_port: int) -> None:
    with closing(listening.listen(free_port)) as listener:
        listener.settimeout(5)
        told = threading.Thread(target=listening.turn_away, args=(listener, 'It "failed".'))
        told.start()
        answer = httpx.get(f"{listening.url_of(listener)}/health")
        told.join(5)
    assert answer.status_code == 503
    assert answer.json() == {"error": 'It "failed".', "code": "storage"}


def test_who_says_nothing_holds_nobody_up(free_port: int) -> None:
    with (
        closing(listening.listen(free_port)) as listener,
        closing(socket.create_connection((listening.HOST, free_port), 5)),
    ):
        listener.settimeout(5)
        listening.turn_away(listener, "Resting.")
