"""The stdio shim: how soon a client has its tools, and how large it is."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

from lab import Lab
from measure import HERE, Row, aims, number, ratio, rss_mib, spread

TIMES_OF_BARE = 2.5
"""How many times a bare start of Python the first two answers may take, p50 and p99."""
_INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 0,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "bench", "version": "1"},
    },
}
_INITIALIZED = {"jsonrpc": "2.0", "method": "notifications/initialized"}
_LIST = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
_CALL = {
    "jsonrpc": "2.0",
    "id": 2,
    "method": "tools/call",
    "params": {"name": "agent_bridge_guide", "arguments": {"topic": "overview"}},
}


def mcp(lab: Lab, *, quick: bool) -> list[Row]:
    """Cold `initialize` and `tools/list`, both answered, beside bare Python and an SDK server, in turns."""
    shim = str(Path(lab.program).with_name("agent-bridge-mcp"))
    commands = {
        "bare python start": None,
        "agent-bridge-mcp": [shim, "--no-auto"],
        "agent-bridge mcp start": [lab.program, "mcp", "start", "--no-auto"],
        "minimal SDK stdio server": [sys.executable, str(HERE / "sdk_server.py")],
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
    with _started(lab, words) as server:
        _ask(server, _INITIALIZE)
        tools = _ask(server, _INITIALIZED, _LIST)
        took = (time.monotonic() - begun) * 1000
        assert tools["result"]["tools"], words
        _end(server)
    return took


def _with_call(lab: Lab, words: list[str]) -> tuple[list[float], float]:
    """Milliseconds of a session's first call, and the shim's size after it."""
    took: list[float] = []
    size = 0.0
    for _ in range(10):
        with _started(lab, words) as server:
            _ask(server, _INITIALIZE)
            _ask(server, _INITIALIZED, _LIST)
            begun = time.monotonic()
            found = _ask(server, _CALL)
            took.append((time.monotonic() - begun) * 1000)
            assert not found["result"].get("isError"), found
            size = max(size, rss_mib(server.pid))
            _end(server)
    return took, size


def _started(lab: Lab, words: list[str]) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=lab.environment, cwd=lab.home, bufsize=0
    )


def _ask(server: subprocess.Popen[bytes], *messages: dict[str, object]) -> dict[str, dict[str, object]]:
    """The answer to the last of some messages; notifications before it are passed over."""
    assert server.stdin is not None
    assert server.stdout is not None
    server.stdin.write(b"".join(json.dumps(message).encode() + b"\n" for message in messages))
    line = b""
    while True:
        while not line.endswith(b"\n"):
            piece = server.stdout.readline()
            if not piece:
                raise SystemExit(f"{server.args!r} ended without an answer")
            line += piece
        found: dict[str, dict[str, object]] = json.loads(line)
        if found.get("id") == messages[-1]["id"]:
            return found
        line = b""


def _end(server: subprocess.Popen[bytes]) -> None:
    assert server.stdin is not None
    server.stdin.close()
    server.wait(10)
