"""The status socket with good, bad and lazy clients."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import stat
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agent_bridge import paths
from agent_bridge.daemon.client import NotAnsweringError, read_status
from agent_bridge.daemon.status_server import CLIENT_SECONDS, CLIENTS, StatusServer
from agent_bridge.errors import NotRunningError

DOCUMENT: dict[str, Any] = {"state": "ok", "reasons": [], "text": "Grüße"}


@pytest.fixture
def document() -> dict[str, Any]:
    return dict(DOCUMENT)


@pytest.fixture
def server(sealed_home: Path, document: dict[str, Any]) -> Iterator[StatusServer]:
    serving = StatusServer(lambda: document)
    serving.start()
    yield serving
    serving.stop()


def connect() -> socket.socket:
    peer = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    peer.settimeout(10)
    peer.connect(str(paths.status_socket()))
    return peer


def ask(request: bytes) -> tuple[int, dict[str, str], bytes]:
    with connect() as peer:
        peer.sendall(request)
        answer = b""
        while part := peer.recv(65536):
            answer += part
    head, _, body = answer.partition(b"\r\n\r\n")
    first, *lines = head.decode().split("\r\n")
    headers = {name.lower(): value for name, value in (line.split(": ", 1) for line in lines)}
    assert int(headers["content-length"]) == len(body)
    assert headers["connection"] == "close"
    return int(first.split()[1]), headers, body


def get(path: str) -> tuple[int, Any]:
    code, _headers, body = ask(f"GET {path} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
    return code, json.loads(body)


def test_one_bad_answer_silences_nobody(server: StatusServer, document: dict[str, Any]) -> None:
    document["text"] = object()  # no JSON
    with connect() as peer:
        peer.sendall(b"GET /v1/status HTTP/1.1\r\n\r\n")
        assert peer.recv(65536) == b""
    document["text"] = "fine again"
    assert get("/v1/status")[0] == 200


def test_status_and_health(server: StatusServer, document: dict[str, Any]) -> None:
    assert get("/v1/status") == (200, DOCUMENT)
    assert get("/v1/status?x=1") == (200, DOCUMENT)
    assert get("/v1/health") == (200, {"state": "ok", "reasons": []})
    document.update(state="degraded", reasons=["because"])
    assert get("/v1/health") == (503, {"state": "degraded", "reasons": ["because"]})
    assert read_status() == document


@pytest.mark.parametrize(
    ("request_", "code"),
    [
        (b"GET / HTTP/1.1\r\n\r\n", 404),
        (b"GET /v2/status HTTP/1.1\r\n\r\n", 404),
        (b"GET /v1/status/../../etc/passwd HTTP/1.1\r\n\r\n", 404),
        (b"POST /v1/status HTTP/1.1\r\nContent-Length: 0\r\n\r\n", 405),
        (b"DELETE /v1/health HTTP/1.0\r\n\r\n", 405),
        (b"\x16\x03\x01\x02\x00\r\n\r\n", 400),
        (b"GET /v1/status\r\n\r\n", 400),
        (b"GET /v1/status HTTP/1.1\n\n", 200),
        (b"GET /v1/status HTTP/1.1\r\nX: " + b"x" * 9000, 431),
    ],
)
def test_other_questions_are_refused_in_json(server: StatusServer, request_: bytes, code: int) -> None:
    answered, headers, body = ask(request_)
    assert answered == code
    assert headers["content-type"].startswith("application/json")
    assert isinstance(json.loads(body), dict)
    if code == 405:
        assert headers["allow"] == "GET"


def test_a_silent_client_and_half_a_request_end_in_time_and_hold_up_nobody(server: StatusServer) -> None:
    with connect() as silent, connect() as half:
        half.sendall(b"GET /v1/sta")
        started = time.monotonic()
        assert get("/v1/status")[0] == 200
        assert time.monotonic() - started < 1.0
        assert silent.recv(1) == b""
        assert half.recv(1) == b""
        assert time.monotonic() - started < CLIENT_SECONDS + 1


def test_a_client_that_never_reads_is_dropped_and_holds_up_nobody(
    server: StatusServer, document: dict[str, Any]
) -> None:
    document["large"] = "x" * 4_000_000
    with connect() as lazy:
        lazy.sendall(b"GET /v1/status HTTP/1.1\r\n\r\n")
        started = time.monotonic()
        assert get("/v1/health")[0] == 200
        assert time.monotonic() - started < 1.0
        time.sleep(CLIENT_SECONDS + 0.5)
        with contextlib.suppress(ConnectionError):
            received = 0
            while part := lazy.recv(1 << 20):
                received += len(part)
            assert received < 4_000_000


def test_too_many_clients_are_told_so(server: StatusServer) -> None:
    with contextlib.ExitStack() as stack:
        for _ in range(CLIENTS):
            stack.enter_context(connect())
        assert get("/v1/status")[0] == 503
    deadline = time.monotonic() + 5
    while get("/v1/status")[0] != 200:
        assert time.monotonic() < deadline


def test_many_at_the_same_time(server: StatusServer) -> None:
    codes: list[int] = []
    threads = [threading.Thread(target=lambda: codes.append(get("/v1/status")[0])) for _ in range(10)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert codes == [200] * 10


def test_a_dead_ones_socket_is_replaced_and_only_the_own_one_removed(sealed_home: Path) -> None:
    place = paths.status_socket()
    paths.ensure_private_dir(place.parent)
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as dead:
        dead.bind(str(place))
    serving = StatusServer(lambda: DOCUMENT)
    serving.start()
    assert stat.S_IMODE(place.lstat().st_mode) == 0o600
    assert get("/v1/status")[0] == 200
    place.unlink()
    place.write_text("somebody else's")
    serving.stop()
    assert place.read_text() == "somebody else's"


def test_nothing_listens(sealed_home: Path) -> None:
    with pytest.raises(NotRunningError):
        read_status()


@pytest.mark.parametrize(
    "answer", [b"", b"SSH-2.0-OpenSSH\r\n", b"HTTP/1.1 200 OK\r\n\r\n[1]", b"HTTP/1.1 200 OK\r\n\r\n{"]
)
def test_an_answer_that_makes_no_sense_is_no_status(sealed_home: Path, answer: bytes) -> None:
    place = paths.status_socket()
    paths.ensure_private_dir(place.parent)
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
        listener.bind(str(place))
        listener.listen()

        def serve() -> None:
            peer, _ = listener.accept()
            with peer:
                peer.recv(4096)
                peer.sendall(answer)

        thread = threading.Thread(target=serve)
        thread.start()
        with pytest.raises(NotAnsweringError):
            read_status()
        thread.join()


@pytest.mark.skipif(os.getuid() != 0, reason="needs root to become somebody else")
def test_another_user_gets_nothing(server: StatusServer) -> None:
    # Even one who finds the directory and the socket open.
    for opened in (*paths.status_socket().parents,)[:3]:
        if opened != Path("/tmp") and opened != Path("/"):
            opened.chmod(0o755)
    paths.status_socket().chmod(0o666)
    place = str(paths.status_socket())
    child = os.fork()
    if child == 0:
        code = 1
        try:
            os.setuid(65534)
            with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as peer:
                peer.connect(place)
                peer.sendall(b"GET /v1/status HTTP/1.1\r\n\r\n")
                code = 0 if peer.recv(65536).startswith(b"HTTP/1.1 403 ") else 2
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
