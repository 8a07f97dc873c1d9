"""What a process of the same user may do to the socket of the tools, and what it can't."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from agent_bridge import paths
from agent_bridge.daemon import mcp_loop
from agent_bridge.mcp.hello_parse import HELLO_BYTES
from agent_bridge.mcp.lines import READ_AHEAD
from agent_bridge.mcp.streams import LINE_BYTES
from integration.mcp.brain.conftest import PATIENCE, Shim, Tools

Connect = Callable[..., Shim]


@contextmanager
def mute() -> Iterator[socket.socket]:
    """A connection that says nothing by itself."""
    with closing(socket.socket(socket.AF_UNIX)) as peer:
        peer.settimeout(PATIENCE)
        peer.connect(str(paths.mcp_socket()))
        yield peer


def test_a_hello_without_an_end_is_refused_once_it_is_too_long(tools: Tools) -> None:
    with mute() as peer:
        peer.sendall(b"x" * (HELLO_BYTES + 2 * READ_AHEAD))
        assert b"too long" in peer.recv(1000)


def test_a_long_line_is_read_and_one_that_is_too_long_ends_the_connection(connect: Connect) -> None:
    first, second = connect(), connect()
    first.begin()
    answer = first.call("recall", query="x" * 3_000_000)
    assert answer["isError"], answer

    second.begin()
    try:
        second.send(b" " * (LINE_BYTES + 1024 * 1024))
        assert second.hear() == {}
    except (BrokenPipeError, ConnectionResetError):
        pass
    assert first.ask("ping")["result"] == {}


def test_silent_connections_are_so_many_at_most(tools: Tools, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mcp_loop, "MOST_CONNECTIONS", 2)
    with mute() as first, mute():
        with mute() as third:
            third.settimeout(4)  # a hello is waited for for longer
            assert third.recv(1) == b""
        first.sendall(b"{}\n")
        assert b"refused" in first.recv(1000)


@pytest.mark.parametrize("name", ["x" * 300, "gone"])
def test_a_directory_that_cannot_be_looked_into_has_no_project_and_harms_nothing(
    tools: Tools, connect: Connect, project: Path, name: str
) -> None:
    shim = connect(cwd=project / name / "inner")
    shim.begin()
    said = shim.call("remember", text="Not kept.")["content"][0]["text"]
    assert "isn't a directory that can be looked into" in said
    assert not shim.call("recall", query="kept")["isError"]
    assert not shim.call("list_agents", includeClients=True)["isError"]
    (row,) = tools.wait_rows(1)
    assert row["agentId"] == shim.agent_id
    assert tools.host.describe()["errors"] == 0


def test_roots_that_change_again_and_again_are_asked_for_one_question_at_a_time(
    connect: Connect, sealed_home: Path, project: Path
) -> None:
    shim = connect(cwd=sealed_home)
    shim.begin({"roots": {"listChanged": True}})
    first = shim.hear()
    assert first["method"] == "roots/list"
    for _ in range(50):
        shim.say({"jsonrpc": "2.0", "method": "notifications/roots/list_changed"})
    assert shim.ask("ping")["result"] == {}  # all of them have been read, and nothing more was asked
    number = shim.request("tools/call", {"name": "remember", "arguments": {"text": "Where it is now."}})
    for asked, root in ((first, sealed_home / "elsewhere"), (None, project)):
        question = asked or shim.hear()
        assert question["method"] == "roots/list"
        result = {"roots": [{"uri": root.as_uri()}]}
        shim.say({"jsonrpc": "2.0", "id": question["id"], "result": result})
    answer = shim.hear()
    assert answer["id"] == number
    assert "Remembered" in answer["result"]["content"][0]["text"]
    assert list((project / ".memory" / "entries").glob("*.md"))
