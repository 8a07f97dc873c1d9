"""After a reconnect: everything once and in order, or told to fetch everything."""

from __future__ import annotations

import asyncio
import json
import random
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed

from integration.registry.running import Client, Running


@pytest.fixture(scope="module")
def registry(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with Running(tmp_path_factory.mktemp("registry")) as running:
        yield running


def _replayed(client: Client) -> tuple[list[dict[str, Any]], int]:
    """What is replayed, and the seq up to which it went."""
    seen: list[dict[str, Any]] = []
    end = client.until("replayed", seen)
    return seen, end["seq"]


def test_what_was_missed_comes_in_order_and_marked(registry: Running) -> None:
    first = registry.post("missed", content="known", toAgentId="me")
    stored = [registry.post("missed", content=str(number), toAgentId="me") for number in range(30)]
    registry.post("other", content="not mine")
    with registry.connect("missed", "events=none") as socket:
        socket.identify("me", since=first["seq"], epoch=socket.snapshot["epoch"])
        seen, end = _replayed(socket)

        assert [frame["data"]["messageId"] for frame in seen] == [message["messageId"] for message in stored]
        assert all(frame["replay"] for frame in seen)
        assert end >= stored[-1]["seq"]
        live = registry.post("missed", content="live", toAgentId="me")
        frame = socket.until("channel.message")
        assert frame["data"]["messageId"] == live["messageId"]
        assert "replay" not in frame


def test_acks_are_replayed_too(registry: Running) -> None:
    message = registry.post("acked", toAgentId="me")
    ack = {"messageId": message["messageId"], "conversationId": message["conversationId"]}
    ack |= {"state": "displayed_to_client", "actorId": "me", "actorType": "client"}
    assert registry.http.post("/channel/acks", json=ack, headers=registry.headers("acked")).status_code == 201
    with registry.connect("acked", "events=none") as socket:
        socket.identify("me", since=message["seq"], epoch=socket.snapshot["epoch"])
        seen, _end = _replayed(socket)

    assert [(frame["type"], frame["data"]["state"]) for frame in seen] == [
        ("channel.ack", "displayed_to_client")
    ]


def test_own_holds_for_the_replay_too(registry: Running) -> None:
    registry.post("own", fromAgentId="a", toAgentId="b", content="not mine")
    registry.post("own", fromAgentId="a", toAgentId="me", content="mine")
    with registry.connect("own", "events=none") as socket:
        socket.identify("me", since=0, events="own")
        seen, _end = _replayed(socket)

    assert [frame["data"]["content"] for frame in seen] == ["mine"]


def test_a_socket_that_heard_something_before_it_identified_gets_the_rest_once(registry: Running) -> None:
    registry.post("heard", content="before")
    with registry.connect("heard") as socket:
        registry.post("heard", content="heard live")
        assert socket.until("channel.message")["data"]["content"] == "heard live"
        socket.identify("me", since=0)
        seen, _end = _replayed(socket)
        registry.post("heard", content="after")

        assert [frame["data"]["content"] for frame in seen] == ["before"]
        assert [frame["data"]["content"] for frame in socket.all_until_now()] == ["after"]


def test_with_nothing_missed_there_is_nothing_but_the_end(registry: Running) -> None:
    registry.post("nothing")
    with registry.connect("nothing", "events=none") as socket:
        socket.identify("me", since=socket.snapshot["seq"], epoch=socket.snapshot["epoch"])

        assert _replayed(socket) == ([], socket.snapshot["seq"])


@pytest.mark.parametrize(
    ("cursor", "reason"),
    [
        ({"since": 1, "epoch": "another"}, "epoch"),
        ({"since": 1}, "epoch"),
        ({"since": 10_000_000}, "too_new"),
    ],
)
def test_a_cursor_that_means_nothing_here(registry: Running, cursor: dict[str, Any], reason: str) -> None:
    identity = f"cursor-{reason.replace('_', '-')}"
    with registry.connect(identity, "events=none") as socket:
        if reason == "too_new":
            cursor["epoch"] = socket.snapshot["epoch"]
        socket.identify("me", **cursor)
        resync = socket.until("resync")

        assert resync["reason"] == reason
        assert (resync["seq"], resync["epoch"]) == (registry.hub.seq, registry.hub.epoch)
        # From here on it hears what happens.
        registry.post(identity, content="live")
        assert [frame["data"]["content"] for frame in socket.all_until_now()] == ["live"]


def test_before_it_identifies_a_socket_may_ask_for_nothing(registry: Running) -> None:
    with registry.connect("silent", "events=none") as socket:
        registry.post("silent", content="unheard")
        assert socket.all_until_now() == []

        socket.identify("me")
        registry.post("silent", content="heard")
        assert [frame["data"]["content"] for frame in socket.all_until_now()] == ["heard"]


def test_many_large_messages_are_replayed_to_a_slow_reader(registry: Running) -> None:
    content = "x" * 200_000
    stored = [registry.post("large", content=content, toAgentId="me")["messageId"] for _ in range(60)]
    with registry.connect("large", "events=none", max_queue=1) as socket:
        socket.identify("me", since=0)
        seen, _end = _replayed(socket)

    assert [frame["data"]["messageId"] for frame in seen] == stored


def test_a_replay_ends_when_the_socket_becomes_somebody_else(registry: Running) -> None:
    stored = [registry.post("changing", content="x" * 20_000)["messageId"] for _ in range(200)]
    with registry.connect("changing", "events=none", max_queue=1) as socket:
        socket.say("identify", agentId="first", since=0)
        socket.say("identify", agentId="second", since=0)
        seen: list[dict[str, Any]] = []
        while socket.until("identified", seen)["agentId"] == "first":
            pass
        seen.clear()
        socket.until("replayed", seen)

        told = [frame["data"]["messageId"] for frame in seen]
        assert told == stored
        assert socket.all_until_now() == []
    registry.wait_for(lambda: registry.hub.describe()["sockets"]["replaying"] == 0)


def test_a_replay_to_a_peer_that_goes_is_over(registry: Running) -> None:
    for _ in range(200):
        registry.post("going", content="x" * 50_000)
    socket = registry.connect("going", "events=none", max_queue=1)
    socket.say("identify", agentId="me", since=0)
    registry.wait_for(lambda: registry.hub.describe()["sockets"]["replaying"] == 1)
    socket.connection.socket.close()

    registry.wait_for(lambda: registry.hub.describe()["sockets"]["replaying"] == 0)


def test_a_restart_keeps_messages_and_cursors(tmp_path: Path) -> None:
    with Running(tmp_path) as running:
        known = running.post(content="known", toAgentId="me")
        epoch = running.hub.epoch
        running.post(content="missed", toAgentId="me")
    with Running(tmp_path) as running, running.connect(query="events=none") as socket:
        assert socket.snapshot["epoch"] == epoch
        socket.identify("me", since=known["seq"], epoch=epoch)
        seen, _end = _replayed(socket)

    assert [frame["data"]["content"] for frame in seen] == ["missed"]


def test_a_database_that_was_deleted_makes_sockets_start_over(tmp_path: Path) -> None:
    with Running(tmp_path) as running, running.agent("me") as socket:
        running.post(content="lost")
        epoch = running.hub.epoch
        for name in ("", "-wal", "-shm"):
            Path(f"{running.database}{name}").unlink(missing_ok=True)

        stored = running.post(content="new")

        seen: list[dict[str, Any]] = []
        resync = socket.until("resync", seen)
        assert [frame["data"]["content"] for frame in seen] == ["lost"]
        assert resync["reason"] == "epoch"
        assert resync["epoch"] == running.hub.epoch != epoch
        assert socket.until("channel.message")["data"]["messageId"] == stored["messageId"]
        assert running.hub.seq == stored["seq"]


def test_a_database_that_was_set_back_makes_sockets_start_over(tmp_path: Path) -> None:
    with Running(tmp_path) as running, running.agent("me") as socket:
        kept = running.post(content="kept")
        older = tmp_path / "older"
        with closing(sqlite3.connect(running.database)) as now, closing(sqlite3.connect(older)) as copy:
            now.backup(copy)
        lost = running.post(content="lost")
        epoch = running.hub.epoch
        older.replace(running.database)
        for name in ("-wal", "-shm"):
            Path(f"{running.database}{name}").unlink(missing_ok=True)

        new = running.post(content="new", toAgentId="me")

        assert new["seq"] == lost["seq"], "the number is drawn a second time"
        resync = socket.until("resync")
        assert (resync["reason"], resync["seq"]) == ("epoch", kept["seq"])
        assert socket.until("channel.message")["data"]["content"] == "new"
        with running.connect(query="events=none") as late:
            late.identify("late", since=lost["seq"], epoch=epoch)
            assert late.until("resync")["reason"] == "epoch"


# Random disconnects under load.

SENDERS = 3
EACH = 250


@pytest.mark.parametrize("seed", range(4))
def test_every_event_comes_once_and_in_order_over_random_disconnects(registry: Running, seed: int) -> None:
    asyncio.run(asyncio.wait_for(_reader_and_senders(registry, f"random-{seed}", seed), 60))


async def _reader_and_senders(registry: Running, identity: str, seed: int) -> None:
    chance = random.Random(seed)
    reader = asyncio.create_task(_read_all(registry, identity, chance))
    sent = await asyncio.gather(*(_send_all(registry, identity, name) for name in range(SENDERS)))
    registry_seqs = sorted(seq for seqs in sent for seq in seqs)
    told, disconnects = await reader

    assert [seq for seq, _id in told] == registry_seqs
    assert len({message_id for _seq, message_id in told}) == SENDERS * EACH
    assert disconnects >= 3


async def _send_all(registry: Running, identity: str, name: int) -> list[int]:
    url = f"ws://127.0.0.1:{registry.port}/ws?events=none"
    seqs = []
    async with connect(url, additional_headers=registry.headers(identity), compression=None) as socket:
        await socket.recv()
        for start in range(0, EACH, 10):
            for number in range(start, start + 10):
                draft = {"fromAgentId": f"sender-{name}", "kind": "chat", "content": f"{name}.{number}"}
                await socket.send(json.dumps({"type": "channel.send", "requestId": number, "message": draft}))
            for _ in range(10):
                seqs.append(json.loads(await socket.recv())["data"]["message"]["seq"])
    return seqs


async def _read_all(
    registry: Running, identity: str, chance: random.Random
) -> tuple[list[tuple[int, str]], int]:
    """Read with a cursor, breaking the connection off at any moment, until everything was read."""
    told: list[tuple[int, str]] = []
    cursor, disconnects = 0, 0
    url = f"ws://127.0.0.1:{registry.port}/ws?events=none"
    while True:
        async with connect(url, additional_headers=registry.headers(identity), compression=None) as socket:
            epoch = json.loads(await socket.recv())["epoch"]
            identify = {"type": "identify", "agentId": "reader", "since": cursor, "epoch": epoch}
            await socket.send(json.dumps(identify))
            left = chance.randrange(1, 120)
            try:
                while left and len(told) < SENDERS * EACH:
                    frame = json.loads(await socket.recv())
                    if frame["type"] == "channel.message":
                        cursor = frame["seq"]
                        told.append((frame["seq"], frame["data"]["messageId"]))
                        left -= 1
            except ConnectionClosed:
                pass
            socket.transport.abort()
        if len(told) >= SENDERS * EACH:
            return told, disconnects
        disconnects += 1
