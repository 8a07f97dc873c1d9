"""An agent's own stream, piped through the registry: from a real server, until either side ends it."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import httpx
import pytest

from agent_bridge.registry import ag_ui
from agent_bridge.registry.ag_ui import address_of
from integration.registry.running import PATIENCE, Running


class _Agent(BaseHTTPRequestHandler):
    """Tells what it was asked; on `endless` it goes on until the caller has left."""

    gone = threading.Event()
    asked: list[tuple[str, dict[str, str], bytes]]

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        self.asked.append((self.path, {name.lower(): text for name, text in self.headers.items()}, body))
        if self.path != "/base/ag-ui":
            self.send_response(307 if self.path == "/elsewhere/ag-ui" else 500)
            self.send_header("Location", "http://example.invalid/")
            self.end_headers()
            return
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.end_headers()
        self._tell({"type": "RUN_STARTED"})
        try:
            while json.loads(body).get("endless"):
                self._tell({"type": "TEXT_MESSAGE_CONTENT", "delta": "x" * 1000})
        except OSError:
            self.gone.set()
        else:
            self._tell({"type": "RUN_FINISHED"})

    def _tell(self, event: dict[str, Any]) -> None:
        self.wfile.write(b"data: " + json.dumps(event).encode() + b"\n\n")

    def log_message(self, *_arguments: object) -> None:
        return


@pytest.fixture(scope="module")
def registry(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with Running(tmp_path_factory.mktemp("registry")) as running:
        yield running


@pytest.fixture
def agent() -> Iterator[ThreadingHTTPServer]:
    """An agent server on loopback."""
    _Agent.gone.clear()
    _Agent.asked = []
    with ThreadingHTTPServer(("127.0.0.1", 0), _Agent) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def _register(registry: Running, url: str) -> None:
    registry.register("agent", entryType="agent", url=url)


def _url(agent: ThreadingHTTPServer, path: str = "/base") -> str:
    return f"http://127.0.0.1:{agent.server_address[1]}{path}"


def _run(registry: Running, body: object) -> httpx.Response:
    return registry.http.post("/agents/agent/ag-ui", json=body)


def _events(answer: httpx.Response) -> list[dict[str, Any]]:
    assert answer.status_code == 200
    assert answer.headers["content-type"] == "text/event-stream"
    return [json.loads(part.removeprefix("data: ")) for part in answer.text.split("\n\n") if part]


def test_the_stream_comes_through_as_it_is(registry: Running, agent: ThreadingHTTPServer) -> None:
    _register(registry, _url(agent))
    answer = _run(registry, {"messages": []})
    assert [event["type"] for event in _events(answer)] == ["RUN_STARTED", "RUN_FINISHED"]
    ((path, headers, body),) = _Agent.asked
    assert (path, json.loads(body)) == ("/base/ag-ui", {"messages": []})
    assert "authorization" not in headers


def test_the_agent_hears_when_the_caller_leaves(registry: Running, agent: ThreadingHTTPServer) -> None:
    _register(registry, _url(agent))
    with registry.http.stream("POST", "/agents/agent/ag-ui", json={"endless": True}) as answer:
        pieces = answer.iter_raw()
        assert next(pieces).startswith(b'data: {"type": "RUN_STARTED"}')
        next(pieces)
        assert not _Agent.gone.is_set()
    assert _Agent.gone.wait(PATIENCE)


def test_a_caller_that_reads_nothing_is_waited_for_not_stored_for(
    registry: Running, agent: ThreadingHTTPServer
) -> None:
    _register(registry, _url(agent))
    with socket.create_connection(("127.0.0.1", registry.port)) as caller:
        caller.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        body = b'{"endless": true}'
        head = [
            "POST /agents/agent/ag-ui HTTP/1.1",
            f"Host: localhost:{registry.port}",
            *(f"{name}: {text}" for name, text in registry.headers().items()),
            f"Content-Length: {len(body)}",
        ]
        caller.sendall("\r\n".join(head).encode() + b"\r\n\r\n" + body)
        received = b""
        while b"RUN_STARTED" not in received:
            received += caller.recv(100)
        # Others are served meanwhile.
        assert registry.http.get("/agents").status_code == 200
        assert not _Agent.gone.is_set()
    assert _Agent.gone.wait(PATIENCE)


def test_streams_leave_file_descriptors_for_everything_else(
    registry: Running, agent: ThreadingHTTPServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ag_ui, "STREAMS", 1)
    _register(registry, _url(agent))
    with registry.http.stream("POST", "/agents/agent/ag-ui", json={"endless": True}) as answer:
        pieces = answer.iter_raw()  # kept: without it the stream is closed
        assert next(pieces).startswith(b"data: ")
        refused = _run(registry, {})
        assert (refused.status_code, refused.json()["code"]) == (429, "too_many")
    assert _Agent.gone.wait(PATIENCE)
    registry.wait_for(lambda: not registry.http_server.server_state.tasks)
    assert [event["type"] for event in _events(_run(registry, {}))] == ["RUN_STARTED", "RUN_FINISHED"]


@pytest.mark.parametrize(("path", "said"), [("/broken", "status 500"), ("/elsewhere", "status 307")])
def test_an_agent_that_fails_is_told_within_the_stream(
    registry: Running, agent: ThreadingHTTPServer, path: str, said: str
) -> None:
    _register(registry, _url(agent, path))
    (event,) = _events(_run(registry, {}))
    assert event["type"] == "RUN_ERROR"
    assert said in event["message"]
    assert event["timestamp"] > 10**12


def test_an_agent_that_isnt_there_is_told_within_the_stream(registry: Running) -> None:
    with socket.create_server(("127.0.0.1", 0)) as unused:
        port = unused.getsockname()[1]
    _register(registry, f"http://127.0.0.1:{port}")
    (event,) = _events(_run(registry, {}))
    assert event["type"] == "RUN_ERROR"


@pytest.mark.parametrize(
    "url", ["", "http://192.0.2.1:80", "http://example.invalid", "https://localhost", "http://u:p@localhost"]
)
def test_no_request_leaves_this_machine(registry: Running, url: str) -> None:
    _register(registry, url)
    answer = _run(registry, {})
    assert answer.status_code == 404
    assert answer.json()["error"].startswith("Agent not found or has no URL")


def test_a_run_must_be_an_object_and_the_agent_must_be_there(registry: Running) -> None:
    _register(registry, "http://127.0.0.1:9")
    assert _run(registry, [1]).status_code == 400
    assert registry.http.post("/agents/nobody/ag-ui", json={}).status_code == 404


@pytest.mark.parametrize(
    ("url", "address"),
    [
        ("http://localhost:5001", "http://localhost:5001/ag-ui"),
        ("http://127.0.0.1:5001/", "http://127.0.0.1:5001/ag-ui"),
        ("http://127.8.9.1/a/b", "http://127.8.9.1:80/a/b/ag-ui"),
        ("http://[::1]:5001", "http://[::1]:5001/ag-ui"),
        ("http://[::ffff:192.0.2.1]", None),
        ("http://localhost.example.invalid", None),
        ("http://127.0.0.1.example.invalid", None),
        ("http://0.0.0.0", None),
        ("http://169.254.169.254", None),
        ("http://2130706433", None),
        ("http://localhost:99999", None),
        ("http://localhost?x=1", None),
        ("http://localhost#x", None),
        ("http://[::1", None),
        ("file:///etc/passwd", None),
    ],
)
def test_which_addresses_are_this_machines_own(url: str, address: str | None) -> None:
    assert address_of(url) == address
