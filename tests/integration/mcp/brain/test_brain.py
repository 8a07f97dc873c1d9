"""The tools' side of the service, at its Unix socket: who is let in, what is answered, what becomes of it."""

from __future__ import annotations

import json
import socket
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agent_bridge import paths
from agent_bridge.mcp import catalogue
from agent_bridge.mcp.tools import all_tools
from integration.mcp.brain.conftest import Shim, Tools, listed_project

Connect = Callable[..., Shim]
CORPUS = Path(__file__).parents[3] / "corpus" / "mcp"


def facts(root: Path) -> list[str]:
    return [path.read_text() for path in (root / ".memory" / "entries").iterdir()]


def test_the_socket_is_private_and_says_who_is_there(tools: Tools, connect: Connect, project: Path) -> None:
    assert stat.S_IMODE(paths.mcp_socket().stat().st_mode) == 0o600
    assert tools.host.describe()["state"] == "idle"
    shim = connect()
    status = tools.wait(lambda status: status["clients"])
    assert status["state"] == "ok"
    (client,) = status["clients"]
    assert {key: client[key] for key in ("client", "version", "agentId", "project", "identity")} == {
        "client": "codex-mcp-client",
        "version": "1.0",
        "agentId": shim.agent_id,
        "project": str(project),
        "identity": "global",
    }
    shim.close()
    tools.wait(lambda status: not status["clients"])


def test_what_the_tools_are_is_written_down_for_the_shims(tools: Tools, connect: Connect) -> None:
    written = json.loads(paths.mcp_catalogue().read_bytes())
    assert written == catalogue.shipped()
    assert connect().answer["welcome"]["catalogue"] == written["digest"]


@pytest.mark.parametrize("recording", sorted(CORPUS.glob("*.jsonl")), ids=lambda path: path.stem)
def test_what_each_client_says_is_answered(
    connect: Connect, project: Path, recording: Path, tools: Tools
) -> None:
    said = [json.loads(line) for line in recording.read_text().splitlines()]
    opening = said[0]["params"]
    shim = connect(client=opening["clientInfo"]["name"])
    answers: dict[Any, dict[str, Any]] = {}
    for message in said:
        shim.say(message)
        while "id" in message and message["id"] not in answers:
            heard = shim.hear()
            if heard.get("method") == "roots/list":
                root = {"uri": project.as_uri(), "name": "project"}
                shim.say({"jsonrpc": "2.0", "id": heard["id"], "result": {"roots": [root]}})
            else:
                answers[heard["id"]] = heard
    assert all("result" in answer for answer in answers.values()), answers
    assert answers[0]["result"]["protocolVersion"] == opening["protocolVersion"]
    assert answers[0]["result"]["serverInfo"]["name"] == "agent-bridge"
    assert answers[1]["result"]["tools"] == catalogue.shipped()["tools"]
    assert len(facts(project)) == 1
    assert "was here." in facts(project)[0]


def test_a_tool_works_and_a_wrong_call_is_told(tools: Tools, connect: Connect) -> None:
    shim = connect(client="opencode")
    shim.begin()
    assert "Remembered" in shim.call("remember", text="The lexer is generated.")["content"][0]["text"]
    found = shim.call("recall", query="lexer")
    assert not found["isError"]
    assert found["structuredContent"]["facts"]
    wrong = shim.call("recall", nope=1)
    assert wrong["isError"]
    assert "nope isn't known" in wrong["content"][0]["text"]
    assert "structuredContent" not in wrong
    assert shim.ask("tools/call", {"name": "rm", "arguments": {}})["error"]["code"] == -32602
    assert shim.ask("prompts/get", {"name": "x"})["error"]["code"] == -32601
    assert shim.ask("server/discover")["error"]["code"] == -32601
    assert (tools.host.describe()["calls"], tools.host.describe()["errors"]) == (3, 0)


def test_the_index_is_a_resource(connect: Connect, project: Path) -> None:
    shim = connect()
    shim.begin()
    listed = shim.ask("resources/list")["result"]["resources"]
    assert [one["uri"] for one in listed] == ["agent-bridge://memory/project", "agent-bridge://memory/global"]
    (project / ".memory" / "MEMORY.md").write_text("- [A fact](entries/a.md)\n")
    read = shim.ask("resources/read", {"uri": listed[0]["uri"]})["result"]["contents"][0]
    assert read["text"] == "- [A fact](entries/a.md)\n"
    assert "Nothing is remembered" in str(shim.ask("resources/read", {"uri": listed[1]["uri"]}))
    elsewhere = project.parent / "private"
    elsewhere.write_text("a key")
    (project / ".memory" / "MEMORY.md").unlink()
    (project / ".memory" / "MEMORY.md").symlink_to(elsewhere)
    assert "leads out" in shim.ask("resources/read", {"uri": listed[0]["uri"]})["error"]["message"]
    assert shim.ask("resources/read", {"uri": "file:///etc/passwd"})["error"]["code"] == -32002


@pytest.mark.parametrize(
    ("client", "gets_data"), [("claude-code", False), ("codex-mcp-client", False), ("x", True)]
)
def test_who_would_show_the_data_in_place_of_the_text_gets_the_text_alone(
    connect: Connect, client: str, *, gets_data: bool
) -> None:
    shim = connect(client=client)
    shim.begin()
    answer = shim.call("list_memory")
    assert answer["content"][0]["text"]
    assert ("structuredContent" in answer) is gets_data


@pytest.mark.parametrize(
    "line",
    [
        b"rubbish\n",
        b'{"hello": {"version": 9}}\n',
        b'{"jsonrpc":"2.0","id":1,"method":"initialize"}\n',
        b"\n",
    ],
)
def test_who_says_no_hello_is_told_why_and_let_go(tools: Tools, connect: Connect, line: bytes) -> None:
    assert "welcome" in connect().answer
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as peer:
        peer.settimeout(20)
        peer.connect(str(paths.mcp_socket()))
        peer.sendall(line)
        told = peer.makefile("rb").read()
    assert json.loads(told)["refused"]["reason"]
    assert len(tools.host.describe()["clients"]) == 1


def test_rubbish_after_the_hello_harms_nobody(connect: Connect) -> None:
    shim = connect()
    shim.begin()
    for line in (b"rubbish", b"[]", b"{}", b'{"jsonrpc":"2.0","id":[],"method":"x"}', b"\xff\xfe", b""):
        shim.send(line + b"\n")
    number = shim.request("ping")
    while (heard := shim.hear()).get("id") != number:
        assert "error" in heard
    assert heard["result"] == {}


def test_two_sessions_are_two_rows_and_go_when_their_shims_go(tools: Tools, connect: Connect) -> None:
    first, second = connect(), connect()
    assert second.agent_id == f"{first.agent_id}-2"
    for shim in (first, second):
        shim.begin()
    rows = tools.wait_rows(2)
    assert {row["agentId"] for row in rows} == {first.agent_id, second.agent_id}
    assert {(row["name"], row["entryType"], row["pid"]) for row in rows} == {
        ("Codex in project", "client", 10)
    }
    first.close()
    assert [row["agentId"] for row in tools.wait_rows(1)] == [second.agent_id]
    assert connect(agentId=first.agent_id).agent_id == first.agent_id


def test_a_client_is_where_its_roots_are_unless_somebody_named_a_project(
    tools: Tools, connect: Connect, project: Path, sealed_home: Path
) -> None:
    other = listed_project(sealed_home / "other")
    shim = connect(cwd=sealed_home)
    number = shim.request("initialize", _initialize({"roots": {}}))
    assert shim.hear()["id"] == number
    shim.say({"jsonrpc": "2.0", "method": "notifications/initialized"})
    asked = shim.hear()
    assert asked["method"] == "roots/list"
    call = shim.request("tools/call", {"name": "remember", "arguments": {"text": "Said before the roots."}})
    roots = [{"uri": "https://example.invalid/x"}, {"uri": other.as_uri()}, {"uri": project.as_uri()}]
    shim.say({"jsonrpc": "2.0", "id": asked["id"], "result": {"roots": roots[1:]}})
    assert shim.hear()["id"] == call
    assert len(facts(other)) == 1
    (client,) = tools.wait(lambda status: status["clients"][0]["project"] == str(other))["clients"]
    assert client["agentId"] != shim.agent_id
    assert shim.renamed == [client["agentId"]]
    assert [row["projectPath"] for row in tools.wait_rows(1)] == [str(other)]

    named = connect(cwd=sealed_home, project=str(project))
    named.begin({"roots": {}})
    named.call("remember", text="Nobody was asked for roots.")
    assert len(facts(project)) == 1


def test_who_was_placed_by_its_roots_is_the_same_after_a_restart(
    tools: Tools, connect: Connect, sealed_home: Path
) -> None:
    other = listed_project(sealed_home / "other")
    ids = [_placed(connect(cwd=sealed_home), other) for _ in range(2)]
    assert ids[1] == f"{ids[0]}-2"
    tools.wait_rows(2)
    tools.stop()
    again = Tools()
    try:
        for agent_id in reversed(ids):
            back = connect(cwd=sealed_home, agentId=agent_id)
            assert _placed(back, other) == agent_id
        assert {row["agentId"] for row in again.wait_rows(2)} == set(ids)
    finally:
        again.stop()


def _placed(shim: Shim, root: Path) -> str:
    """The id that a client gets by its root."""
    shim.begin({"roots": {}})
    asked = shim.hear()
    roots = {"roots": [{"uri": root.as_uri()}]}
    shim.say({"jsonrpc": "2.0", "id": asked["id"], "result": roots})
    shim.call("list_memory")  # it waits until it is known where
    (agent_id,) = shim.renamed
    return agent_id


def test_calls_run_beside_each_other_and_a_cancelled_one_is_not_waited_for(connect: Connect) -> None:
    shim = connect()
    shim.begin()
    numbers = {
        shim.request("tools/call", {"name": "remember", "arguments": {"text": f"Fact number {number}"}})
        for number in range(20)
    }
    assert {shim.hear()["id"] for _ in range(20)} == numbers
    shim.say({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": max(numbers)}})
    assert shim.ask("ping")["result"] == {}


def test_the_end_is_clean_with_clients_connected(tools: Tools, connect: Connect) -> None:
    shim = connect()
    shim.begin()
    shim.call("remember", text="The last words.")
    tools.host.stop()
    assert shim.hear() == {}
    assert not paths.mcp_socket().exists()


def test_a_socket_that_cannot_be_made_is_told(sealed_home: Path, tmp_path: Path) -> None:
    directory = paths.mcp_socket()
    directory.mkdir(parents=True)
    tools = Tools()
    try:
        status = tools.host.describe()
        assert status["state"] == "failed"
        assert str(directory) in status["reasons"][0]
    finally:
        tools.stop()


def test_the_sdk_comes_without_what_a_server_does_not_use() -> None:
    program = (
        "import sys\n"
        "from agent_bridge.mcp import sdk\n"
        "sdk.load()\n"
        "import agent_bridge.mcp.server, agent_bridge.mcp.http, agent_bridge.mcp.streams\n"
        "left_out = {'cryptography', 'httpx2', 'mcp.client'} & set(sys.modules)\n"
        "assert not left_out, left_out\n"
        "import mcp.server\n"
        "from mcp.server.lowlevel.server import Server\n"
        "assert mcp.server.Server is Server and mcp.Client\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_every_tool_that_is_told_of_is_there() -> None:
    assert [tool.name for tool in all_tools()] == [tool["name"] for tool in catalogue.shipped()["tools"]]


def _initialize(capabilities: dict[str, Any]) -> dict[str, Any]:
    about = {"name": "x", "version": "1"}
    return {"protocolVersion": "2025-11-25", "capabilities": capabilities, "clientInfo": about}
