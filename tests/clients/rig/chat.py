"""A fake of the chat completions API, as far as OpenCode 1.18.33 uses it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from clients.rig.script import Body, Call
from clients.rig.server import Answer, FakeModel, Request

PLAIN_MODEL = "fake-small"
"""The model that OpenCode is told to ask for titles."""

_PATH = "/v1/chat/completions"
_PACKAGES = "/packages/"


class FakeChat(FakeModel):
    """`POST /v1/chat/completions` (streamed). Below `/packages/` is a registry that has no package."""

    def get(self, path: str) -> object | None:
        return None

    def is_side_request(self, path: str, headers: Mapping[str, str], body: Body) -> bool:
        # Requests for a title or a summary offer no tools; those of the conversation always do.
        return path != _PATH or not body.get("tools")

    def post(self, request: Request, turns: int) -> Answer | None:
        if request.path != _PATH:
            return None
        said = ("A summary.",) if request.side else self.script.answer(request.body)
        return Answer(events=_stream(request.body, said, turns), end="[DONE]")

    @property
    def titles(self) -> tuple[Request, ...]:
        """The requests for a session's title."""
        return tuple(one for one in self.requests if one.body.get("model") == PLAIN_MODEL)

    @property
    def summaries(self) -> tuple[Request, ...]:
        """The requests that compact a session."""
        return tuple(one for one in self.requests if one.side and one.body.get("model") != PLAIN_MODEL)

    @property
    def installs(self) -> tuple[str, ...]:
        """What was asked of the package registry, as `METHOD path`."""
        return tuple(one for one in self.unknown if _PACKAGES in one)

    @property
    def strange(self) -> tuple[str, ...]:
        """What was asked for and belongs neither to the model nor to the registry."""
        return tuple(one for one in self.unknown if _PACKAGES not in one)


def _stream(body: Body, said: Sequence[str | Call], turn: int) -> Iterator[dict[str, Any]]:
    calls = [part for part in said if isinstance(part, Call)]
    yield _chunk(body, turn, {"role": "assistant", "content": ""})
    for text in (part for part in said if isinstance(part, str)):
        yield _chunk(body, turn, {"content": text})
    for place, call in enumerate(calls):
        function = {"name": call.name, "arguments": json.dumps(dict(call.input))}
        asked = {"index": place, "id": f"call_{turn:04}_{place}", "type": "function", "function": function}
        yield _chunk(body, turn, {"tool_calls": [asked]})
    yield _chunk(body, turn, {}, finish="tool_calls" if calls else "stop")
    usage = {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110}
    yield _chunk(body, turn, None) | {"usage": usage}


def _chunk(
    body: Body, turn: int, delta: Mapping[str, Any] | None, finish: str | None = None
) -> dict[str, Any]:
    choices = [] if delta is None else [{"index": 0, "delta": delta, "finish_reason": finish}]
    return {
        "id": f"chatcmpl-{turn:04}",
        "object": "chat.completion.chunk",
        "created": 1767225600,
        "model": body["model"],
        "choices": choices,
    }
