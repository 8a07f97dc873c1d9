"""A fake of the Messages API, as far as Claude Code 2.1.332 uses it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from clients.rig.script import Body, Call
from clients.rig.server import Answer, FakeModel, Request


class FakeAnthropic(FakeModel):
    """`POST /v1/messages` (streamed or not), `/v1/messages/count_tokens`, `GET|HEAD /api/hello`."""

    def get(self, path: str) -> object | None:
        return {"message": "hello"} if path in {"/", "/api/hello"} else None

    def is_side_request(self, path: str, headers: Mapping[str, str], body: Body) -> bool:
        # The conversation always offers tools; a request for a title or a summary never does.
        return path != "/v1/messages" or not body.get("tools")

    def post(self, request: Request, turns: int) -> Answer | None:
        if request.path == "/v1/messages/count_tokens":
            return Answer({"input_tokens": 100})
        if request.path != "/v1/messages":
            return None
        said = ("ok",) if request.side else self.script.answer(request.body)
        message = _message(request.body, said, turns)
        return Answer(events=_stream(message)) if request.body.get("stream") else Answer(message)


def _message(body: Body, said: Sequence[str | Call], turn: int) -> dict[str, Any]:
    calls = any(isinstance(part, Call) for part in said)
    return {
        "id": f"msg_{turn:04}",
        "type": "message",
        "role": "assistant",
        "model": body["model"],
        "content": [_block(part, f"toolu_{turn:04}_{place}") for place, part in enumerate(said)],
        "stop_reason": "tool_use" if calls else "end_turn",
        "stop_sequence": None,
        "usage": {"input_tokens": 100, "output_tokens": 10},
    }


def _block(part: str | Call, call_id: str) -> dict[str, Any]:
    if isinstance(part, str):
        return {"type": "text", "text": part}
    return {"type": "tool_use", "id": call_id, "name": part.name, "input": dict(part.input)}


def _stream(message: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The same message as the events that the real server streams."""
    yield {"type": "message_start", "message": message | {"content": [], "stop_reason": None}}
    for index, block in enumerate(message["content"]):
        if block["type"] == "text":
            empty, delta = block | {"text": ""}, {"type": "text_delta", "text": block["text"]}
        else:
            empty = block | {"input": {}}
            delta = {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
        yield {"type": "content_block_start", "index": index, "content_block": empty}
        yield {"type": "content_block_delta", "index": index, "delta": delta}
        yield {"type": "content_block_stop", "index": index}
    yield {
        "type": "message_delta",
        "delta": {"stop_reason": message["stop_reason"], "stop_sequence": None},
        "usage": message["usage"],
    }
    yield {"type": "message_stop"}
