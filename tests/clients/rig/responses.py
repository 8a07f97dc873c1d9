"""A fake of the Responses API, as far as Codex 0.171.0 uses it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from clients.rig.script import Body, Call
from clients.rig.server import Answer, FakeModel, Request


class FakeResponses(FakeModel):
    """`POST /v1/responses` (streamed), `GET /v1/models`."""

    def get(self, path: str) -> object | None:
        return {"object": "list", "data": [], "models": []} if path == "/v1/models" else None

    def is_side_request(self, path: str, headers: Mapping[str, str], body: Body) -> bool:
        # Titles and memory upkeep are threads of their own (header x-codex-turn-metadata, JSON).
        source = json.loads(headers.get("x-codex-turn-metadata", "{}")).get("thread_source")
        return path != "/v1/responses" or source in {"thread_title", "memory_consolidation"}

    def post(self, request: Request, turns: int) -> Answer | None:
        if request.path != "/v1/responses":
            return None
        said = ("ok",) if request.side else self.script.answer(request.body)
        return Answer(events=_stream(said, turns, _namespaces(request.body)))


def _namespaces(body: Body) -> dict[str, str]:
    """The namespace of each tool that stands in one: Codex puts those of an MCP server there."""
    groups = [tool for tool in body.get("tools", ()) if tool["type"] == "namespace"]
    return {tool["name"]: group["name"] for group in groups for tool in group["tools"]}


def _stream(said: Sequence[str | Call], turn: int, namespaces: Mapping[str, str]) -> Iterator[dict[str, Any]]:
    response: dict[str, Any] = {"id": f"resp_{turn:04}", "object": "response", "output": []}
    yield {"type": "response.created", "response": response | {"status": "in_progress"}}
    items = [_item(part, f"{turn:04}_{place}", namespaces) for place, part in enumerate(said)]
    for index, item in enumerate(items):
        yield {"type": "response.output_item.added", "output_index": index, "item": item}
        yield {"type": "response.output_item.done", "output_index": index, "item": item}
    usage = {"input_tokens": 100, "output_tokens": 10, "total_tokens": 110}
    yield {
        "type": "response.completed",
        "response": response | {"status": "completed", "output": items, "usage": usage},
    }


def _item(part: str | Call, suffix: str, namespaces: Mapping[str, str]) -> dict[str, Any]:
    if isinstance(part, str):
        content = [{"type": "output_text", "text": part, "annotations": []}]
        return {"type": "message", "id": f"msg_{suffix}", "role": "assistant", "content": content}
    place = {"namespace": namespaces[part.name]} if part.name in namespaces else {}
    return place | {
        "type": "function_call",
        "id": f"fc_{suffix}",
        "call_id": f"call_{suffix}",
        "name": part.name,
        "arguments": json.dumps(dict(part.input)),
    }
