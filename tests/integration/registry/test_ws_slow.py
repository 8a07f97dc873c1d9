"""Peers that don't read: broken off, never waited for, and never at the cost of others or of memory."""

from __future__ import annotations

import asyncio
import base64
import json
import socket as sockets
from collections.abc import Iterator
from pathlib import Path

import pytest
from websockets.asyncio.client import connect as connect_async
from websockets.sync.client import connect

from agent_bridge.registry.peer import Peer
from integration.registry.running import Client, Running

BACKLOG = 50


@pytest.fixture(scope="module")
def registry(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with Running(tmp_path_factory.mktemp("registry"), socket_backlog=BACKLOG, socket_ping_s=30) as running:
        yield running


def _unread(registry: Running, identity: str) -> Client:
    """A peer whose receive buffer is small, and which reads only when it is told to."""
    raw = sockets.socket()
    raw.setsockopt(sockets.SOL_SOCKET, sockets.SO_RCVBUF, 4096)
    raw.connect(("127.0.0.1", registry.port))
    opening = connect(
        f"ws://127.0.0.1:{registry.port}/ws",
        sock=raw,
        additional_headers=registry.headers(identity),
        compression=None,
        max_size=None,
        max_queue=1,
    )
    client = Client(opening.__enter__())
    client.identify("slow")
    return client


def test_who_doesnt_read_is_cut_off_and_the_others_get_everything(registry: Running) -> None:
    slow = _unread(registry, "slow")
    content = "x" * 20_000
    with registry.agent("fast", "slow") as fast:
        cut_off = registry.figures()["cut_off"]
        told = 0
        while registry.figures()["cut_off"] == cut_off:
            registry.post("slow", content=content, toAgentId="nobody")
            told += 1
            assert told < 2000, "the slow peer was never cut off"
            # What waits for it is bounded all the time.
            assert registry.figures()["frames_waiting"] <= BACKLOG

        assert not registry.hub.reaches("slow", "slow")
        assert len([1 for frame in fast.all_until_now() if frame["type"] == "channel.message"]) == told
    slow.connection.socket.close()


def test_who_sends_without_reading_is_not_read_from_and_nothing_is_lost(registry: Running) -> None:
    asyncio.run(asyncio.wait_for(_send_then_read(registry), 30))


async def _send_then_read(registry: Running) -> None:
    content, count = "x" * 50_000, 400
    url = f"ws://127.0.0.1:{registry.port}/ws?events=none"
    opening = connect_async(url, additional_headers=registry.headers("eager"), compression=None, max_queue=1)
    async with opening as sender:

        async def send_all() -> None:
            for number in range(count):
                draft = {"fromAgentId": "eager", "toAgentId": "b", "kind": "chat", "content": content}
                frame = {"type": "channel.send", "requestId": number, "message": draft}
                await sender.send(json.dumps(frame))

        sending = asyncio.create_task(send_all())
        await asyncio.to_thread(registry.wait_for, lambda: _is_left_waiting(registry, "eager"))
        assert not sending.done(), "everything was read from a peer that takes no answers"
        assert (await asyncio.to_thread(registry.figures))["frames_waiting"] <= BACKLOG

        await sender.recv()
        answers = [json.loads(await sender.recv())["data"]["requestId"] for _ in range(count)]
        await sending
    assert answers == list(range(count))


def _is_left_waiting(registry: Running, identity: str) -> bool:
    peer = _peer_of(registry, identity)
    return peer is not None and not peer.connection.is_reading


def test_a_burst_larger_than_the_backlog_reaches_a_peer_that_reads(registry: Running) -> None:
    count = 20 * BACKLOG
    with (
        registry.agent("sender", "burst", events="own") as sender,
        registry.agent("reader", "burst") as reader,
    ):
        for number in range(count):
            frame = {"kind": "chat", "content": str(number), "toAgentId": "reader", "conversationId": "c"}
            sender.connection.send(
                json.dumps({"type": "channel.send", "requestId": number, "message": frame})
            )

        contents = [reader.until("channel.message")["data"]["content"] for _ in range(count)]

    assert contents == [str(number) for number in range(count)]


def test_who_reads_nothing_for_long_is_cut_off_though_there_is_room(tmp_path: Path) -> None:
    with Running(tmp_path, socket_ping_s=0.3) as registry, registry.agent("well", "stuck") as well:
        stuck = _unread(registry, "stuck")
        for _ in range(30):
            registry.post("stuck", content="x" * 200_000, toAgentId="well")
            assert well.until("channel.message")

        registry.wait_for(lambda: not registry.hub.reaches("stuck", "slow"))
        assert registry.figures()["cut_off"] == 1
        assert registry.hub.reaches("stuck", "well")
        stuck.connection.socket.close()


def test_pings_whose_answers_nobody_reads_are_bounded(registry: Running) -> None:
    cut_off = registry.figures()["cut_off"]
    ping = b"\x89\xfd\x00\x00\x00\x00" + b"p" * 125
    with sockets.create_connection(("127.0.0.1", registry.port), timeout=5) as raw:
        raw.sendall(_upgrade(registry, "pinging"))
        assert b" 101 " in raw.recv(4096)
        registry.wait_for(lambda: _peer_of(registry, "pinging"))
        registry.on_loop(lambda: _keep_little(_peer_of(registry, "pinging")))
        try:
            for _ in range(400):
                raw.sendall(ping * 500)
        except OSError:
            pass
        registry.wait_for(lambda: registry.hub.traffic.cut_off > cut_off)


def _peer_of(registry: Running, identity: str) -> Peer | None:
    return next((peer for peer in registry.hub.peers if peer.identity == identity), None)


def _keep_little(peer: Peer | None) -> None:
    """The system shall not hold megabytes for a peer on its own."""
    assert peer is not None
    socket = peer.connection._transport.get_extra_info("socket")
    socket.setsockopt(sockets.SOL_SOCKET, sockets.SO_SNDBUF, 16_384)


def _upgrade(registry: Running, identity: str) -> bytes:
    headers = {
        "Host": f"127.0.0.1:{registry.port}",
        "Upgrade": "websocket",
        "Connection": "Upgrade",
        "Sec-WebSocket-Version": "13",
        "Sec-WebSocket-Key": base64.b64encode(bytes(16)).decode(),
        **registry.headers(identity),
    }
    lines = ["GET /ws HTTP/1.1", *(f"{name}: {value}" for name, value in headers.items()), "", ""]
    return "\r\n".join(lines).encode()


def test_who_sends_a_flood_of_small_frames_leaves_the_others_their_turns(registry: Running) -> None:
    """They come in faster than they can be handled: one read of the loop may hold 40,000 of them."""
    count, handled, most = 150_000, registry.hub.traffic.frames_received, 0
    first, loop = handled, registry._loop

    def look() -> None:
        nonlocal handled, most
        now = registry.hub.traffic.frames_received
        most, handled = max(most, now - handled), now
        if handled < first + count:
            loop.call_soon(look)

    loop.call_soon_threadsafe(look)
    with registry.connect("flood") as client:
        client.connection.socket.sendall(b"\x82\x80\0\0\0\0" * count)
        registry.wait_for(lambda: handled == first + count)

        client.identify("flood")  # in order, and nothing of it is lost
    assert 0 < most < 20_000
