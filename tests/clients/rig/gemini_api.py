"""A fake of the Gemini API, as far as Gemini CLI 0.61.0 uses it with an API key."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from clients.rig.script import Body, Call
from clients.rig.server import Answer, FakeModel, Request

STREAM = ":streamGenerateContent"
WHOLE = ":generateContent"
COUNT = ":countTokens"


class FakeGemini(FakeModel):
    """`POST /v1beta/models/MODEL:VERB`: streamGenerateContent (the conversation), two that answer at once."""

    def get(self, path: str) -> object | None:
        return None

    def is_side_request(self, path: str, headers: Mapping[str, str], body: Body) -> bool:
        # The conversation is streamed and offers tools; routing, titles and summaries aren't or don't.
        return not (path.endswith(STREAM) and body.get("tools"))

    def post(self, request: Request, turns: int) -> Answer | None:
        if request.path.endswith(COUNT):
            return Answer({"totalTokens": 100})
        if not request.path.endswith((STREAM, WHOLE)):
            return None
        said = ("ok",) if request.side else self.script.answer(request.body)
        message = _message(said, turns)
        return Answer(events=[message]) if request.path.endswith(STREAM) else Answer(message)


def _message(said: Sequence[str | Call], turn: int) -> dict[str, Any]:
    parts = [_part(part, f"call_{turn:04}_{place}") for place, part in enumerate(said)]
    content = {"role": "model", "parts": parts}
    return {
        "responseId": f"response_{turn:04}",
        "modelVersion": "fake-model",
        "candidates": [{"index": 0, "content": content, "finishReason": "STOP"}],
        "usageMetadata": {"promptTokenCount": 100, "candidatesTokenCount": 10, "totalTokenCount": 110},
    }


def _part(part: str | Call, call_id: str) -> dict[str, Any]:
    if isinstance(part, str):
        return {"text": part}
    return {"functionCall": {"id": call_id, "name": part.name, "args": dict(part.input)}}
