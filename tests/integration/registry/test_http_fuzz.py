"""Requests with something changed in them, byte by byte: refused or answered, never failed at."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agent_bridge.registry import calls
from agent_bridge.registry.http_protocol import BoundedHttp
from integration.registry.running import PATIENCE, Running

_BODIES = {
    "POST /channel/messages": {"fromAgentId": "a", "kind": "chat", "content": "x", "meta": {"a": [1, 2]}},
    "POST /channel/acks": {
        "conversationId": "c",
        "messageId": "m",
        "state": "answered",
        "actorId": "b",
        "actorType": "client",
    },
    "POST /agents": {"agentId": "a", "name": "n", "projectPath": "/p", "card": {"skills": [{"tags": ["y"]}]}},
    "POST /events": {"agentId": "a", "taskId": "t", "state": "x", "payload": [{}]},
    "POST /agents/a/ag-ui": {},
    "POST /channel/messages/c/m/retry": None,
    "DELETE /channel/conversations/c/suppress?agentId=b": None,
    "GET /agents?skill=y&healthy=true&identity=global": None,
    "GET /channel/conversations?pending=true&limit=3": None,
    "GET /channel/events?since=0&limit=2": None,
}
_NOISE = st.binary(min_size=1, max_size=6) | st.sampled_from(
    [b"\r\n", b"\r\n\r\n", b"%00", b"%ff", b"%2F", b"\x00", b'"', b"{", b"[", b"*", b"..", b"\xed\xa0\x80",
     b"NaN", b"\\ud800", b"1e999", b"-1", b"9" * 20, b"chunked", b"Transfer-Encoding: chunked\r\n"]
)  # fmt: skip
_EDITS = st.lists(
    st.tuples(st.integers(0, 2000), st.integers(0, 8), st.just(b"") | _NOISE), min_size=1, max_size=4
)
"""Where, how many bytes go, what comes there."""


@pytest.fixture(scope="module")
def registry(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with (
        pytest.MonkeyPatch.context() as patch,
        Running(tmp_path_factory.mktemp("registry"), message_bytes=100_000) as running,
    ):
        # Many a changed request lacks its end, for which the registry waits.
        patch.setattr(BoundedHttp, "head_seconds", 0.05)
        patch.setattr(calls, "BODY_SECONDS", 0.05)
        yield running


@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(what=st.sampled_from(sorted(_BODIES)), edits=_EDITS)
def test_a_changed_request_is_answered_or_refused(
    registry: Running, what: str, edits: list[tuple[int, int, bytes]]
) -> None:
    request = bytearray(_request(registry, what))
    for place, gone, noise in edits:
        place %= len(request) + 1
        request[place : place + gone] = noise
    answer = _answer(registry, bytes(request))
    if answer:
        assert answer.startswith(b"HTTP/1.1 ")
        assert int(answer[9:12]) < 500, answer
    assert registry.figures()["failures"] == 0


@pytest.mark.parametrize("what", sorted(_BODIES))
def test_the_request_itself_is_understood(registry: Running, what: str) -> None:
    status = int(_answer(registry, _request(registry, what))[9:12])
    assert status in (200, 201, 404)


def _request(registry: Running, what: str) -> bytes:
    body = b"" if _BODIES[what] is None else json.dumps(_BODIES[what]).encode()
    lines = [
        f"{what} HTTP/1.1",
        f"Host: localhost:{registry.port}",
        f"Authorization: {registry.headers()['Authorization']}",
        f"Content-Length: {len(body)}",
        "Connection: close",
    ]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


def _answer(registry: Running, request: bytes) -> bytes:
    with socket.create_connection(("127.0.0.1", registry.port), timeout=PATIENCE) as line:
        try:
            line.sendall(request)
            return line.recv(65_536)
        except ConnectionError:
            return b""
