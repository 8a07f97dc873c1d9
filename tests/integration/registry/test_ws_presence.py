"""Who is there: sockets that take over, go, fall silent, and what the directory makes of it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from websockets.client import ClientProtocol

from agent_bridge.channel.clock import Moment
from integration.channel.records import Clock
from integration.registry.running import PATIENCE, Running


@pytest.fixture(scope="module")
def registry(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with Running(tmp_path_factory.mktemp("registry"), socket_ping_s=0.15) as running:
        yield running


def _rows(registry: Running, identity: str) -> dict[str, bool]:
    rows = registry.http.get("/agents", headers=registry.headers(identity)).json()
    return {row["agentId"]: row["healthy"] for row in rows if row["identity"] == identity}


def test_a_second_socket_closes_the_first_and_the_row_stays(registry: Running) -> None:
    registry.register("me", "taken-over")
    first = registry.agent("me", "taken-over")
    with registry.agent("me", "taken-over") as second:
        code, reason = first.closing()

        assert code == 4001
        assert "newer connection" in reason
        assert _rows(registry, "taken-over") == {"me": True}
        registry.post("taken-over", toAgentId="me")
        assert [frame["type"] for frame in second.all_until_now()] == ["channel.message"]


def test_the_same_id_in_another_identity_takes_nothing_over(registry: Running) -> None:
    with registry.agent("me", "one") as first, registry.agent("me", "other"):
        registry.post("one", toAgentId="me")

        assert first.until("channel.message")


def test_a_clients_row_goes_at_once_with_its_socket(registry: Running) -> None:
    registry.register("me", "leaving")
    with registry.connect("leaving") as other:
        registry.agent("me", "leaving").close()

        assert other.until("agent.deregistered")["data"]["agentId"] == "me"
        assert _rows(registry, "leaving") == {}


def test_an_agent_servers_row_is_unhealthy_at_once(registry: Running) -> None:
    registry.register("server", "serving", entryType="agent", clientInfo=None)
    with registry.connect("elsewhere") as other:
        registry.agent("server", "serving").close()

        assert other.until("agent.unhealthy")["data"]["agentId"] == "server"
        assert _rows(registry, "serving") == {"server": False}


def test_a_socket_broken_off_counts_as_gone(registry: Running) -> None:
    registry.register("me", "broken")
    with registry.connect("broken") as other:
        registry.agent("me", "broken").connection.socket.close()

        assert other.until("agent.deregistered")["data"]["agentId"] == "me"


def test_identifying_removes_older_rows_of_the_same_client(registry: Running) -> None:
    for identity in ("same", "not-same"):
        registry.register("old", identity, projectPath="/p")
    with registry.connect("same") as other:
        registry.register("new", "same", projectPath="/p")
        assert other.until("agent.deregistered")["data"]["agentId"] == "old"

    assert _rows(registry, "same") == {"new": True}
    assert _rows(registry, "not-same") == {"old": True}


def test_a_socket_that_becomes_somebody_else_leaves_the_first(registry: Running) -> None:
    registry.register("first", "changing")
    with registry.connect("changing") as other, registry.agent("first", "changing") as socket:
        socket.identify("second")

        assert other.until("agent.deregistered")["data"]["agentId"] == "first"
        assert registry.hub.reaches("changing", "second")
        assert not registry.hub.reaches("changing", "first")


def test_ages_without_a_heartbeat_become_unhealthy_then_nothing(registry: Running) -> None:
    registry.register("me", "ageing")
    hub = registry.hub
    row = hub.directory.find("ageing", "me")
    assert row is not None

    def after(seconds: int) -> list[str]:
        later = Moment(hub.timeline.now().wall, row.beat + seconds * 1000)
        registry.on_loop(lambda: hub.publish(hub.directory.sweep(later)))
        return [frame["type"] for frame in other.all_until_now() if frame["data"]["agentId"] == "me"]

    with registry.connect("ageing") as other:
        assert after(89) == []
        assert after(90) == ["agent.unhealthy"]
        assert after(119) == []
        assert after(120) == ["agent.removed"]


class _Deaf(ClientProtocol):
    """A client that never answers a ping."""

    def send_frame(self, frame: object) -> None:
        if "PONG" not in str(frame):
            super().send_frame(frame)  # type: ignore[arg-type]


def test_a_peer_that_answers_no_ping_is_cut_off(registry: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    registry.register("deaf", "pinged")
    monkeypatch.setattr("websockets.sync.client.ClientProtocol", _Deaf)
    deaf = registry.agent("deaf", "pinged")
    monkeypatch.undo()
    with registry.agent("well", "pinged") as well:
        start = time.monotonic()

        assert well.until("agent.deregistered")["data"]["agentId"] == "deaf"
        assert time.monotonic() - start < PATIENCE / 2
        # The one that answers is still there after several rounds.
        registry.post("pinged", toAgentId="well")
        assert well.until("channel.message")
    deaf.connection.socket.close()


def test_a_peer_that_is_there_is_left_alone(registry: Running) -> None:
    with registry.agent("me", "quiet", ping_interval=None) as socket:
        cut_off = registry.figures()["cut_off"]
        time.sleep(0.7)  # four rounds of pings; nothing is to happen

        registry.post("quiet", toAgentId="me")
        assert socket.until("channel.message")
        assert registry.figures()["cut_off"] == cut_off


def test_the_figures_say_what_happened(tmp_path: Path) -> None:
    with Running(tmp_path) as running:
        running.register("me")
        running.register("you", "work")
        first = running.agent("me")
        with running.agent("me") as second, running.connect("work"):
            first.closing()
            running.post(toAgentId="me")
            assert second.until("channel.message")
            second.connection.send("no json")
            assert second.all_until_now() == []
            told = running.on_loop(running.hub.describe)

    assert told["agents"] == {"global": 1, "work": 1}
    sockets = told["sockets"]
    assert (sockets["open"], sockets["identified"], sockets["superseded"]) == (2, 1, 1)
    assert (sockets["ignored"], sockets["refused"], sockets["failures"]) == (1, 1, 0)
    # Three snapshots, two `identified`, the message, and the answer to what couldn't be acknowledged.
    assert sockets["frames_sent"] == 7
    assert told["seq"] >= 1
    assert told["epoch"]


def test_the_registrys_end_is_said_goodbye_to(tmp_path: Path) -> None:
    with Running(tmp_path) as running:
        socket = running.agent("me")

    assert socket.closing()[0] == 1001


def test_while_the_registry_sleeps_nobody_grows_older(tmp_path: Path) -> None:
    """A closed notebook: sessions slept as long, and their next heartbeat comes after the next look."""
    clock = Clock()
    with Running(tmp_path, timeline=clock.timeline()) as running, running.agent("me"):
        running.register("me")

        def looks_later(ms: int) -> dict[str, bool]:
            clock.go_on(ms)
            running.on_loop(running.hub.sweep_presence)
            return _rows(running, "global")

        assert looks_later(15_000) == {"me": True}
        assert looks_later(3_600_000) == {"me": True}
        assert looks_later(30_000) == {"me": True}
        assert looks_later(30_000) == {"me": False}, "who is silent while we listen grows older"
