"""A call outlives the service: what is asked again, how it is named, and when it is given up."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

from agent_bridge import __version__, paths
from agent_bridge.mcp.hello import ENVIRONMENT
from integration.mcp.shim.rig import Service, Shim, answer, call, initialize, welcome

Start = Callable[..., Shim]


def test_hello_says_where_the_shim_comes_from(service: Service, shim: Start, tmp_path: Path) -> None:
    told = {name: f"value of {name}" for name in ENVIRONMENT}
    client = shim(
        "--project", "below", "--identity=team", env={**told, "SECRET_TOKEN": "x"}, cwd=str(tmp_path)
    )
    client.begin("codex-mcp-client")
    hello = service.accept().greet()

    assert len(bytes.fromhex(hello.pop("nonce"))) == 16
    assert hello == {
        "version": 1,
        "pid": client.process.pid,
        "parentPid": os.getpid(),
        "cwd": str(tmp_path),
        "project": str(tmp_path / "below"),
        "identity": "team",
        "client": {"name": "codex-mcp-client", "version": "1.2.3"},
        "agentId": "",
        "replayed": [],
        "environment": told,
    }


def test_answers_itself_before_there_is_a_service(sealed_home: Path, shim: Start) -> None:
    client = shim()
    found = client.begin()
    client.say(
        {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}, {"jsonrpc": "2.0", "id": 2, "method": "ping"}
    )

    assert found["protocolVersion"] == "2025-06-18"
    assert found["serverInfo"]["name"] == "agent-bridge"
    assert found["serverInfo"]["version"] == __version__
    assert [tool["name"] for tool in client.hear()["result"]["tools"]][:2] == ["remember", "recall"]
    assert client.hear() == answer(2, {})


def test_calls_and_answers_pass(service: Service, shim: Start) -> None:
    client = shim()
    client.begin()
    client.say(call("a", query="ä→🙂"), call(7))
    peer = service.accept()
    peer.greet()

    assert peer.hear() == call("a", query="ä→🙂")
    assert peer.hear() == call(7)
    peer.say(answer(7, {"content": []}), answer("a", {"big": 10**40}))
    assert client.hear() == answer(7, {"content": []})
    assert client.hear() == answer("a", {"big": 10**40})
    code, took, errors = client.end()
    assert (code, errors) == (0, b"")
    assert took < 1
    assert peer.hear() == {}


def test_next_call_after_a_kill_finds_the_next_service(service: Service, shim: Start) -> None:
    client = shim()
    client.begin()
    first = service.accept()
    nonce = first.greet()["nonce"]
    client.say(call(1))
    assert first.hear() == call(1)
    first.say(answer(1, {}))
    assert client.hear() == answer(1, {})
    service.close()
    first.close()

    following = Service(service.path)
    client.say(call(2))
    second = following.accept()
    hello = second.greet()
    assert (hello["nonce"], hello["agentId"], hello["replayed"]) == (nonce, "client-1", [])
    assert second.hear() == call(2)
    second.say(answer(2, {}))
    assert client.hear() == answer(2, {})
    following.close()


def test_what_was_unanswered_is_asked_again_and_said_to_be(service: Service, shim: Start) -> None:
    client = shim()
    client.begin()
    first = service.accept()
    first.greet()
    client.say(call("one"), call(2), call(3))
    assert [first.hear()["id"] for _ in range(3)] == ["one", 2, 3]
    first.say(answer(2, {}))
    assert client.hear() == answer(2, {})
    first.close()

    second = service.accept()
    assert second.greet()["replayed"] == ['"one"', "3"]
    assert [second.hear()["id"], second.hear()["id"]] == ["one", 3]
    second.say(answer(3, {}), answer("one", {}))
    assert [client.hear()["id"], client.hear()["id"]] == [3, "one"]


def test_call_that_ends_each_service_is_not_tried_for_ever(service: Service, shim: Start) -> None:
    client = shim()
    client.begin()
    client.say(call(1))
    for _ in range(5):
        peer = service.accept()
        peer.greet()
        assert peer.hear() == call(1)
        peer.close()
    found = client.hear()["result"]

    assert found["isError"]
    assert "ended 5 times" in found["content"][0]["text"]
    assert "isn't known" in found["content"][0]["text"]


def test_cancelled_call_is_not_asked_again(service: Service, shim: Start) -> None:
    client = shim()
    client.begin()
    first = service.accept()
    first.greet()
    client.say(call(1), call(2))
    assert [first.hear()["id"], first.hear()["id"]] == [1, 2]
    cancelled = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}}
    client.say(cancelled)
    assert first.hear() == cancelled
    first.close()

    second = service.accept()
    assert second.greet()["replayed"] == ["2"]
    assert second.hear() == call(2)
    second.say(answer(1, {}), answer(2, {}))
    assert client.hear() == answer(2, {})


def test_answer_of_the_client_goes_to_the_service_that_asked(service: Service, shim: Start) -> None:
    roots = {"jsonrpc": "2.0", "id": 0, "method": "roots/list"}
    client = shim()
    client.begin()
    first = service.accept()
    first.greet()
    first.say(roots)
    old = client.hear()
    assert old["method"] == "roots/list"
    first.close()
    cancelled = client.hear()
    assert (cancelled["method"], cancelled["params"]["requestId"]) == ("notifications/cancelled", old["id"])

    client.say(call(1))
    second = service.accept()
    second.greet()
    assert second.hear() == call(1)
    second.say(roots)
    new = client.hear()
    assert new["id"] != old["id"]
    client.say(answer(old["id"], {"roots": ["old"]}), answer(new["id"], {"roots": ["new"]}))
    assert second.hear() == answer(0, {"roots": ["new"]})


def test_silent_service_does_not_hold_a_call_for_ever(sealed_home: Path, shim: Start) -> None:
    """Nobody listens, and the shim may start nobody: it says so, and what to do."""
    client = shim()
    client.begin()
    client.say(call(1))
    time.sleep(0.1)
    _, took, _ = client.end()

    found = client.hear()["result"]
    assert found["isError"]
    assert "agent-bridge up" in found["content"][0]["text"]
    assert took < 1


def test_refusal_is_told_and_tried_anew_with_the_next_call(service: Service, shim: Start) -> None:
    client = shim()
    client.begin()
    client.say(call(1))
    first = service.accept()
    first.hear()
    first.say({"refused": {"reason": "The identity isn't one."}})
    told = client.hear()["result"]["content"][0]["text"]
    assert told == "The service refused the connection: The identity isn't one.", "and it does run"
    assert first.hear() == {}

    client.say({"jsonrpc": "2.0", "id": 2, "method": "resources/read"})
    second = service.accept()
    second.hear()
    second.say({"refused": {"reason": "Still not."}})
    found = client.hear()
    assert (found["id"], found["error"]["code"]) == (2, -32000)
    assert "Still not." in found["error"]["message"]


def test_rubbish_of_the_service_never_reaches_the_client(service: Service, shim: Start) -> None:
    client = shim()
    client.begin()
    client.say(call(1))
    for rubbish in (
        b"Traceback (most recent call last):\n",
        b"[]\n",
        b"\xff\xfe\n",
        b'{"id": 1, "result": {}}\n',
    ):
        peer = service.accept()
        peer.greet()
        assert peer.hear() == call(1)
        peer.say(rubbish)
        assert peer.hear() == {}
    peer = service.accept()
    peer.greet()
    peer.hear()
    peer.say(answer(99, {}), answer(1, {}))
    assert client.hear() == answer(1, {})


def test_other_tools_are_told(service: Service, shim: Start) -> None:
    client = shim()
    client.begin()
    client.say({"jsonrpc": "2.0", "id": 1, "method": "tools/list"})
    shipped = client.hear()["result"]["tools"]
    tool = {"name": "novel", "inputSchema": {"type": "object"}}
    place = paths.mcp_catalogue()
    place.parent.mkdir(parents=True)
    place.write_text(
        f'{{"catalogue": 1, "digest": "d2", "serverInfo": {{"name": "agent-bridge", "version": "9"}}, '
        f'"instructions": "", "capabilities": {{}}, "tools": [{str(tool).replace(chr(39), chr(34))}]}}'
    )
    service.accept().greet(digest="d2")

    assert client.hear() == {"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}
    client.say({"jsonrpc": "2.0", "id": 2, "method": "tools/list"})
    assert client.hear()["result"]["tools"] == [tool] != shipped


def test_service_of_another_protocol_gets_the_version_that_was_agreed(service: Service, shim: Start) -> None:
    client = shim()
    client.say(initialize(version="2026-07-28"))
    assert client.hear()["result"]["protocolVersion"] == "2025-11-25"
    peer = service.accept()
    peer.hear()
    peer.say(welcome())
    assert peer.hear()["params"]["protocolVersion"] == "2025-11-25"
