"""The tools' side of the service in this process: its registry, its sockets, stores in a sealed home."""

from __future__ import annotations

import itertools
import json
import socket
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from agent_bridge import paths
from agent_bridge.config import load_settings
from agent_bridge.daemon.mcp_host import McpHost
from agent_bridge.daemon.registry_host import RegistryHost
from agent_bridge.mcp.hello import RENAMED
from agent_bridge.projects import Project, add_project, id_for

Json = dict[str, Any]
PATIENCE = 20.0


class Tools:
    """What the service has for the tools."""

    def __init__(self) -> None:
        settings = load_settings(env=None)
        self.registry = RegistryHost(settings)
        self.host = McpHost(settings, self.registry)
        self.registry.mount = self.host.face
        self.registry.start()
        self.host.start()

    def wait(self, fits: Callable[[Json], object]) -> Json:
        """The part of the status, once it fits."""
        deadline = time.monotonic() + PATIENCE
        while not fits(status := self.host.describe()):
            assert time.monotonic() < deadline, f"it never fitted: {status}"
            time.sleep(0.01)
        return status

    def wait_rows(self, count: int) -> list[Json]:
        """The sessions in the directory, once there are so many."""
        deadline = time.monotonic() + PATIENCE
        while True:
            server = self.registry.running()
            rows = [] if server is None else server._ask(server.hub.directory.rows)
            if server is not None and len(rows) == count:
                return [row.as_wire() for row in rows]
            assert time.monotonic() < deadline, f"there are {len(rows)} rows: {rows}"
            time.sleep(0.01)

    def stop(self) -> None:
        self.host.stop()
        self.registry.stop()


class Shim:
    """The service's end of a shim, spoken by hand."""

    def __init__(self, cwd: Path, client: str = "codex-mcp-client", **said: object) -> None:
        self._peer = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._peer.settimeout(PATIENCE)
        self._peer.connect(str(paths.mcp_socket()))
        self._lines = self._peer.makefile("rb")
        self._ids = itertools.count(1)
        self.renamed: list[str] = []
        hello = {
            "version": 1,
            "nonce": uuid.uuid4().hex,
            "pid": 11,
            "parentPid": 10,
            "cwd": str(cwd),
            "client": {"name": client, "version": "1.0"},
        }
        self.say({"hello": hello | said})
        self.answer = self.hear()

    @property
    def agent_id(self) -> str:
        found: str = self.answer["welcome"]["agentId"]
        return found

    def say(self, message: object) -> None:
        self.send(json.dumps(message).encode() + b"\n")

    def send(self, data: bytes) -> None:
        self._peer.sendall(data)

    def hear(self) -> Json:
        """The next message for the client; {} at the end. What is for the shim alone is kept in `renamed`."""
        while True:
            line = self._lines.readline()
            found: Json = json.loads(line) if line else {}
            if found.get("method") != RENAMED:
                return found
            self.renamed.append(found["params"]["agentId"])

    def begin(self, capabilities: Mapping[str, Any] | None = None, version: str = "2025-11-25") -> Json:
        """The handshake; what `initialize` is answered."""
        params = {
            "protocolVersion": version,
            "capabilities": capabilities or {},
            "clientInfo": {"name": "x", "version": "1"},
        }
        answer = self.ask("initialize", params)
        self.say({"jsonrpc": "2.0", "method": "notifications/initialized"})
        return answer

    def request(self, method: str, params: Mapping[str, Any] | None = None) -> int:
        """Send a request; its id."""
        number = next(self._ids)
        self.say({"jsonrpc": "2.0", "id": number, "method": method, "params": params or {}})
        return number

    def ask(self, method: str, params: Mapping[str, Any] | None = None) -> Json:
        """Send a request; the answer, which must be what comes next."""
        number = self.request(method, params)
        answer = self.hear()
        assert answer.get("id") == number, answer
        return answer

    def call(self, name: str, **arguments: object) -> Json:
        """Call a tool; its result."""
        answer = self.ask("tools/call", {"name": name, "arguments": arguments})
        result: Json = answer["result"]
        return result

    def close(self) -> None:
        self._lines.close()
        self._peer.close()


@pytest.fixture
def tools(sealed_home: Path) -> Iterator[Tools]:
    running = Tools()
    yield running
    running.stop()


@pytest.fixture
def connect(tools: Tools, project: Path) -> Iterator[Callable[..., Shim]]:
    """Connects shims that are started in the project, and closes them."""
    shims: list[Shim] = []

    def start(*, cwd: Path = project, **said: Any) -> Shim:  # noqa: ANN401
        shims.append(Shim(cwd, **said))
        return shims[-1]

    yield start
    for shim in shims:
        shim.close()


def listed_project(root: Path) -> Path:
    """A directory that `init` has listed, with an empty store."""
    (root / ".memory" / "entries").mkdir(parents=True)
    real = root.resolve()
    add_project(Project(id_for(real), real))
    return real


@pytest.fixture
def project(sealed_home: Path) -> Path:
    return listed_project(sealed_home / "project")
