"""The HTTP half of a fake model server, and the wall that catches whatever goes elsewhere."""

from __future__ import annotations

import json
import socket
import threading
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler
from socketserver import StreamRequestHandler, ThreadingTCPServer
from typing import Any, ClassVar

from clients.rig.script import Body, Script


@dataclass(frozen=True, slots=True)
class Request:
    """One request as the client sent it. `side` marks one that is no turn of the conversation."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: Body
    side: bool


class FakeModel(ABC):
    """What a model server has heard, and what it will say.

    A dialect (`anthropic.py`, `responses.py`, `gemini_api.py`) overrides the three methods.
    """

    def __init__(self, script: Script) -> None:
        self.script = script
        self.requests: list[Request] = []
        self.heard = threading.Condition()
        """Told of each request."""
        self.unknown: list[str] = []
        """Requests that no model server answers, as `METHOD path`; they got 404."""

    def summary(self) -> str:
        """What went wrong on this side, for an error message."""
        asked = [request.path for request in self.requests]
        return f"asked for {asked}, not answered: {self.unknown}, turns left: {self.script.left}"

    @abstractmethod
    def get(self, path: str) -> object | None:
        """The JSON answer to a GET or HEAD, None for 404."""

    @abstractmethod
    def is_side_request(self, path: str, headers: Mapping[str, str], body: Body) -> bool:
        """Whether the client asks for something of its own (a title, a summary)."""

    @abstractmethod
    def post(self, request: Request, turns: int) -> Answer | None:
        """The answer to a POST, None for 404. `turns` counts the requests so far, this one too."""


@dataclass(frozen=True, slots=True)
class Answer:
    """A JSON document, or a stream of server-sent events, named by the `type` inside where there is one.

    `end` is the data of a last event that is no JSON.
    """

    document: object | None = None
    events: Iterable[Mapping[str, Any]] | None = None
    end: str = ""


@contextmanager
def served(listener: socket.socket, model: FakeModel) -> Iterator[None]:
    """Serve `model` on a socket that listens already, until the block ends."""

    class Handler(_ModelHandler):
        fake = model

    with _running(listener, Handler):
        yield


@contextmanager
def walled(listener: socket.socket, heard: list[str]) -> Iterator[None]:
    """Stand where the proxy variables point: note each first line in `heard`, let nothing through."""

    class Handler(StreamRequestHandler):
        def handle(self) -> None:
            line = self.rfile.readline(4096).decode("latin-1").strip()
            heard.append(line)
            self.wfile.write(b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")

    with _running(listener, Handler):
        yield


class _Server(ThreadingTCPServer):
    daemon_threads = True
    block_on_close = False

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that hangs up is no news; a script's failure is kept by the script."""


@contextmanager
def _running(listener: socket.socket, handler: type[StreamRequestHandler]) -> Iterator[None]:
    server = _Server(listener.getsockname(), handler, bind_and_activate=False)
    server.socket.close()
    server.socket = listener
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class _ModelHandler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    fake: ClassVar[FakeModel]

    def do_HEAD(self) -> None:
        self._send_document(self.fake.get(self._plain_path()))

    def do_GET(self) -> None:
        self._send_document(self.fake.get(self._plain_path()))

    def do_POST(self) -> None:
        data = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        body = json.loads(data)
        path, headers = self._plain_path(), {name.lower(): text for name, text in self.headers.items()}
        side = self.fake.is_side_request(path, headers, body)
        request = Request("POST", path, headers, body, side)
        with self.fake.heard:
            self.fake.requests.append(request)
            self.fake.heard.notify_all()
        try:
            answer = self.fake.post(request, len(self.fake.requests))
        except Exception as failure:
            self._send(400, "application/json", _error(f"{type(failure).__name__}: {failure}"))
            raise
        if answer is not None and answer.events is not None:
            end = f"data: {answer.end}\n\n".encode() if answer.end else b""
            self._send(200, "text/event-stream", b"".join(map(_event, answer.events)) + end)
        else:
            self._send_document(None if answer is None else answer.document)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name is http.server's
        """Say nothing: what was asked is in the fake's lists."""

    def _plain_path(self) -> str:
        return self.path.partition("?")[0]

    def _send_document(self, document: object | None) -> None:
        if document is None:
            self.fake.unknown.append(f"{self.command} {self.path}")
            self._send(404, "application/json", _error("not here"))
        else:
            self._send(200, "application/json", json.dumps(document).encode())

    def _send(self, status: int, kind: str, data: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)


def _event(event: Mapping[str, Any]) -> bytes:
    name = f"event: {event['type']}\n" if "type" in event else ""
    return f"{name}data: {json.dumps(event)}\n\n".encode()


def _error(message: str) -> bytes:
    error = {"type": "invalid_request_error", "message": message}
    return json.dumps({"type": "error", "error": error}).encode()
