"""What real clients sent when they began, said to a shim once more: their tools wait for no service."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from agent_bridge.mcp import catalogue
from integration.mcp.shim.rig import Service, Shim, answer

Start = Callable[..., Shim]
CORPUS = Path(__file__).parents[3] / "corpus" / "mcp"


def test_each_client_has_one() -> None:
    assert {path.stem for path in CORPUS.glob("*.jsonl")} == {"claude_code", "codex", "opencode"}


@pytest.mark.parametrize("recording", sorted(CORPUS.glob("*.jsonl")), ids=lambda path: path.stem)
def test_each_request_is_answered_once_and_the_handshake_at_once(
    service: Service, shim: Start, recording: Path
) -> None:
    lines = recording.read_bytes().splitlines(keepends=True)
    said = [json.loads(line) for line in lines]
    opening = said[0]["params"]
    taken_back = [one["params"]["requestId"] for one in said if one["method"] == "notifications/cancelled"]
    asked = [one["id"] for one in said if "id" in one and one["id"] not in taken_back]
    last = [one for one in said if one["method"] == "tools/call"][-1]
    client = shim()

    client.say(*lines)

    begun, listed = client.hear()["result"], client.hear()["result"]
    assert begun["protocolVersion"] == opening["protocolVersion"]
    assert begun["instructions"] == catalogue.shipped()["instructions"]
    assert listed["tools"] == catalogue.shipped()["tools"]
    peer = service.accept()
    hello = peer.greet()
    assert hello["client"] == {key: opening["clientInfo"][key] for key in ("name", "version")}
    while (passed := peer.hear()) != last:
        peer.say(answer(passed["id"], {}))
    peer.say(answer(last["id"], {}))
    answers = [client.hear() for _ in asked[2:]]
    assert sorted(one["id"] for one in answers) == sorted(asked[2:])
    assert all("result" in one for one in answers)
    assert client.end()[::2] == (0, b"")
