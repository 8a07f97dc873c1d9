"""The tools: how soon a client has them, many clients at once, and how large shim and service are."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

from lab import Lab
from mcp_client import Client
from mcp_load import many_clients
from mcp_size import service_size
from measure import HERE, Row, aims, number, ratio, rss_mib, spread

TIMES_OF_BARE = 2.5
"""How many times a bare start of Python the first two answers may take, p50 and p99."""

SDK = "minimal SDK stdio server"
SDK_TURNS = 4
"""One of so many turns measures it: it takes as long as all the others together."""


def mcp(lab: Lab, *, quick: bool) -> list[Row]:
    """Cold `initialize` and `tools/list`, both answered, beside bare Python and an SDK server, in turns."""
    shim = str(Path(lab.program).with_name("agent-bridge-mcp"))
    commands = {
        "bare python start": None,
        "agent-bridge-mcp": [shim, "--no-auto"],
        "agent-bridge mcp start": [lab.program, "mcp", "start", "--no-auto"],
        SDK: [sys.executable, str(HERE / "sdk_server.py")],
    }
    turns = 20 if quick else 100
    rows: list[Row] = []
    down = _in_turns(lab, turns, commands)
    rows += _rows(down, "no service")
    with lab.service():
        _with_call(lab, [shim])
        rows += _rows(_in_turns(lab, turns, commands), "service up")
        first, resident = _with_call(lab, [shim])
        rows.append({"name": "first call of a new client, service up", **spread(first)})
        rows.append(aims({"name": "RSS of the shim, after a call", "p50": resident, "unit": "MiB"}, p50=15))
    rows += service_size(lab, shim)
    rows += many_clients(lab, shim, quick=quick)
    return rows


def _rows(took: dict[str, list[float]], when: str) -> list[Row]:
    bare = spread(took["bare python start"])
    rows: list[Row] = []
    for name, values in took.items():
        row = spread(values)
        if name == "agent-bridge-mcp":
            row = aims(row, p50=TIMES_OF_BARE * number(bare), p99=TIMES_OF_BARE * _p99(bare))
        rows.append({"name": f"{name}, {when}", **row})
        if name != "bare python start":
            rows.append(ratio("  times bare", row, bare))
    return rows


def _p99(row: Row) -> float:
    value = row["p99"]
    assert isinstance(value, float)
    return value


def _in_turns(lab: Lab, turns: int, commands: dict[str, list[str] | None]) -> dict[str, list[float]]:
    took: dict[str, list[float]] = {name: [] for name in commands}
    for turn in range(-2, turns):
        for name, words in commands.items():
            if name == SDK and turn % SDK_TURNS:
                continue
            milliseconds = _bare(lab) if words is None else _cold(lab, words)
            if turn >= 0:
                took[name].append(milliseconds)
    return took


def _bare(lab: Lab) -> float:
    begun = time.monotonic()
    subprocess.run([sys.executable, "-c", "pass"], env=lab.environment, cwd=lab.home, check=True)
    return (time.monotonic() - begun) * 1000


def _cold(lab: Lab, words: list[str]) -> float:
    """Milliseconds from the start of a server until both answers are there."""
    begun = time.monotonic()
    server = Client(words, lab.environment, lab.home)
    tools = server.shake_hands()
    took = (time.monotonic() - begun) * 1000
    assert tools["result"]["tools"], words
    server.close()
    return took


def _with_call(lab: Lab, words: list[str]) -> tuple[list[float], float]:
    """Milliseconds of a session's first call, and the shim's size after it."""
    took: list[float] = []
    size = 0.0
    for _ in range(10):
        server = Client(words, lab.environment, lab.home)
        server.shake_hands()
        begun = time.monotonic()
        server.call("agent_bridge_guide", topic="overview")
        took.append((time.monotonic() - begun) * 1000)
        size = max(size, rss_mib(server.process.pid))
        server.close()
    return took, size
