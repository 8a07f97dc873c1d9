"""The registry in the running service, seen from outside: when it is loaded, how it stands, how it ends."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import stat
import subprocess
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import ClientConnection, connect

import readme
from agent_bridge import paths
from agent_bridge.channel.errors import StorageError, TooManyError
from agent_bridge.channel.model import AckState, ActorType, Draft, Kind
from agent_bridge.channel.writes import Acknowledge
from agent_bridge.client.address import find
from agent_bridge.client.http import Registry
from agent_bridge.daemon import client
from agent_bridge.errors import AgentBridgeError, NotRunningError
from agent_bridge.projects import Project
from integration.daemon.conftest import Service, Starter, wait_for_text

Maker = Callable[..., Project]
NOBODY = 65_534
REGISTRYS_OWN = {"fastapi", "httpx", "sqlalchemy", "starlette", "uvicorn", "uvloop", "websockets"}
"""What only the registry needs: a service that is asked for nothing neither waits nor pays for it."""


def chat(name: str = "m1", *, sender: str = "a", to: str | None = "b") -> Draft:
    return Draft(
        identity="global",
        from_agent_id=sender,
        to_agent_id=to,
        kind=Kind.CHAT,
        content=f"this is {name}",
        message_id=name,
    )


def state_is(*states: str) -> Callable[[dict[str, Any]], bool]:
    return lambda status: status["registry"]["state"] in states


def has_loaded(service: Service) -> bool:
    """Whether the registry's libraries are in the process."""
    return "uvloop" in Path(f"/proc/{service.process.pid}/maps").read_text()


def imported(service: Service) -> set[str]:
    """What a service with PYTHONPROFILEIMPORTTIME has imported of the registry's libraries."""
    lines = service.log.read_text().splitlines()
    return REGISTRYS_OWN & {line.rpartition("|")[2].strip() for line in lines if "import time:" in line}


def sweep_of(status: dict[str, Any], name: str) -> dict[str, Any]:
    found: dict[str, Any] = next(one for one in status["registry"]["sweeps"] if one["name"] == name)
    return found


def send(*drafts: Draft) -> None:
    with Registry(find()) as registry:
        for draft in drafts:
            registry.send(draft)


def test_it_listens_when_the_service_is_ready_and_is_loaded_for_the_first_caller(
    start_service: Starter,
) -> None:
    service = start_service(env={"PYTHONPROFILEIMPORTTIME": "1"})
    registry = client.read_status()["registry"]
    assert (registry["state"], registry["reasons"], registry["store"]) == ("idle", [], None)
    assert json.loads(paths.registry_address().read_bytes()) == {
        "url": registry["url"],
        "pid": service.process.pid,
    }
    assert registry["token_file"] == str(paths.registry_token())
    for path in (paths.registry_address(), paths.registry_token()):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert imported(service) == set()
    assert not paths.channel_database().parent.exists()

    assert httpx.get(f"{registry['url']}/health", timeout=20).json() == {"status": "ok"}
    assert imported(service) == REGISTRYS_OWN
    registry = service.wait_status(state_is("ok"))["registry"]
    assert registry["store"]["state"] == "ok"
    assert registry["store"]["path"] == str(paths.channel_database())
    assert {sweep["name"] for sweep in registry["sweeps"]} == {
        "expiry",
        "terminal",
        "retention",
        "presence",
        "upkeep",
    }


def test_with_messages_it_is_loaded_without_a_caller_once_the_service_is_ready(
    start_service: Starter,
) -> None:
    service = start_service()
    send(chat())
    assert service.end() == 0
    service = start_service()
    status = service.wait_status(state_is("ok"))
    assert status["registry"]["store"]["messages"] == 1
    assert has_loaded(service)


def test_a_port_in_use_is_left_alone_and_told(start_service: Starter) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        service = start_service(f"registry_port={port}")
        status = client.read_status()
    assert status["state"] == "ok"
    assert status["registry"]["url"] != f"http://127.0.0.1:{port}"
    (notice,) = status["registry"]["notices"]
    taken = status["registry"]["url"].rpartition(":")[2]
    assert notice.startswith(f"Port {port} was in use, so the registry listens on {taken}.")
    assert notice in service.log.read_text()
    send(chat())


def test_two_services_of_two_homes_have_a_registry_each(
    start_service: Starter, sealed_home: Path, short_tmp: Path
) -> None:
    start_service()
    send(chat("first"))
    other_home = {"HOME": str(short_tmp / "other"), "XDG_RUNTIME_DIR": str(short_tmp / "run2")}
    other_home |= {"XDG_STATE_HOME": str(short_tmp / "other/state")}
    other_home |= {"XDG_CONFIG_HOME": str(short_tmp / "other/config")}
    (short_tmp / "run2").mkdir(mode=0o700)
    start_service(env=other_home)
    env = os.environ | other_home
    assert find(env).url != find().url
    with Registry(find(env)) as other, Registry(find()) as own:
        assert other.inbox("b").items == ()
        assert [message.message_id for message in own.inbox("b").items] == ["first"]
    stolen = httpx.get(f"{find(env).url}/agents", headers={"Authorization": f"Bearer {find().token}"})
    assert stolen.status_code == 401


def test_a_restart_keeps_port_token_messages_acks_and_what_is_hidden(start_service: Starter) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = f"registry_port={free.getsockname()[1]}"
    service = start_service(port)
    with Registry(find()) as registry:
        sent = registry.send(chat()).message
        registry.ack(
            Acknowledge(
                identity="global",
                conversation_id=sent.conversation_id,
                message_id="m1",
                state=AckState.DISPLAYED,
                actor_id="b",
                actor_type=ActorType.CLIENT,
            )
        )
        registry.suppress(sent.conversation_id, "b")
        before = find(), registry.conversation(sent.conversation_id)
    assert service.end() == 0
    start_service(port)
    with Registry(find()) as registry:
        assert (find(), registry.conversation(sent.conversation_id)) == before
        assert len(before[1].acks) == 1
        assert registry.conversations(agent_id="b").items == ()
        assert len(registry.conversations(agent_id="a").items) == 1


def test_it_ends_well_sockets_are_told_and_the_database_is_whole_in_one_file(start_service: Starter) -> None:
    service = start_service()
    send(chat())
    address = find()
    headers = {"Authorization": f"Bearer {address.token}"}
    with connect(address.socket_url, additional_headers=headers) as peer:
        assert json.loads(peer.recv(5))["type"] == "snapshot"
        started = time.monotonic()
        service.send(signal.SIGTERM)
        with pytest.raises(ConnectionClosed):
            while_open(lambda: hear(peer, set()))
        assert peer.close_code == 1001
    assert service.process.wait(5) == 0
    assert time.monotonic() - started < 5.0
    assert not paths.registry_address().exists()
    with pytest.raises(NotRunningError):
        find()
    assert [path.name for path in paths.channel_database().parent.iterdir()] == ["channel.sqlite"]
    assert "Traceback" not in service.log.read_text()


def test_what_is_answered_while_it_ends_is_stored(start_service: Starter) -> None:
    service = start_service()
    send(chat("first"))
    answered: list[str] = []
    enough = threading.Event()

    def write(name: str) -> None:
        try:
            with Registry(find()) as registry:
                for number in range(100_000):
                    posted = registry.send(chat(f"{name}-{number}", sender=name, to=None))
                    answered.append(posted.message.message_id)
                    if number == 20:
                        enough.set()
        except AgentBridgeError:
            return  # the service is gone, which is what this thread waits for

    writers = [threading.Thread(target=write, args=(f"w{number}",)) for number in range(4)]
    for writer in writers:
        writer.start()
    assert enough.wait(20)
    started = time.monotonic()
    assert service.end() == 0
    assert time.monotonic() - started < 6.0
    for writer in writers:
        writer.join(20)
    start_service()
    with Registry(find()) as registry:
        there = every_stored(registry)
    assert len(answered) > 20
    assert set(answered) <= there


def test_what_is_stored_while_it_ends_is_answered_on_the_socket_too(start_service: Starter) -> None:
    service = start_service()
    send(chat("first"))
    address = find()
    answered: set[str] = set()
    with connect(
        address.socket_url, additional_headers={"Authorization": f"Bearer {address.token}"}, max_queue=None
    ) as peer:
        for number in range(500):
            message = {"fromAgentId": "a", "toAgentId": f"b{number}", "kind": "chat", "content": "hello"}
            frame = {"type": "channel.send", "message": message | {"messageId": f"m{number}"}}
            peer.send(json.dumps(frame | {"requestId": number}))
        while not answered:
            hear(peer, answered)
        service.send(signal.SIGTERM)
        with pytest.raises(ConnectionClosed):
            while_open(lambda: hear(peer, answered))
        assert peer.close_code == 1001
    assert service.process.wait(10) == 0
    start_service()
    with Registry(find()) as registry:
        assert every_stored(registry) == answered | {"first"}


def hear(peer: ClientConnection, answered: set[str]) -> None:
    """Read a frame; an answer to a message is noted."""
    frame = json.loads(peer.recv(10))
    if frame["type"] == "channel.sent":
        answered.add(frame["data"]["message"]["messageId"])


def while_open(read: Callable[[], None]) -> None:
    """Read until the other side closes."""
    while True:
        read()


def every_stored(registry: Registry) -> set[str]:
    """The ids of all messages, from the events since the beginning."""
    found: set[str] = set()
    seq, more = 0, True
    while more:
        page = registry.events(seq)
        found |= {event["data"]["messageId"] for event in page.items if event["type"] == "channel.message"}
        seq, more = page.seq, page.more
    return found


def test_told_to_stop_while_it_is_being_loaded_it_stops(start_service: Starter) -> None:
    service = start_service()
    with socket.create_connection(("127.0.0.1", find().port), 5):
        service.wait_status(state_is("loading", "ok"))
        started = time.monotonic()
        assert service.end() == 0
        assert time.monotonic() - started < 8.0


def test_settings_are_taken_at_a_reload_apart_from_port_and_database(start_service: Starter) -> None:
    service = start_service()
    send(chat())
    assert sweep_of(service.wait_status(state_is("ok")), "expiry")["interval_s"] == 60.0
    paths.config_file().parent.mkdir(parents=True)
    paths.config_file().write_text(
        "expiry_sweep_s = 0.1\nregistry_port = 4000\ninbox_limit = 1\ndatabase_url = 'postgresql://x/y'\n"
    )
    service.send(signal.SIGHUP)
    registry = service.wait_status(lambda status: sweep_of(status, "expiry")["runs"] > 3)["registry"]
    assert sweep_of({"registry": registry}, "expiry")["interval_s"] == 0.1
    assert sweep_of({"registry": registry}, "retention")["runs"] == 1
    assert any("registry_port" in notice and "restart" in notice for notice in registry["notices"])
    assert any("database_url" in notice and "restart" in notice for notice in registry["notices"])
    with pytest.raises(TooManyError):
        send(chat("m2"))


def test_a_database_that_nobody_answers_for_is_told_and_the_rest_goes_on(
    start_service: Starter, make_project: Maker
) -> None:
    project = make_project()
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        url = f"postgresql+psycopg://me:secret@127.0.0.1:{silent.getsockname()[1]}/none"
        service = start_service(f"database_url={url}")
        status = service.wait_status(state_is("degraded"))
        assert status["state"] == "degraded"
        assert "database server can't be reached" in status["registry"]["reasons"][0]
        assert set(status["registry"]["reasons"]) <= set(status["reasons"])
        with pytest.raises(StorageError, match="can't be reached"):
            send(chat())
    (project.store / "entries" / "a.md").write_text("one")
    wait_for_text(project.root / "OUT.md", "one\n")
    assert "secret" not in json.dumps(client.read_status()) + service.log.read_text()
    assert "Traceback" not in service.log.read_text()


def test_a_token_that_others_may_read_lets_nobody_in_until_it_is_closed_again(
    start_service: Starter,
) -> None:
    service = start_service()
    send(chat())
    address = find()
    paths.registry_token().chmod(0o644)
    status = client.read_status()
    assert status["state"] == "degraded"
    assert str(paths.registry_token()) in status["registry"]["reasons"][0]
    headers = {"Authorization": f"Bearer {address.token}"}
    assert httpx.get(f"{address.url}/agents", headers=headers).status_code == 503
    paths.registry_token().chmod(0o600)
    assert httpx.get(f"{address.url}/agents", headers=headers).status_code == 200
    service.wait_status(lambda status: status["state"] == "ok")


@pytest.mark.skipif(os.getuid() != 0, reason="only root can be another user")
def test_another_user_is_refused_and_nothing_is_stored(start_service: Starter) -> None:
    start_service()
    send(chat())
    address = find()
    message = {"fromAgentId": "x", "kind": "chat", "content": "hello", "toAgentId": "b"}

    def try_everything() -> list[object]:
        try:
            token = paths.registry_token().read_text().strip()
        except PermissionError:
            token = "guessed"
        headers = {"Authorization": f"Bearer {token}"}
        answer = httpx.post(f"{address.url}/channel/messages", json=message, headers=headers)
        return [token, answer.status_code, answer.json()["code"]]

    assert as_nobody(try_everything) == ["guessed", 401, "unauthorized"]
    with Registry(address) as registry:
        assert [message.message_id for message in registry.inbox("b").items] == ["m1"]


def as_nobody(act: Callable[[], list[object]]) -> list[object]:
    """What `act` answers in a process of another user."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        answer: object = None
        try:
            os.setgroups([])
            os.setgid(NOBODY)
            os.setuid(NOBODY)
            answer = act()
        except BaseException as error:  # noqa: BLE001 (told by the parent, which this process must not become)
            answer = [repr(error)]
        finally:
            os.write(writing, json.dumps(answer).encode())
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as told:
        answered: list[object] = json.loads(told.read())
    os.waitpid(child, 0)
    return answered


def test_the_readmes_request_works(start_service: Starter) -> None:
    if shutil.which("curl") is None:
        pytest.skip("curl is not installed")
    start_service()
    shown = readme.TEXT.partition("<!-- curl -->\n```\n")[2].partition("```")[0]
    done = subprocess.run(["sh", "-ec", shown], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == []


def test_a_save_arrives_while_messages_pour_in(start_service: Starter, make_project: Maker) -> None:
    project = make_project()
    service = start_service("send_burst=1000000", "inbox_limit=1000000")
    send(chat("first"))
    ended = threading.Event()

    def pour(name: str) -> None:
        with Registry(find()) as registry:
            number = 0
            while not ended.is_set():
                number += 1
                registry.send(chat(f"{name}-{number}", sender=name))

    writers = [threading.Thread(target=pour, args=(f"w{number}",)) for number in range(4)]
    for writer in writers:
        writer.start()
    try:
        for number in range(5):
            (project.store / "entries" / "a.md").write_text(f"{number}")
            assert wait_for_text(project.root / "OUT.md", f"{number}\n") < 1.0
    finally:
        ended.set()
        for writer in writers:
            writer.join(20)
    assert client.read_status()["watch"]["missed"] == 0
    assert service.wait_status(state_is("ok"))["state"] == "ok"
