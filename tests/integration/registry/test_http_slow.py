"""Callers that take their time, and what isn't HTTP at all."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from agent_bridge.registry import calls
from agent_bridge.registry.http_protocol import HEAD_BYTES, BoundedHttp
from integration.registry.running import PATIENCE, Running


@pytest.fixture(scope="module")
def registry(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with Running(tmp_path_factory.mktemp("registry")) as running:
        yield running


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same bounds, sooner."""
    monkeypatch.setattr(BoundedHttp, "head_seconds", 0.2)
    monkeypatch.setattr(calls, "BODY_SECONDS", 0.2)


@pytest.fixture
def line(registry: Running) -> Iterator[socket.socket]:
    """A bare connection to the registry."""
    with socket.create_connection(("127.0.0.1", registry.port), timeout=PATIENCE) as connection:
        yield connection


def _head(registry: Running, length: int, method: str = "POST") -> bytes:
    lines = [
        f"{method} /channel/messages HTTP/1.1",
        f"Host: 127.0.0.1:{registry.port}",
        f"Authorization: {registry.headers()['Authorization']}",
        f"Content-Length: {length}",
    ]
    return "\r\n".join(lines).encode() + b"\r\n\r\n"


def _rest(line: socket.socket) -> bytes:
    received = b""
    try:
        while part := line.recv(65_536):
            received += part
    except ConnectionResetError:
        pass  # closed with something of ours unread
    return received


def _code(answer: bytes) -> tuple[int, str]:
    head, _blank, body = answer.partition(b"\r\n\r\n")
    return int(head.split()[1]), json.loads(body)["code"]


_BODY = b'{"fromAgentId":"a","kind":"chat","content":"slowly"}'


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("sent", [b"", b"P", b"POST /channel/messages HTTP/1.1\r\nHost: local"])
def test_a_head_that_does_not_come_is_not_waited_for(line: socket.socket, sent: bytes) -> None:
    line.sendall(sent)
    assert _code(_rest(line)) == (408, "too_slow")


@pytest.mark.usefixtures("impatient")
def test_a_second_head_is_not_waited_for_either(registry: Running, line: socket.socket) -> None:
    line.sendall(_head(registry, 0, "GET") + b"GET /agents HT")
    first, _blank, second = _rest(line).partition(b"HTTP/1.1 408")
    assert first.startswith(b"HTTP/1.1 405")
    assert b"too_slow" in second


@pytest.mark.usefixtures("impatient")
def test_a_body_that_does_not_come_is_not_waited_for(registry: Running, line: socket.socket) -> None:
    before = registry.hub.store.last_seq()
    line.sendall(_head(registry, len(_BODY)) + _BODY[:20])
    assert _code(_rest(line)) == (408, "too_slow")
    assert registry.hub.store.last_seq() == before


def test_a_head_and_a_body_in_small_pieces_are_read(registry: Running, line: socket.socket) -> None:
    line.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    request = _head(registry, len(_BODY)) + _BODY
    for place in range(0, len(request), 7):
        line.sendall(request[place : place + 7])
    assert line.recv(65_536).startswith(b"HTTP/1.1 201")


def test_a_head_without_end_is_broken_off(line: socket.socket) -> None:
    line.sendall(b"GET /agents HTTP/1.1\r\nX-Long: ")
    received = b""
    try:
        for _ in range(2 * HEAD_BYTES // 1024):
            line.sendall(b"x" * 1024)
    except (BrokenPipeError, ConnectionResetError):
        pass
    received = _rest(line)
    assert received == b"" or _code(received) == (431, "headers_too_large")


@pytest.mark.parametrize(
    "noise",
    [
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"GET\r\n\r\n",
        b"GET http:// HTTP/1.1\r\n\r\n",
        b"CONNECT example.invalid:443 HTTP/1.1\r\nHost: x\r\n\r\n",
        b"GET /\xff HTTP/1.1\r\nHost: x\r\n\r\n",
        b"POST /events HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n",
        b"POST /events HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
    ],
)
def test_what_is_no_request_is_refused_as_one(line: socket.socket, noise: bytes) -> None:
    line.sendall(noise)
    assert _code(_rest(line))[0] in (400, 403)


def _unread(registry: Running) -> list[BoundedHttp]:
    """The connections whose answers wait for their readers."""
    connections = registry.http_server.server_state.connections
    return [
        one
        for one in connections
        if isinstance(one, BoundedHttp) and one.transport and one.transport.get_write_buffer_size()
    ]


def _ask_for_much(registry: Running, line: socket.socket, reader: str) -> int:
    """Ask for an answer that no buffer of the system takes whole; its size at least."""
    for _ in range(2):
        registry.post(content="x" * 8_000_000, toAgentId=reader)
    target = f"/channel/inbox?agentId={reader}".encode()
    line.sendall(_head(registry, 0, "GET").replace(b"/channel/messages", target))
    assert line.recv(100).startswith(b"HTTP/1.1 200")
    registry.wait_for(lambda: _unread(registry))
    return 16_000_000


def test_an_answer_that_nobody_reads_is_given_up(
    registry: Running, line: socket.socket, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(BoundedHttp, "unread_seconds", 0.2)
    size = _ask_for_much(registry, line, "nobody")
    registry.wait_for(lambda: not _unread(registry))
    assert len(_rest(line)) < size


def test_an_answer_that_is_read_slowly_is_read_to_its_end(registry: Running, line: socket.socket) -> None:
    size = _ask_for_much(registry, line, "slow")
    (connection,) = _unread(registry)
    before = registry.on_loop(connection.transport.get_write_buffer_size)
    received = 0
    while received < size // 2:
        received += len(line.recv(65_536))
    registry.wait_for(lambda: connection.transport.get_write_buffer_size() < before)
    # What the timer does when it is over.
    registry.on_loop(lambda: connection._check_reader(before))
    while received < size:
        part = line.recv(65_536)
        assert part, "cut short"
        received += len(part)


def test_who_leaves_in_the_middle_disturbs_nobody(registry: Running) -> None:
    failures = registry.figures()["failures"]
    for sent in (
        b"",
        _head(registry, 5)[:30],
        _head(registry, len(_BODY)),
        _head(registry, len(_BODY)) + _BODY[:9],
    ):
        with socket.create_connection(("127.0.0.1", registry.port)) as caller:
            caller.sendall(sent)
    assert registry.http.get("/agents").status_code == 200
    assert registry.figures()["failures"] == failures


def test_requests_that_are_sent_without_waiting_for_answers_do_not_pile_up(registry: Running) -> None:
    one = f"GET /health HTTP/1.1\r\nHost: localhost:{registry.port}\r\n\r\n".encode()
    last = one.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n")
    with socket.create_connection(("127.0.0.1", registry.port), PATIENCE) as line:
        line.sendall(one * 20 + last)
        assert _rest(line).count(b'{"status":"ok"}') == 21
    with socket.create_connection(("127.0.0.1", registry.port), PATIENCE) as line:
        line.sendall(one * 2_000)
        assert _rest(line).count(b'{"status":"ok"}') < 100


def test_who_only_connects_gives_way_to_who_asks(tmp_path: Path) -> None:
    """However many connect: file descriptors are left for everything else, and a question is answered."""
    with Running(tmp_path, connections=20) as registry, ExitStack() as stack:
        listener = stack.enter_context(registry.agent("listener"))
        idle = [
            stack.enter_context(socket.create_connection(("127.0.0.1", registry.port), PATIENCE))
            for _ in range(60)
        ]
        registry.wait_for(lambda: sum(map(_is_closed, idle)) >= 35)  # then the last one has come
        assert len(registry.http_server.server_state.connections) <= 20
        gone = [connection for connection in idle if _is_closed(connection)]
        assert gone == idle[: len(gone)]
        assert len(gone) <= 41
        assert registry.post(toAgentId="listener")["messageId"]
        assert listener.until("channel.message")
        assert registry.post(toAgentId="listener")["messageId"], "a connection that was used is kept"


def test_where_everybody_is_busy_a_newcomer_is_told(tmp_path: Path) -> None:
    with Running(tmp_path, connections=3) as registry, ExitStack() as stack:
        for name in "abc":
            stack.enter_context(registry.agent(name))
        with socket.create_connection(("127.0.0.1", registry.port), PATIENCE) as late:
            assert _code(_rest(late)) == (503, "crowded")
        assert len(registry.http_server.server_state.connections) == 3


def test_who_has_no_token_leaves_nothing_in_the_log(
    registry: Running, caplog: pytest.LogCaptureFixture
) -> None:
    upgrade = f"GET /health HTTP/1.1\r\nHost: localhost:{registry.port}\r\nConnection: upgrade\r\n"
    for nonsense in (b"\x16\x03\x01 is TLS\r\n\r\n", upgrade.encode() + b"Upgrade: h2c\r\n\r\n"):
        with socket.create_connection(("127.0.0.1", registry.port), PATIENCE) as line:
            line.sendall(nonsense)
            assert line.recv(65_536).startswith((b"HTTP/1.1 400", b"HTTP/1.1 200"))
    assert not caplog.records


def _is_closed(line: socket.socket) -> bool:
    line.setblocking(False)
    try:
        return line.recv(1) == b""
    except BlockingIOError:
        return False
    except ConnectionResetError:
        return True
