"""With the service itself: the shim starts it, and a call outlives its death."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agent_bridge import paths
from agent_bridge.daemon import client as service_client
from agent_bridge.daemon import control
from integration.mcp.shim.rig import SHIM, Shim, call

ENTRY = (sys.executable, "-m", "agent_bridge.cli.entry", "mcp", "start")


@pytest.fixture
def home(sealed_home: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A home whose services end with the test."""
    monkeypatch.chdir(sealed_home)
    yield sealed_home
    control.down()
    assert not service_client.service_is_running()


def guide(shim: Shim, number: int) -> str:
    """What a tool that needs nothing answers."""
    shim.say(call(number, "agent_bridge_guide", topic="overview"))
    while (found := shim.hear(60)).get("id") != number:
        assert "id" not in found
    text: str = found["result"]["content"][0]["text"]
    return text


def test_two_clients_start_one_service_and_a_call_outlives_its_death(home: Path) -> None:
    shims = [Shim(program=program) for program in (SHIM, ENTRY)]
    try:
        for shim in shims:
            initialize_without_roots(shim)
        texts: list[str] = []
        threads = [threading.Thread(target=lambda one=shim: texts.append(guide(one, 1))) for shim in shims]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        first = service_client.serving_pid()
        assert len(texts) == 2
        assert all("channel_inbox" in text for text in texts)
        assert first

        os.kill(first, signal.SIGKILL)
        assert guide(shims[0], 2) == guide(shims[1], 2) == texts[0]
        second = service_client.serving_pid()
        assert second
        assert second != first

        # Stopped on purpose: nobody starts it while no call needs it (the shims look after 2 s).
        control.down()
        assert all(shim.wire.is_silent(1.2) for shim in shims)
        assert not service_client.service_is_running()
        for shim in shims:
            code, took, errors = shim.end()
            assert (code, errors) == (0, b"")
            assert took < 1
    finally:
        for shim in shims:
            shim.close()


def test_why_the_service_does_not_start_is_told_soon(home: Path) -> None:
    """Its state directory can't be made: a file is in the way."""
    place = home / "file"
    place.touch()
    shim = Shim(env={"AGENT_BRIDGE_STATE_DIR": str(place / "below")})
    try:
        initialize_without_roots(shim)
        shim.say(call(1))
        found: dict[str, Any] = shim.hear(25)["result"]
        assert found["isError"]
        assert "couldn't be started" in found["content"][0]["text"]
        code, _, errors = shim.end()
        assert code == 0
        assert b"Traceback" not in errors
    finally:
        shim.close()


def test_settings_that_cannot_be_read_leave_the_client_its_tools_and_pure_json(home: Path) -> None:
    """With all warnings on; every line that comes is parsed."""
    place = paths.config_file()
    place.parent.mkdir(parents=True)
    place.write_text("registry_port = \n[broken\n", "utf-8")
    shim = Shim(program=ENTRY, env={"PYTHONDEVMODE": "1", "PYTHONWARNINGS": "always"})
    try:
        initialize_without_roots(shim)
        shim.say({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}, call(2))
        assert shim.hear()["result"]["tools"]
        found: dict[str, Any] = shim.hear(25)["result"]
        assert found["isError"]
        assert "couldn't be started" in found["content"][0]["text"]
        code, _, errors = shim.end()
        assert code == 0
        assert b"Traceback" not in errors
    finally:
        shim.close()


def test_started_service_holds_none_of_the_client_s_descriptors(home: Path) -> None:
    """A client that waits for the end of a pipe would wait for the end of the service."""
    read, write = os.pipe()
    shim = subprocess.Popen(
        SHIM, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, pass_fds=(write,)
    )
    os.close(write)
    try:
        assert shim.stdin is not None
        assert shim.stdout is not None
        shim.stdin.write(_INITIALIZE)
        shim.stdin.flush()
        shim.stdout.readline()
        while service_client.serving_pid() is None:  # listening, so that it can be stopped as well
            assert shim.poll() is None
        shim.stdin.close()
        assert shim.wait(5) == 0
        assert os.read(read, 1) == b""
    finally:
        shim.kill()
        shim.wait()
        shim.stdout.close()  # type: ignore[union-attr]
        os.close(read)


def initialize_without_roots(shim: Shim) -> None:
    """The handshake of a client that can't be asked anything."""
    shim.say(_INITIALIZE)
    assert shim.hear()["result"]["serverInfo"]["name"] == "agent-bridge"
    shim.say({"jsonrpc": "2.0", "method": "notifications/initialized"})


_INITIALIZE = (
    b'{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25",'
    b'"capabilities":{},"clientInfo":{"name":"tester","version":"1"}}}\n'
)
