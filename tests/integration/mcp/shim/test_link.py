"""When the shim connects, and when it gives up: with real sockets, by a clock of the test's own."""

from __future__ import annotations

import json
import os
import signal
import socket
from contextlib import closing
from pathlib import Path

import pytest

from agent_bridge import paths
from agent_bridge.mcp.shim.catalogue import load
from agent_bridge.mcp.shim.hello import Origin
from agent_bridge.mcp.shim.link import GREETING_S, Link
from agent_bridge.mcp.shim.relay import PATIENCE_S, Relay
from integration.mcp.shim.rig import Peer, Service, answer, call, initialize, welcome


def linked(*, starts_service: bool = False) -> tuple[Relay, Link]:
    """A relay whose client has said initialize, and a link."""
    relay = Relay(load(None), PATIENCE_S)
    relay.from_client(json.dumps(initialize()).encode(), 0.0)
    relay.to_client.clear()
    origin = Origin(os.environ, "", "global")
    return relay, Link(relay, origin, os.environ, starts_service=starts_service, digest="")


def attempts(link: Link, begin: float, end: float) -> list[float]:
    """The moments at which the link does something by itself."""
    now, moments = begin, []
    while now < end:
        link.step(now)
        moments.append(now)
        following = link.wakes_at(now)
        assert len(moments) < 1000
        now = end if following is None else max(now, following)
    return moments


def test_nobody_listens_and_nothing_waits(sealed_home: Path) -> None:
    _, link = linked()
    assert 5 <= len(attempts(link, 0.0, 300.0)) <= 20


def test_nobody_listens_and_a_call_waits(sealed_home: Path) -> None:
    relay, link = linked()
    attempts(link, 0.0, 100.0)
    relay.from_client(json.dumps(call(1)).encode(), 100.0)
    tried = attempts(link, 100.0, 100.0 + PATIENCE_S)
    assert relay.is_waiting
    assert tried[0] == 100.0
    assert 60 <= len(tried) <= 100
    attempts(link, 100.0 + PATIENCE_S, 101.0 + PATIENCE_S)
    assert not relay.is_waiting
    assert b"isn't running" in b"".join(relay.to_client._lines)


def test_service_that_takes_connections_and_says_nothing(service: Service) -> None:
    relay, link = linked()
    relay.from_client(json.dumps(call(1)).encode(), 0.0)
    link.step(0.0)
    link.flush(0.0)
    hung = service.accept()
    assert hung.hear()["hello"]["replayed"] == []
    assert link.wakes_at(0.0) == GREETING_S
    link.step(GREETING_S)
    assert link.descriptor is None
    assert hung.hear() == {}
    link.step(GREETING_S + 0.5)
    link.flush(GREETING_S + 0.5)
    assert link.descriptor is not None
    assert service.accept().hear()["hello"]["replayed"] == []
    attempts(link, GREETING_S + 0.5, PATIENCE_S + 0.1)
    assert not relay.is_waiting
    assert b"didn't answer" in b"".join(relay.to_client._lines)
    link.close()


def test_start_whose_service_was_killed_is_no_failure(
    sealed_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A service answers before all of it is ready. The start that waits for that fails when it is killed."""
    in_the_way = sealed_home / "file"
    in_the_way.touch()
    monkeypatch.setenv("AGENT_BRIDGE_STATE_DIR", str(in_the_way / "below"))  # so the start fails
    relay, link = linked(starts_service=True)
    relay.from_client(json.dumps(call(1)).encode(), 0.0)
    link.step(0.0)
    assert link._is_starting
    service = Service(paths.mcp_socket())
    peer = opened(service, link, relay, 0.1)
    peer.close()
    service.close()
    link.read(0.2)
    assert link._starter is not None
    first = link._starter._process
    while link._starter._process is first:
        link.step(0.2)
    link.step(2.0)

    second = link._starter._process
    assert second is not None, "the next start is under way"
    assert relay.is_waiting, "the call is not given up"
    second.wait()  # while the file is in its way
    link.close()


def opened(service: Service, link: Link, relay: Relay, now: float) -> Peer:
    """The service's end of the connection that is made now, once it takes requests."""
    link.step(now)
    link.flush(now)
    peer = service.accept()
    assert peer.hear()["hello"]
    peer.say(welcome())
    link.read(now)
    link.flush(now)
    peer.say(answer(peer.hear()["id"], {}))
    link.read(now)
    assert relay.is_open
    return peer


def lost(peer: Peer, link: Link, now: float) -> None:
    """The service goes, and that is seen."""
    peer.close()
    link.read(now)
    assert link.descriptor is None


def test_service_that_ends_each_connection_is_not_asked_without_pause(service: Service) -> None:
    relay, link = linked()
    now, moments = 0.0, []
    for _ in range(6):
        lost(opened(service, link, relay, now), link, now)
        moments.append(now)
        following = link.wakes_at(now)
        assert following is not None
        now = following
    assert moments == [0.0, 2.0, 6.0, 14.0, 30.0, 60.0]
    link.close()


def test_service_that_was_there_is_looked_for_quickly_and_then_in_peace(service: Service) -> None:
    relay, link = linked()
    peer = opened(service, link, relay, 0.0)
    service.close()
    lost(peer, link, 100.0)
    assert len(attempts(link, 100.0, 105.0)) >= 10
    assert len(attempts(link, 106.0, 400.0)) <= 20
    link.close()


def test_place_of_the_socket_that_is_no_socket(sealed_home: Path) -> None:
    place = paths.mcp_socket()
    place.parent.mkdir(mode=0o700)
    place.mkdir()
    relay, link = linked()
    relay.from_client(json.dumps(call(1)).encode(), 0.0)
    attempts(link, 0.0, PATIENCE_S + 1)
    assert not relay.is_waiting
    assert relay.to_client.size


@pytest.mark.skipif(os.getuid() != 0, reason="needs root to become somebody else")
@pytest.mark.parametrize(("uid", "is_greeted"), [(65534, False), (0, True)])
def test_socket_of_another_user_is_told_nothing(sealed_home: Path, uid: int, is_greeted: bool) -> None:
    place = paths.mcp_socket()
    place.parent.mkdir(mode=0o700, parents=True)
    ready, told = os.pipe()
    with closing(socket.socket(socket.AF_UNIX)) as listener:
        listener.bind(str(place))
        child = os.fork()
        if child == 0:
            os.setuid(uid)
            listener.listen(8)  # who does this is who the kernel tells of
            os.write(told, b"!")
            signal.pause()
            os._exit(0)
        try:
            assert os.read(ready, 1) == b"!"
            relay, link = linked()
            link.step(0.0)
            assert bool(relay.to_service.size) is is_greeted
            assert (link.descriptor is not None) is is_greeted
            relay.from_client(json.dumps(call(1)).encode(), 0.0)
            link.step(PATIENCE_S + 1)
            waits = "another user's" not in b"".join(relay.to_client._lines).decode()
            assert waits is is_greeted
            link.close()
        finally:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            os.close(ready)
            os.close(told)


def test_place_where_no_socket_can_be_is_told_at_once(
    sealed_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (sealed_home / "file").touch()
    monkeypatch.setenv("AGENT_BRIDGE_RUNTIME_DIR", str(sealed_home / "file"))
    relay, link = linked(starts_service=True)
    relay.from_client(json.dumps(call(1)).encode(), 0.0)
    link.step(0.0)
    assert not relay.is_waiting
    assert b"Not a directory" in b"".join(relay.to_client._lines)
