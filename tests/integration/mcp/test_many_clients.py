"""Many clients at once, each with a real shim, in one real service."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent_bridge.daemon.client import read_status
from integration.mcp.real_service import running_service
from integration.mcp.shim.rig import Json, Shim, call, initialize

CLIENTS = 16
CALLS = 25
PATIENCE = 60.0


@pytest.fixture
def service(sealed_home: Path) -> Iterator[subprocess.Popen[bytes]]:
    yield from running_service(sealed_home)


def asked(shim: Shim, number: int, text: str) -> Json:
    """What `remember` answers."""
    shim.say(call(number, "remember", text=text))
    while (found := shim.hear(PATIENCE)).get("id") != number:
        assert "id" not in found
    answer: Json = found["result"]
    return answer


def begun(root: Path) -> Shim:
    """A client that has shaken hands; it has no roots, so nothing is asked of it."""
    shim = Shim("--no-auto", cwd=str(root))
    begin = initialize()
    begin["params"]["capabilities"] = {}
    shim.say(begin)
    assert shim.hear()["result"]["serverInfo"]
    shim.say({"jsonrpc": "2.0", "method": "notifications/initialized"})
    return shim


def ends_with(texts: list[str]) -> list[str]:
    return sorted(text.rstrip("\n").rpartition("\n")[2] for text in texts)


def test_sixteen_clients_at_once_remember_without_an_error_and_one_file_each(
    service: subprocess.Popen[bytes], sealed_home: Path
) -> None:
    root = sealed_home / "project"
    shims = [begun(root) for _ in range(CLIENTS)]
    answers: list[Json] = []

    def client(number: int) -> None:
        for turn in range(CALLS):
            answers.append(asked(shims[number], turn + 10, f"Client{number} remembers thing{turn}."))

    threads = [threading.Thread(target=client, args=(number,)) for number in range(CLIENTS)]
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(answers) == CLIENTS * CALLS
        wrong = [one for one in answers if one.get("isError") or "Remembered" not in str(one["content"])]
        assert wrong == []
        wanted = [
            f"Client{client} remembers thing{turn}." for client in range(CLIENTS) for turn in range(CALLS)
        ]
        files = list((root / ".memory/entries").glob("*.md"))
        assert ends_with([path.read_text() for path in files]) == sorted(wanted)
        numbers = [int(re.match(r"\d{8}-(\d{4})-", path.name)[1]) for path in files]  # type: ignore[index]
        assert sorted(numbers) == list(range(1, CLIENTS * CALLS + 1))
        tools = read_status(5.0)["mcp"]
        assert (tools["calls"], tools["errors"], len(tools["clients"])) == (CLIENTS * CALLS, 0, CLIENTS)

        # Other settings reach a service whose tools are in use.
        assert "resembles" in str(asked(shims[0], 100, "Client0 remembers thing0 well.")["content"])
        config = Path(os.environ["XDG_CONFIG_HOME"]) / "agent-bridge" / "config.toml"
        config.parent.mkdir(parents=True, exist_ok=True)
        config.write_text("similarity = 0.95\n")
        service.send_signal(signal.SIGHUP)
        deadline = time.monotonic() + PATIENCE
        turn = 200
        while "resembles" in str(asked(shims[0], turn, f"Client0 remembers thing{turn} well.")["content"]):
            assert time.monotonic() < deadline
            turn += 1
    finally:
        for shim in shims:
            shim.close()
