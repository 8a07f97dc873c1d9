"""Whatever a peer sends, the registry stays up and nobody else hears of it."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from websockets.exceptions import ConnectionClosed

from integration.registry.running import Client, Running


@pytest.fixture(scope="module")
def registry(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with Running(tmp_path_factory.mktemp("registry"), message_bytes=20_000) as running:
        yield running


@pytest.fixture(scope="module")
def bystander(registry: Running) -> Iterator[Client]:
    """A socket of another identity, which is to hear nothing at all."""
    with registry.agent("bystander", "bystander") as client:
        yield client


_FIELDS = """agentId identity since epoch events requestId message ack data content kind fromAgentId
toAgentId messageId conversationId replyTo meta expiresAt state actorId actorType detail type payload"""
_NAMES = st.sampled_from(_FIELDS.split())
_SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats()
    | st.text(max_size=20)
    | st.sampled_from(["bystander", "chat", "global", "*", "own", "queued", "client", "x" * 300, "\x00", "‮"])
)
_VALUES = st.recursive(
    _SCALARS,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(_NAMES | st.text(max_size=5), inner, max_size=8)
    ),
    max_leaves=12,
)
_TYPES = st.sampled_from(
    ["identify", "channel.send", "channel.ack", "agent.message", "heartbeat", "snapshot", "channel.sent", ""]
)
_NAMED = st.sampled_from(["a", "b", "bystander", "client-dashboard-ui"])
_GOOD_ENOUGH = st.fixed_dictionaries(
    {
        "fromAgentId": _NAMED,
        "kind": st.sampled_from(["chat", "task_request", "ack"]),
        "content": st.text(min_size=1),
    },
    optional={
        "toAgentId": _NAMED,
        "messageId": st.sampled_from(["m1", "m2"]),
        "conversationId": st.sampled_from(["c1", "c2"]),
        "replyTo": st.sampled_from(["m1", "m2", "none"]),
        "meta": st.dictionaries(st.text(max_size=5), _VALUES, max_size=3),
        "expiresAt": st.integers(0, 2**53),
        "expectsResponse": st.booleans(),
    },
)
_FRAMES = st.one_of(
    st.builds(
        lambda message: json.dumps({"type": "channel.send", "requestId": 1, "message": message}), _GOOD_ENOUGH
    ),
    st.builds(
        lambda agent, since: json.dumps({"type": "identify", "agentId": agent, "since": since}),
        _NAMED,
        st.none() | st.integers(0, 50),
    ),
    st.text(max_size=60),
    st.binary(max_size=60),
    st.builds(
        lambda kind, fields: json.dumps(fields | {"type": kind}),
        _TYPES,
        st.dictionaries(_NAMES, _VALUES, max_size=6),
    ),
    st.builds(json.dumps, _VALUES),
    st.just("[" * 10_000),
    st.just('{"type":"channel.send","message":' + '{"meta":' * 2_000),
    st.just("x" * 30_000),
)


def test_any_frames_at_all(registry: Running, bystander: Client) -> None:
    @settings(max_examples=120, suppress_health_check=[HealthCheck.too_slow])
    @given(st.lists(_FRAMES, min_size=1, max_size=8))
    def send(frames: list[str | bytes]) -> None:
        with registry.connect("fuzzed") as socket:
            ended = None
            try:
                for frame in frames:
                    socket.connection.send(frame)
                socket.all_until_now()
            except ConnectionClosed as closed:
                ended = closed.rcvd and closed.rcvd.code
            # Too large a frame is the only thing that ends a socket.
            assert ended == (1009 if any(len(frame) > 20_000 for frame in frames) else None)
        assert registry.figures()["failures"] == 0
        assert bystander.all_until_now() == []

    send()
    assert registry.hub.seq > 0, "nothing that was sent was ever good enough to be stored"


@settings(max_examples=80, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.binary(min_size=1, max_size=200))
def test_any_bytes_at_all_after_the_upgrade(registry: Running, bystander: Client, data: bytes) -> None:
    socket = registry.connect("fuzzed")
    socket.connection.socket.sendall(data)
    socket.connection.socket.close()

    assert registry.figures()["failures"] == 0
    assert bystander.all_until_now() == []
