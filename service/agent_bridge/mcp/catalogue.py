"""What is said about the tools before any is called: names, descriptions, schemas, the server's instructions.

The shim answers `initialize`, `tools/list` and `resources/list` from this, without asking the service: Codex
0.171.0 leaves a server out of a session's first request if it isn't ready within 0.8 s, and Gemini CLI 0.61.0
drops all tools of one whose resources it can't list. The service writes it to
`paths.mcp_catalogue()`, and the package ships the one of its own version.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from importlib import resources
from typing import Any

from agent_bridge import __version__
from agent_bridge.mcp.instructions import instructions
from agent_bridge.mcp.resources import LISTED
from agent_bridge.mcp.schema import input_schema
from agent_bridge.mcp.tool import Tool

CATALOGUE = 1
"""The version of its form."""
SERVER_NAME = "agent-bridge"
SHIPPED = "catalogue.json"
_CAPABILITIES = {"tools": {"listChanged": True}, "resources": {}}
_ALWAYS = {"anthropic/alwaysLoad": True}
"""Claude Code 2.1.197 and 2.1.332 name a tool without this only, until the model asks for it."""


def catalogue(tools: Sequence[Tool]) -> dict[str, Any]:
    """All that is said, as JSON: `catalogue`, `digest`, `serverInfo`, `instructions`, `capabilities`,
    `resources` and `tools`. The digest is the SHA-256 of the rest.
    """
    said = {
        "catalogue": CATALOGUE,
        "serverInfo": {"name": SERVER_NAME, "title": "agent-bridge", "version": __version__},
        "instructions": instructions(),
        "capabilities": _CAPABILITIES,
        "resources": [dict(resource) for resource in LISTED],
        "tools": [wire_tool(tool) for tool in tools],
    }
    return {"catalogue": CATALOGUE, "digest": digest(said)} | said


def wire_tool(tool: Tool) -> dict[str, Any]:
    """A tool as MCP's `tools/list` has it.

    Its output schema isn't told: no client shows it to a model, and who tells one must send data of that form
    to every client, which hides the text from some models (`mcp.server.HIDES_TEXT`).
    """
    return {
        "name": tool.name,
        "title": tool.title,
        "description": tool.description,
        "inputSchema": input_schema(tool.parameters),
        "annotations": tool.hints.as_wire(tool.title),
        "_meta": dict(_ALWAYS),
    }


def digest(catalogue: Mapping[str, Any]) -> str:
    """The SHA-256 of a catalogue without its own `digest`: 64 hexadecimal digits."""
    said = {key: value for key, value in catalogue.items() if key != "digest"}
    return hashlib.sha256(json.dumps(said, sort_keys=True).encode()).hexdigest()


def as_file(catalogue: Mapping[str, Any]) -> bytes:
    """A catalogue as it lies on disk: a tool a line, so that a change to one is seen as that."""
    lines = [
        f" {json.dumps(key)}: {_as_lines(value) if key == 'tools' else json.dumps(value, ensure_ascii=False)}"
        for key, value in catalogue.items()
    ]
    return ("{\n" + ",\n".join(lines) + "\n}\n").encode()


def shipped() -> dict[str, Any]:
    """The catalogue that this installation brings."""
    place = resources.files("agent_bridge.mcp") / SHIPPED
    found: dict[str, Any] = json.loads(place.read_text("utf-8"))
    return found


def _as_lines(tools: Sequence[Mapping[str, Any]]) -> str:
    if not tools:
        return "[]"
    return "[\n" + ",\n".join(f"  {json.dumps(tool, ensure_ascii=False)}" for tool in tools) + "\n ]"
