"""The tools' socket after somebody has removed its file: shims find a new one, who is connected stays."""

from __future__ import annotations

import shutil
import socket
import stat
import time
from collections.abc import Callable

import pytest

from agent_bridge import paths
from integration.mcp.brain.conftest import PATIENCE, Shim, Tools

Connect = Callable[..., Shim]


@pytest.mark.parametrize("is_used", [False, True], ids=["nobody came yet", "somebody is connected"])
@pytest.mark.parametrize("with_its_place", [False, True], ids=["file", "directory"])
def test_a_socket_that_was_removed_is_bound_anew(
    tools: Tools, connect: Connect, *, is_used: bool, with_its_place: bool
) -> None:
    path = paths.mcp_socket()
    first = None
    if is_used:
        first = connect()
        first.begin()
    for _ in range(2):
        if with_its_place:
            shutil.rmtree(path.parent)
        path.unlink(missing_ok=True)
        tools.host.check_socket()
        _wait_for_socket()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    second = connect()
    assert second.begin()["result"]["serverInfo"]["name"] == "agent-bridge"
    if first is not None:
        assert first.ask("ping")["result"] == {}
    status = tools.host.describe()
    assert (status["state"], status["failures"]) == ("ok", 0)
    tools.stop()
    assert not path.exists()


def test_what_somebody_else_has_put_there_stays_and_is_told(tools: Tools, connect: Connect) -> None:
    connect()
    path = paths.mcp_socket()
    path.unlink()
    path.write_text("mine")
    tools.host.check_socket()
    assert str(path) in tools.wait(lambda status: status["reasons"])["reasons"][0]
    assert path.read_text() == "mine"
    path.unlink()
    tools.host.check_socket()
    tools.wait(lambda status: not status["reasons"])
    _wait_for_socket()
    assert "welcome" in connect().answer


def test_a_socket_that_is_there_stays(tools: Tools, connect: Connect) -> None:
    before = paths.mcp_socket().lstat()
    tools.host.check_socket()
    connect()
    tools.host.check_socket()
    connect().begin()
    assert paths.mcp_socket().lstat().st_ino == before.st_ino


def _wait_for_socket() -> None:
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as peer:
                peer.connect(str(paths.mcp_socket()))
                return
        except (FileNotFoundError, ConnectionRefusedError):
            assert time.monotonic() < deadline, "there is no socket"
            time.sleep(0.005)
