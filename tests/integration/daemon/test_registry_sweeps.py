"""What the registry does by the clock, and what becomes of it when its event loop ends."""

from __future__ import annotations

import errno
import socket
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from agent_bridge import paths
from agent_bridge.channel.clock import wall_ms
from agent_bridge.channel.errors import UnknownError
from agent_bridge.channel.model import AckState, ConversationStatus, Draft, Kind
from agent_bridge.client.address import find
from agent_bridge.client.http import Registry
from agent_bridge.client.requests import Registration
from agent_bridge.config import load_settings
from agent_bridge.daemon import registry_figures
from agent_bridge.daemon.registry_host import RegistryHost
from integration.daemon.conftest import PATIENCE, Starter

OFTEN = ("expiry_sweep_s=0.1", "terminal_sweep_s=0.1", "presence_sweep_s=0.1", "retention_sweep_s=0.1")


def question(name: str, *, expires_at: int | None = None) -> Draft:
    return Draft(
        identity="global",
        from_agent_id="a",
        to_agent_id="b",
        kind=Kind.CHAT,
        content="Is it so?",
        conversation_id=name,
        message_id=name,
        expects_response=True,
        expires_at=expires_at,
    )


def until(reached: Callable[[], object]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not reached():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def sweeps_of(status: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {sweep["name"]: sweep for sweep in status["registry"]["sweeps"]}


def test_what_nobody_answered_in_time_fails_once_and_then_leaves_the_list(start_service: Starter) -> None:
    service = start_service(*OFTEN, "terminal_retention_min=0")
    with Registry(find()) as registry:
        registry.send(question("late", expires_at=wall_ms() + 300))
        registry.send(question("patient"))
        until(lambda: registry.conversations(archived=True).items)
        (archived,) = registry.conversations(archived=True).items
        assert (archived.conversation_id, archived.status) == ("late", ConversationStatus.FAILED)
        assert [one.conversation_id for one in registry.conversations().items] == ["patient"]
        acks = registry.conversation("late").acks
        assert [(ack.state, ack.actor_id) for ack in acks] == [(AckState.FAILED, "registry")]
        assert "expired" in (acks[0].detail or "")
    status = service.wait_status(lambda status: sweeps_of(status)["terminal"]["counts"] == 1)
    expiry = sweeps_of(status)["expiry"]
    assert (expiry["counts"], expiry["interval_s"], expiry["failures"], expiry["error"]) == (1, 0.1, 0, None)
    assert expiry["last_run"] is not None
    assert expiry["last_ms"] < 1000
    assert status["state"] == "ok"


def test_what_is_old_is_deleted_whole(start_service: Starter) -> None:
    service = start_service(*OFTEN, f"retention_days={0.5 / 86_400}")
    with Registry(find()) as registry:
        registry.send(question("old"))
        service.wait_status(lambda status: sweeps_of(status)["retention"]["counts"] >= 1)
        with pytest.raises(UnknownError):
            registry.conversation("old")
        assert registry.inbox("b", view="all").items == ()


def test_a_session_that_falls_silent_is_taken_out(start_service: Starter) -> None:
    start_service(*OFTEN, "agent_unhealthy_s=0.3", "agent_remove_s=0.9")
    with Registry(find()) as registry:
        registry.register(Registration(agent_id="silent", name="silent", project_path="/p"))
        until(lambda: [row["healthy"] for row in registry.agents()] == [False])
        until(lambda: registry.agents() == [])


def test_a_sweep_is_run_at_the_start_though_its_time_is_far_off(start_service: Starter) -> None:
    service = start_service()
    with Registry(find()) as registry:
        registry.health()
        service.wait_status(
            lambda status: status["registry"]["sweeps"] and sweeps_of(status)["upkeep"]["runs"]
        )
        deadline = wall_ms() + 500
        registry.send(question("late", expires_at=deadline))
        service.end()
    until(lambda: wall_ms() > deadline)
    service = start_service("expiry_sweep_s=86400")
    service.wait_status(lambda status: status["registry"]["sweeps"] and sweeps_of(status)["expiry"]["counts"])


@pytest.fixture
def host(sealed_home: Path) -> Iterator[RegistryHost]:
    made = RegistryHost(load_settings(env={}))
    made.start()
    yield made
    made.stop()


def test_a_registry_whose_loop_ended_is_told_and_begun_anew(host: RegistryHost) -> None:
    with Registry(find()) as registry:
        registry.send(question("before"))
    server = host._server
    assert server is not None
    server.stop()  # nobody asked for it: as if it had died
    until(lambda: host.describe()["state"] == "failed")
    told = host.describe()
    assert told["reasons"] == ["The registry's event loop ended."]
    assert told["failures"] == 1
    answer = httpx.get(f"{find().url}/health", timeout=5)
    assert (answer.status_code, answer.json()["code"]) == (503, "storage")
    until(lambda: host.describe()["state"] == "ok")
    assert host.describe()["reasons"] == []
    with Registry(find()) as registry:
        assert [message.message_id for message in registry.inbox("b").items] == ["before"]


def test_a_figure_that_cannot_be_had_holds_nobody_up(
    host: RegistryHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Registry(find()) as registry:
        registry.send(question("before"))
    until(lambda: host.describe()["state"] == "ok")
    server = host._server
    assert server is not None
    until(lambda: host.describe()["store"]["messages"] == 1)
    monkeypatch.setattr(registry_figures, "FRESH_SECONDS", 0.0)
    server._on_loop(lambda: time.sleep(2.0))
    started = time.monotonic()
    told = host.describe()
    assert time.monotonic() - started < 0.8
    assert told["store"]["messages"] == 1


def test_a_database_url_that_cannot_be_used_is_told_and_the_next_one_taken(sealed_home: Path) -> None:
    host = RegistryHost(load_settings(env={}, database_url="sqlite://no"))
    host.start()
    try:
        httpx.get(f"{find().url}/health", timeout=10)
        until(lambda: host.describe()["state"] == "failed")
        assert "database_url" in host.describe()["reasons"][0]
        host.apply(load_settings(env={}))
        until(lambda: host.describe()["state"] == "ok")
        assert host.describe()["reasons"] == []
        assert not any("database_url" in notice for notice in host.describe()["notices"])
    finally:
        host.stop()


def test_an_address_that_was_removed_or_overwritten_is_written_down_again(host: RegistryHost) -> None:
    before = paths.registry_address().stat()
    host.check_address()
    assert paths.registry_address().stat().st_mtime_ns == before.st_mtime_ns, "nothing was to be done"
    address = find()
    paths.registry_address().write_text('{"url": "http://127.0.0.1:1", "pid": 1}')
    host.check_address()
    assert find() == address
    paths.registry_address().unlink()
    host.check_address()
    assert find() == address
    host.stop()
    host.check_address()
    assert not paths.registry_address().exists()


def test_an_address_that_cannot_be_written_down_is_told_until_it_can(sealed_home: Path) -> None:
    paths.registry_address().mkdir(parents=True)
    host = RegistryHost(load_settings(env={}))
    host.start()
    try:
        assert str(paths.registry_address()) in host.describe()["reasons"][0]
        paths.registry_address().rmdir()
        host.check_address()
        assert host.describe()["reasons"] == []
        assert find().url == host.describe()["url"]
    finally:
        host.stop()


def test_a_port_that_cannot_be_had_is_told_and_the_next_setting_taken(
    sealed_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(port: int) -> None:
        raise OSError(errno.EACCES, "Permission denied")

    with monkeypatch.context() as without_a_right:
        without_a_right.setattr(socket.socket, "bind", lambda self, address: refuse(address[1]))
        host = RegistryHost(load_settings(env={}))
        host.start()
    try:
        told = host.describe()
        assert (told["state"], told["url"]) == ("failed", None)
        assert "can't be listened on" in told["reasons"][0]
        assert not paths.registry_address().exists()
        with monkeypatch.context() as without_a_right:
            without_a_right.setattr(socket.socket, "bind", lambda self, address: refuse(address[1]))
            for _ in range(1000):  # more than anybody hears: nobody is there to hear them
                host.apply(load_settings(env={}))
        host.apply(load_settings(env={}))
        assert (host.describe()["state"], host.describe()["reasons"]) == ("idle", [])
        with Registry(find()) as registry:
            registry.send(question("now"))
    finally:
        host.stop()
