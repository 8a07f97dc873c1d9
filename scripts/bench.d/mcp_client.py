"""A client of a stdio server: one line asked, one answered."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 0,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "bench", "version": "1"},
    },
}
INITIALIZED = {"jsonrpc": "2.0", "method": "notifications/initialized"}
LIST = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}


class Client:
    """A server that was started, and what is asked of it."""

    def __init__(self, words: list[str], environment: dict[str, str], place: Path) -> None:
        self.process = subprocess.Popen(
            words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment, cwd=place
        )
        self._next = 2

    def shake_hands(self) -> dict[str, Any]:
        """What a client asks first; its list of tools."""
        self.ask(INITIALIZE)
        return self.ask(INITIALIZED, LIST)

    def call(self, tool: str, **arguments: object) -> dict[str, Any]:
        """The result of a tool."""
        self._next += 1
        params = {"name": tool, "arguments": arguments}
        asked = {"jsonrpc": "2.0", "id": self._next, "method": "tools/call", "params": params}
        found: dict[str, Any] = self.ask(asked)["result"]
        return found

    def must(self, tool: str, **arguments: object) -> str:
        """The text that a tool answers; the measurement ends where it fails."""
        found = self.call(tool, **arguments)
        text = str(found["content"][0]["text"])
        if found.get("isError"):
            raise SystemExit(f"{tool} failed: {text}")
        return text

    def ask(self, *messages: dict[str, Any]) -> dict[str, Any]:
        """The answer to the last of some messages; notifications before it are passed over."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(b"".join(json.dumps(message).encode() + b"\n" for message in messages))
        self.process.stdin.flush()
        while True:
            line = self.process.stdout.readline()
            if not line:
                raise SystemExit(f"{self.process.args!r} ended without an answer")
            found: dict[str, Any] = json.loads(line)
            if found.get("id") == messages[-1]["id"]:
                return found

    def close(self) -> None:
        """Close its input, and wait until it has ended."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait(10)
        assert self.process.stdout is not None
        self.process.stdout.close()
