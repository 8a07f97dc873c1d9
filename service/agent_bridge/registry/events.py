"""Frames as they go over the sockets: made once, the same bytes for every socket. Pure.

A frame is the whole WebSocket frame, header included: text, unfragmented, unmasked, uncompressed.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Mapping
from typing import Any

from pydantic_core import PydanticSerializationError, to_json

from agent_bridge.channel.writes import Event

_SHORT = 125
_MEDIUM = 0xFFFF


def text_frame(payload: bytes) -> bytes:
    """`payload`, which is UTF-8, as a WebSocket text frame from a server."""
    size = len(payload)
    if size <= _SHORT:
        return b"\x81%c%b" % (size, payload)
    if size <= _MEDIUM:
        return b"\x81\x7e%b%b" % (size.to_bytes(2, "big"), payload)
    return b"\x81\x7f%b%b" % (size.to_bytes(8, "big"), payload)


def encoded(value: Any) -> bytes:  # noqa: ANN401 - JSON is anything
    """`value` as JSON. Half of a surrogate pair, which no UTF-8 has, is escaped."""
    try:
        return to_json(value)
    except PydanticSerializationError:
        return json.dumps(value).encode()


def encoded_list(values: Iterable[object]) -> bytes:
    """A list as JSON, made an entry at a time: on a thread of its own it lets others in after each.

    Large messages encoded at once would make the event loop wait for all of them."""
    return b"[%b]" % b",".join(map(encoded, values))


def encoded_object(fields: Mapping[str, bytes]) -> bytes:
    """An object as JSON, whose values are JSON already."""
    return b"{%b}" % b",".join(b"%b:%b" % (encoded(name), value) for name, value in fields.items())


def timestamp(wall_ms: int) -> bytes:
    """A moment as the envelope has it: ISO 8601, UTC, milliseconds."""
    seconds, rest = divmod(wall_ms, 1000)
    return b"%b.%03dZ" % (time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds)).encode(), rest)


def event_frame(event: Event, at: bytes, data: bytes | None = None, *, replay: bool = False) -> bytes:
    """An event as its frame; `at` from `timestamp`, `data` is the event's, encoded, where it is there."""
    seq = b"" if event.seq is None else b',"seq":%d' % event.seq
    return text_frame(
        b'{"type":%b,"timestamp":"%b"%b%b,"data":%b}'
        % (
            encoded(event.type),
            at,
            seq,
            b',"replay":true' if replay else b"",
            encoded(event.data) if data is None else data,
        )
    )


def answer_frame(kind: str, at: bytes, request_id: str | int | None, data: Mapping[str, bytes]) -> bytes:
    """The answer to one frame of a client; the values of `data` are JSON already."""
    fields = [b'"%b":%b' % (name.encode(), value) for name, value in data.items()]
    if request_id is not None:
        fields.insert(0, b'"requestId":%b' % encoded(request_id))
    return text_frame(b'{"type":"%b","timestamp":"%b","data":{%b}}' % (kind.encode(), at, b",".join(fields)))


def plain_frame(kind: str, **fields: object) -> bytes:
    """A frame of the conversation between registry and socket, without an envelope."""
    return text_frame(encoded({"type": kind, **fields}))
