"""The load: a process of its own that talks to the registry and to the floor. Prints its figures as JSON.

Argument: a JSON object with `task`, the name of a function below, and what that takes. A server is
`{"port", "token"}`; the floor has no token.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import time
from collections.abc import Callable
from typing import Any

import uvloop
from channel_wire import Http, Socket

Server = dict[str, Any]
PATIENCE_S = 60.0
RECEIVER = f"receiver-{os.getpid()}"
"""Another one each time: nobody answers, and an inbox that has grown for minutes is no inbox."""
TEXT = "The build of part seven is red since this morning; I look at the tests of the parser now. " * 3


async def latency(servers: dict[str, Server], turns: int) -> dict[str, list[float]]:
    """Milliseconds from the moment of a post to its frame on the target's socket, in turns."""
    ends = {name: await _Pair.open(server) for name, server in servers.items()}
    took: dict[str, list[float]] = {name: [] for name in servers}
    for turn in range(-20, turns):
        for name, pair in ends.items():
            await asyncio.sleep(0.003)
            one = await pair.once(f"turn{turn}.")
            if turn >= 0:
                took[name].append(one * 1000)
    return took


async def http(server: Server, connections: int, seconds: float) -> dict[str, float]:
    """Messages a second that posts on some connections get answered, one at a time on each."""
    receiver = await _Receiver.open(server)
    senders = [await connect(server) for _ in range(connections)]
    clock = _Window(seconds)

    async def work(sender: Http, number: int) -> None:
        body = message(f"sender-{number}", "load")
        while not clock.is_over():
            status, answer = await sender.ask("POST", "/channel/messages", body)
            if status != 201:
                raise SystemExit(f"{status}: {answer[:300]!r}")
            clock.count()

    await asyncio.gather(*(work(sender, number) for number, sender in enumerate(senders)))
    await receiver.has(clock.total)
    return {"rate": clock.rate()}


async def sockets(server: Server, connections: int, window: int, seconds: float) -> dict[str, float]:
    """Messages a second of `channel.send` frames, each answered; `window` are under way on each socket."""
    receiver = await _Receiver.open(server)
    clock = _Window(seconds)
    waiting = 0
    ended = asyncio.get_running_loop().create_future()

    def make(number: int) -> Callable[[bytes], None]:
        sent = json.loads(message(f"sender-{number}", "load"))
        frame = json.dumps({"type": "channel.send", "requestId": number, "message": sent})
        whole = Socket.frame(frame.encode())

        def on_text(payload: bytes) -> None:
            nonlocal waiting
            if b'"channel.error"' in payload[:100]:
                ended.set_exception(SystemExit(f"refused: {payload[:300]!r}"))
            if b'"channel.sent"' not in payload[:100]:
                return
            clock.count()
            if not clock.is_over():
                found[number].transport.write(whole)
                return
            waiting -= 1
            if not waiting and not ended.done():
                ended.set_result(None)

        frames.append(whole)
        return on_text

    frames: list[bytes] = []
    found = [await connected(server, make(number), f"sender-{number}") for number in range(connections)]
    waiting = connections * window
    for socket, whole in zip(found, frames, strict=True):
        socket.transport.write(whole * window)
    await asyncio.wait_for(ended, seconds + PATIENCE_S)
    await receiver.has(clock.total)
    return {"rate": clock.rate()}


async def clients(server: Server, count: int) -> dict[str, float]:
    """Register and connect as many clients; says "ready", and stays until its input is closed."""
    line = await connect(server)
    held = []
    for number in range(count):
        row = {
            "agentId": f"client-{number}",
            "name": f"session {number}",
            "projectPath": f"/home/user/project-{number}",
            "entryType": "client",
            "clientInfo": {"clientName": "claude-code", "clientVersion": "2.1"},
        }
        status, answer = await line.ask("POST", "/agents", json.dumps(row).encode())
        if status != 201:
            raise SystemExit(f"{status}: {answer[:300]!r}")
        held.append(await connected(server, lambda _: None, f"client-{number}"))
    print("ready", flush=True)
    await asyncio.to_thread(sys.stdin.read)
    if not all(not socket.transport.is_closing() for socket in held):
        raise SystemExit("lost: some of the clients were cut off")
    return {"clients": float(len(held))}


async def inbox(server: Server, agents: list[str], turns: int) -> list[float]:
    """Milliseconds of a page of an inbox over HTTP."""
    line = await connect(server)
    took = []
    for turn in range(-10, turns):
        begun = time.perf_counter()
        status, answer = await line.ask(
            "GET", f"/channel/inbox?agentId={agents[turn % len(agents)]}&limit=25"
        )
        if status != 200 or len(json.loads(answer)) != 25:
            raise SystemExit(f"{status}: {answer[:300]!r}")
        if turn >= 0:
            took.append((time.perf_counter() - begun) * 1000)
    return took


def message(sender: str, mark: str) -> bytes:
    """A message to the receiver, some 450 bytes."""
    return json.dumps(
        {
            "conversationId": f"thread-of-{sender}",
            "fromAgentId": sender,
            "fromAgentName": "the parser's agent",
            "toAgentId": RECEIVER,
            "kind": "chat",
            "content": f"{mark} {TEXT}",
        }
    ).encode()


async def connect(server: Server) -> Http:
    """A connection for requests."""
    loop = asyncio.get_running_loop()
    return (await loop.create_connection(lambda: Http(_head(server)), "127.0.0.1", server["port"]))[1]


async def connected(server: Server, on_text: Callable[[bytes], None], agent: str) -> Socket:
    """A WebSocket that has identified itself."""
    loop = asyncio.get_running_loop()
    identified = loop.create_future()

    def first(payload: bytes) -> None:
        if not identified.done():
            if b'"identified"' in payload[:100]:
                identified.set_result(None)
            return
        on_text(payload)

    def make() -> Socket:
        return Socket(_head(server), "/ws?events=none", first)

    socket = (await loop.create_connection(make, "127.0.0.1", server["port"]))[1]
    await socket.open
    if "token" in server:
        socket.send(json.dumps({"type": "identify", "agentId": agent, "events": "own"}).encode())
        await asyncio.wait_for(identified, PATIENCE_S)
    else:
        identified.set_result(None)
    return socket


def _head(server: Server) -> bytes:
    token = f"Authorization: Bearer {server['token']}\r\n" if "token" in server else ""
    return f"Host: 127.0.0.1:{server['port']}\r\nContent-Type: application/json\r\n{token}".encode()


class _Receiver:
    """The target's socket: counts what comes."""

    def __init__(self) -> None:
        self.received = 0
        self._enough = asyncio.Event()
        self._wanted: int | None = None

    @classmethod
    async def open(cls, server: Server) -> _Receiver:
        made = cls()
        await connected(server, made._on_text, RECEIVER)
        return made

    def _on_text(self, payload: bytes) -> None:
        if b"thread-of-" in payload:
            self.received += 1
            if self.received == self._wanted:
                self._enough.set()

    async def has(self, count: int) -> None:
        """Wait until that many have come; the measurement ends where they don't."""
        self._wanted = count
        if self.received < count:
            try:
                await asyncio.wait_for(self._enough.wait(), PATIENCE_S)
            except TimeoutError:
                raise SystemExit(f"lost: {count - self.received} of {count} messages never came") from None
        if self.received > count:
            raise SystemExit(f"twice: {self.received} for {count} messages")


class _Pair:
    """A sender's connection and the target's socket."""

    @classmethod
    async def open(cls, server: Server) -> _Pair:
        made = cls()
        made._mark, made._seen = b"", asyncio.Event()
        await connected(server, made._on_text, RECEIVER)
        made._sender = await connect(server)
        return made

    _mark: bytes
    _seen: asyncio.Event
    _sender: Http
    _at: float

    def _on_text(self, payload: bytes) -> None:
        if self._mark and self._mark in payload:
            self._at = time.perf_counter()
            self._mark = b""
            self._seen.set()

    async def once(self, mark: str) -> float:
        """Seconds of one message."""
        body = message("sender", mark)
        self._mark = mark.encode()
        self._seen.clear()
        begun = time.perf_counter()
        answer = self._sender.ask("POST", "/channel/messages", body)
        await asyncio.wait_for(self._seen.wait(), PATIENCE_S)
        status, text = await answer
        if status != 201:
            raise SystemExit(f"{status}: {text[:300]!r}")
        return self._at - begun


class _Window:
    """Counts what ends within some seconds, after a beginning that doesn't count."""

    def __init__(self, seconds: float) -> None:
        self._begins = time.monotonic() + min(1.0, seconds / 4)
        self._ends = self._begins + seconds
        self._seconds = seconds
        self._inside = 0
        self.total = 0

    def is_over(self) -> bool:
        return time.monotonic() >= self._ends

    def count(self) -> None:
        self.total += 1
        self._inside += self._begins <= time.monotonic() < self._ends

    def rate(self) -> float:
        return self._inside / self._seconds


if __name__ == "__main__":
    asked = json.loads(sys.argv[1])
    task: dict[str, Callable[..., Any]] = {
        "latency": latency,
        "http": http,
        "sockets": sockets,
        "clients": clients,
        "inbox": inbox,
    }
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        print(json.dumps(runner.run(task[asked.pop("task")](**asked))), flush=True)
