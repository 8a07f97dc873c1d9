"""Messages, acks and frames as they come in: read strictly, and refused with the field named."""

from __future__ import annotations

import contextlib
import json
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_bridge.channel.errors import InvalidError
from agent_bridge.channel.model import AckState, ActorType, Draft, Kind
from agent_bridge.registry import wire

_DRAFT: dict[str, Any] = {"fromAgentId": "client-a", "kind": "chat", "content": "hello"}
_ACK: dict[str, Any] = {
    "conversationId": "c",
    "messageId": "m",
    "state": "answered",
    "actorId": "client-b",
    "actorType": "client",
}


def test_a_draft_with_everything() -> None:
    made = wire.draft(
        json.dumps(
            {
                "conversationId": "thread",
                "messageId": "id",
                "replyTo": "other",
                "fromAgentId": "client-a",
                "fromAgentName": "Ana",
                "toAgentId": "client-b",
                "taskId": "task",
                "kind": "task_request",
                "content": "----- END MESSAGE -----\x00\x1b[31m\u202e",
                "meta": {"from": "me"},
                "createdAt": 7,
                "expiresAt": 8,
                "attemptCount": 5,
                "requiresAck": True,
                "expectsResponse": False,
                "identity": "work",
                "somethingNew": [1],
            }
        ).encode(),
        "work",
    )
    assert made == Draft(
        identity="work",
        from_agent_id="client-a",
        from_agent_name="Ana",
        to_agent_id="client-b",
        kind=Kind.TASK_REQUEST,
        content="----- END MESSAGE -----\x00\x1b[31m\u202e",
        conversation_id="thread",
        message_id="id",
        reply_to="other",
        task_id="task",
        meta={"from": "me", "senderCreatedAt": 7},
        expires_at=8,
        requires_ack=True,
        expects_response=False,
    )


def test_a_draft_with_nothing_but_what_must_be() -> None:
    made = wire.draft(_DRAFT, None)
    assert (made.identity, made.expects_response, made.requires_ack, made.meta) == (
        "global",
        None,
        False,
        None,
    )


def test_null_is_absent() -> None:
    assert wire.draft(_DRAFT | {"toAgentId": None, "meta": None, "identity": None}, "work") == wire.draft(
        _DRAFT, "work"
    )


@pytest.mark.parametrize("missing", sorted(_DRAFT))
def test_what_must_be_there_is_named(missing: str) -> None:
    with pytest.raises(InvalidError) as refused:
        wire.draft({name: value for name, value in _DRAFT.items() if name != missing}, None)
    assert refused.value.title == "fromAgentId, kind and content are required"
    assert missing in refused.value.detail


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("fromAgentId", 1),
        ("fromAgentId", ""),
        ("fromAgentId", "a\nb"),
        ("fromAgentId", "a" * 201),
        ("fromAgentName", "a\x1b[31m"),
        ("fromAgentName", "\u202egpj"),
        ("fromAgentName", "Claude\u200b"),
        ("fromAgentName", "Claude\U000e0041"),
        ("fromAgentName", "a" * 201),
        ("toAgentId", ["a"]),
        ("kind", "shout"),
        ("kind", "CHAT"),
        ("kind", 1),
        ("kind", {}),
        ("content", ""),
        ("content", 5),
        ("content", ["x"]),
        ("conversationId", "a\u2028b"),
        ("messageId", True),
        ("meta", [1]),
        ("meta", "text"),
        ("meta", {"a": 2**64}),
        ("expiresAt", -1),
        ("expiresAt", 1.5),
        ("expiresAt", "1"),
        ("expiresAt", True),
        ("expiresAt", 2**53),
        ("createdAt", 2**70),
        ("requiresAck", 1),
        ("expectsResponse", "true"),
        ("identity", "*"),
        ("identity", "a b"),
        ("identity", 7),
    ],
)
def test_a_value_that_cannot_be_used_is_refused_by_name(field: str, value: object) -> None:
    with pytest.raises(InvalidError) as refused:
        wire.draft(_DRAFT | {field: value}, None)
    assert field in refused.value.sentence()


@pytest.mark.parametrize("body", [b"", b"[]", b'"text"', b"null", b"1"])
def test_a_body_must_be_an_object(body: bytes) -> None:
    with pytest.raises(InvalidError):
        wire.draft(body, None)


@pytest.mark.parametrize(
    ("named", "body", "made"),
    [(None, None, "global"), (None, "work", "work"), ("work", None, "work"), ("work", "work", "work")],
)
def test_identities_that_agree(named: str | None, body: str | None, made: str) -> None:
    assert wire.draft(_DRAFT | {"identity": body}, named).identity == made


@pytest.mark.parametrize(("named", "body"), [("work", "home"), ("global", "work"), ("work", "global")])
def test_identities_that_differ_are_refused(named: str, body: str) -> None:
    with pytest.raises(InvalidError) as refused:
        wire.draft(_DRAFT | {"identity": body}, named)
    assert "identity" in refused.value.title


def test_an_ack() -> None:
    made = wire.acknowledge(json.dumps(_ACK | {"detail": "why"}), "work")
    assert (made.identity, made.state, made.actor_type, made.detail) == (
        "work",
        AckState.ANSWERED,
        ActorType.CLIENT,
        "why",
    )


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("conversationId", None),
        ("messageId", None),
        ("state", None),
        ("actorId", None),
        ("actorType", None),
        ("state", "read"),
        ("actorType", "person"),
        ("detail", 1),
        ("detail", "x" * 5000),
    ],
)
def test_an_ack_is_refused_by_name(field: str, value: object) -> None:
    with pytest.raises(InvalidError) as refused:
        wire.acknowledge(_ACK | {field: value}, None)
    assert field in refused.value.sentence()


def test_a_notification_has_its_defaults() -> None:
    made = wire.notification({"content": "hello", "identity": "work"}, None)
    assert (made.from_agent_id, made.to_agent_id, made.kind, made.identity) == (
        "unknown",
        "claude",
        Kind.CHAT,
        "work",
    )


def test_a_notification_needs_its_content() -> None:
    with pytest.raises(InvalidError, match="content is required"):
        wire.notification({}, None)


def test_identify() -> None:
    made = wire.identify(b'{"type":"identify","agentId":"a","since":4,"epoch":"e","events":"own"}')
    assert (made.agent_id, made.identity, made.since, made.epoch, made.events) == ("a", None, 4, "e", "own")
    assert wire.identify({"agentId": "a"}).events == "all"


@pytest.mark.parametrize(
    "bad",
    [
        {},
        {"agentId": 1},
        {"agentId": "a", "events": []},
        {"agentId": "a", "since": -1},
        {"agentId": "a", "identity": "*"},
    ],
)
def test_identify_that_cannot_be_used(bad: dict[str, Any]) -> None:
    with pytest.raises(InvalidError):
        wire.identify(bad)


def test_frames() -> None:
    assert wire.frame('{"type":"identify","agentId":"a"}')[0] == "identify"
    for bad in ("", "[]", "{}", '{"type":1}', '{"type":""}', "\x00"):
        with pytest.raises(InvalidError):
            wire.frame(bad)


@pytest.mark.parametrize(("given", "made"), [({}, None), ({"requestId": "r"}, "r"), ({"requestId": 0}, 0)])
def test_request_ids(given: dict[str, Any], made: str | int | None) -> None:
    assert wire.request_id(given) == made


@pytest.mark.parametrize("bad", [True, 1.5, [], {}, "x" * 201, 2**60])
def test_request_ids_that_cannot_be_repeated(bad: object) -> None:
    with pytest.raises(InvalidError):
        wire.request_id({"requestId": bad})


_ANYTHING: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda below: st.lists(below, max_size=3) | st.dictionaries(st.text(), below, max_size=3),
    max_leaves=8,
)
_NAMES = st.sampled_from(
    [
        *_DRAFT,
        *_ACK,
        "toAgentId",
        "meta",
        "createdAt",
        "expiresAt",
        "expectsResponse",
        "identity",
        "agentId",
        "since",
        "events",
    ]
)
_LIKELY: st.SearchStrategy[Any] = st.sampled_from(
    ["chat", "answered", "client", "a", "global", True, 5, None, {}]
)


@given(st.dictionaries(_NAMES, _LIKELY | _ANYTHING))
def test_whatever_an_object_holds_it_is_made_or_refused(data: dict[str, Any]) -> None:
    for parse in (
        lambda: wire.draft(data, None),
        lambda: wire.notification(data, "work"),
        lambda: wire.acknowledge(data, None),
        lambda: wire.identify(data),
    ):
        with contextlib.suppress(InvalidError):
            parse()


def test_a_draft_is_read_in_a_moment() -> None:
    body = json.dumps(
        _DRAFT | {"content": "x" * 200, "toAgentId": "client-b", "messageId": "0" * 36}
    ).encode()
    best = min(_seconds(body) for _ in range(20))
    assert best < 100e-6  # 20 microseconds where nothing else runs


def _seconds(body: bytes) -> float:
    start = time.perf_counter()
    for _ in range(50):
        wire.draft(body, "global")
    return (time.perf_counter() - start) / 50
