"""Frames: what a client's own parser makes of them."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from websockets.client import ClientProtocol
from websockets.frames import Frame, Opcode
from websockets.protocol import OPEN
from websockets.uri import parse_uri

from agent_bridge.channel.writes import Event
from agent_bridge.registry import events

_AT = events.timestamp(1_700_000_000_123)


def _payloads(data: bytes) -> list[bytes]:
    client = ClientProtocol(parse_uri("ws://localhost/"), state=OPEN, max_size=None)
    client.receive_data(data)
    frames = client.events_received()
    assert client.parser_exc is None
    payloads = []
    for frame in frames:
        assert isinstance(frame, Frame)
        assert frame.opcode is Opcode.TEXT
        assert frame.fin
        payloads.append(bytes(frame.data))
    return payloads


def _read(data: bytes) -> dict[str, Any]:
    (payload,) = _payloads(data)
    read: dict[str, Any] = json.loads(payload)
    return read


@pytest.mark.parametrize("size", [0, 1, 125, 126, 127, 65_535, 65_536, 70_000])
def test_a_frame_of_any_size_is_read_as_it_was(size: int) -> None:
    payload = b"x" * size

    assert _payloads(events.text_frame(payload)) == [payload]


@given(st.lists(st.binary(max_size=300), max_size=5))
def test_frames_behind_one_another_are_told_apart(payloads: list[bytes]) -> None:
    assert _payloads(b"".join(map(events.text_frame, payloads))) == payloads


def test_a_stored_event_has_its_seq_and_its_data() -> None:
    event = Event(type="channel.message", identity="global", data={"content": 'a "b"\n\x00é'}, seq=7)

    assert _read(events.event_frame(event, _AT)) == {
        "type": "channel.message",
        "timestamp": "2023-11-14T22:13:20.123Z",
        "seq": 7,
        "data": {"content": 'a "b"\n\x00é'},
    }


def test_an_event_that_isnt_stored_has_no_seq() -> None:
    event = Event(type="agent.heartbeat", identity="global", data={})

    assert "seq" not in _read(events.event_frame(event, _AT))


def test_a_replayed_event_says_so() -> None:
    event = Event(type="channel.ack", identity="global", data={}, seq=1)

    assert _read(events.event_frame(event, _AT, replay=True))["replay"] is True
    assert "replay" not in _read(events.event_frame(event, _AT))


def test_data_that_is_encoded_already_is_taken_as_it_is() -> None:
    event = Event(type="channel.message", identity="global", data={"n": 1}, seq=1)
    data = events.encoded(event.data)

    assert events.event_frame(event, _AT, data) == events.event_frame(event, _AT)


@pytest.mark.parametrize("request_id", ["r1", 'quote " and \\', 5, 0])
def test_an_answer_repeats_its_request_id(request_id: str | int) -> None:
    frame = events.answer_frame("channel.sent", _AT, request_id, {"deduplicated": b"true"})

    assert _read(frame)["data"] == {"requestId": request_id, "deduplicated": True}


def test_an_answer_without_a_request_id_has_none() -> None:
    assert "requestId" not in _read(events.answer_frame("channel.acked", _AT, None, {"ack": b"{}"}))["data"]


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=10,
)


@given(_JSON)
def test_values_come_back_as_they_were(value: object) -> None:
    assert json.loads(events.encoded(value)) == value


def test_half_a_surrogate_pair_is_escaped_rather_than_raised() -> None:
    encoded = events.encoded({"name": "\ud800"})

    assert encoded.isascii()
    assert json.loads(encoded) == {"name": "\ud800"}
