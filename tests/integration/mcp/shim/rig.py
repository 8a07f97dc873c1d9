"""A shim as a client has it, and the service's end of its socket, both driven line by line from a test."""

from __future__ import annotations

import json
import os
import select
import socket
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

Json = dict[str, Any]
PATIENCE_S = 20.0
SHIM = (sys.executable, "-m", "agent_bridge.mcp.shim.main")


class Wire:
    """Reads lines of JSON from a descriptor, with patience; keeps every line in `raw`."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._buffer = b""
        self.raw: list[bytes] = []

    def hear(self, patience: float = PATIENCE_S) -> Json:
        """The next line, parsed; {} at the end."""
        deadline = time.monotonic() + patience
        while b"\n" not in self._buffer:
            if not select.select([self._descriptor], [], [], max(0.0, deadline - time.monotonic()))[0]:
                raise TimeoutError(f"no line in {patience} s; so far: {self._buffer[:200]!r}")
            try:
                data = os.read(self._descriptor, 1 << 16)
            except ConnectionResetError:
                data = b""
            if not data:
                assert not self._buffer, self._buffer
                return {}
            self._buffer += data
        line, _, self._buffer = self._buffer.partition(b"\n")
        self.raw.append(line)
        found: Json = json.loads(line)
        return found

    def is_silent(self, seconds: float) -> bool:
        """Whether nothing comes for so long."""
        return not self._buffer and not select.select([self._descriptor], [], [], seconds)[0]


class Peer:
    """The service's end of one connection."""

    def __init__(self, connection: socket.socket) -> None:
        self.connection = connection
        self.wire = Wire(connection.fileno())
        self.hello: Json = {}

    def hear(self) -> Json:
        """The shim's next line."""
        return self.wire.hear()

    def say(self, *messages: object) -> None:
        """Send messages; bytes as they are."""
        for message in messages:
            data = message if isinstance(message, bytes) else json.dumps(message).encode() + b"\n"
            self.connection.sendall(data)

    def greet(self, *, agent_id: str = "client-1", digest: str = "", initialized: bool = True) -> Json:
        """Hello, welcome, initialize, initialized; what the shim said in its hello."""
        self.hello = self.hear()["hello"]
        self.say(welcome(agent_id, digest))
        begin = self.hear()
        assert begin["method"] == "initialize"
        self.say(answer(begin["id"], {"protocolVersion": begin["params"]["protocolVersion"]}))
        if initialized:
            assert self.hear() == {"jsonrpc": "2.0", "method": "notifications/initialized"}
        return self.hello

    def close(self) -> None:
        """As if the service was killed."""
        self.connection.close()


class Service:
    """A listener where the service's would be."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        path.unlink(missing_ok=True)
        self.path = path
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.bind(str(path))
        self._socket.listen(8)
        self._socket.settimeout(PATIENCE_S)

    def accept(self) -> Peer:
        """The next connection of a shim."""
        return Peer(self._socket.accept()[0])

    def close(self) -> None:
        """Nobody listens any more; the name stays, as after a kill."""
        self._socket.close()


class Shim:
    """The process, as a client has it."""

    def __init__(
        self,
        *words: str,
        env: Mapping[str, str] | None = None,
        program: tuple[str, ...] = SHIM,
        cwd: str | None = None,
    ) -> None:
        self.process = subprocess.Popen(
            [*program, *words],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**os.environ, **(env or {})},
            cwd=cwd,
        )
        assert self.process.stdout is not None
        self.wire = Wire(self.process.stdout.fileno())

    def say(self, *messages: object) -> None:
        """Send messages; bytes as they are."""
        assert self.process.stdin is not None
        data = b"".join(m if isinstance(m, bytes) else json.dumps(m).encode() + b"\n" for m in messages)
        self.process.stdin.write(data)
        self.process.stdin.flush()

    def hear(self, patience: float = PATIENCE_S) -> Json:
        """The shim's next line; {} at its end."""
        return self.wire.hear(patience)

    def begin(self, client: str = "tester") -> Json:
        """The client's handshake; what the server said of itself."""
        self.say(initialize(client))
        found = self.hear()
        self.say({"jsonrpc": "2.0", "method": "notifications/initialized"})
        told: Json = found["result"]
        return told

    def end(self) -> tuple[int, float, bytes]:
        """Close its standard input: its exit code, the seconds until then, its standard error."""
        assert self.process.stdin is not None
        started = time.monotonic()
        self.process.stdin.close()
        code = self.process.wait(PATIENCE_S)
        took = time.monotonic() - started
        return code, took, self.errors()

    def errors(self) -> bytes:
        """What it said on standard error; for when it has ended."""
        assert self.process.stderr is not None
        return self.process.stderr.read()

    def close(self) -> None:
        """End it whatever it does."""
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        for stream in (self.process.stdin, self.process.stdout, self.process.stderr):
            if stream is not None:
                try:
                    stream.close()
                except BrokenPipeError:
                    continue


def initialize(client: str = "tester", version: str = "2025-06-18", request_id: object = 0) -> Json:
    """A client's first request."""
    info = {"name": client, "version": "1.2.3"}
    params = {"protocolVersion": version, "capabilities": {"roots": {}}, "clientInfo": info}
    return {"jsonrpc": "2.0", "id": request_id, "method": "initialize", "params": params}


def call(request_id: object, tool: str = "recall", **arguments: object) -> Json:
    """A call of a tool."""
    params = {"name": tool, "arguments": arguments}
    return {"jsonrpc": "2.0", "id": request_id, "method": "tools/call", "params": params}


def answer(request_id: object, result: object) -> Json:
    """An answer."""
    return {"jsonrpc": "2.0", "id": request_id, "result": result}


def welcome(agent_id: str = "client-1", digest: str = "") -> Json:
    """The service's answer to a hello."""
    return {"welcome": {"version": 1, "service": "0.1.0", "agentId": agent_id, "catalogue": digest}}
