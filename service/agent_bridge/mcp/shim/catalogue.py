"""What the shim answers by itself: the server's description, its tools and resources, from a JSON file.

The service writes one at each start (`mcp.catalogue`); the wheel ships one for when none was ever started.
"""

from __future__ import annotations

import json
import os

from agent_bridge.mcp.shim import places
from agent_bridge.mcp.shim.notes import note

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

_LARGEST = 1024 * 1024
_SHIPPED = os.path.join(os.path.dirname(os.path.dirname(__file__)), "catalogue.json")  # noqa: PTH118, PTH120


class Catalogue:
    """`digest` names the content; the rest is as in the answers of MCP."""

    __slots__ = ("capabilities", "digest", "instructions", "resources", "server_info", "tools")

    def __init__(
        self,
        digest: str,
        server_info: dict[str, object],
        instructions: str,
        capabilities: dict[str, object],
        tools: list[object],
        resources: list[object],
    ) -> None:
        self.digest = digest
        self.server_info = server_info
        self.instructions = instructions
        self.capabilities = capabilities
        self.tools = tools
        self.resources = resources


def load_own(env: Mapping[str, str]) -> Catalogue:
    """The catalogue where this environment has it."""
    try:
        return load(places.catalogue_path(env))
    except ValueError as error:
        note(str(error))
        return load(None)


def load(path: str | None) -> Catalogue:
    """The catalogue at `path` if it is well-formed, else the shipped one, else one without tools."""
    for place in (path, _SHIPPED):
        found = None if place is None else _read(place)
        if found is not None:
            return found
    about: dict[str, object] = {"name": "agent-bridge", "version": "0"}
    return Catalogue("", about, "", {"tools": {"listChanged": True}}, [], [])


def _read(path: str) -> Catalogue | None:
    try:
        # Not waiting, as it could be a pipe.
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except (OSError, ValueError):
        return None
    try:
        info = os.fstat(descriptor)
        if info.st_mode & 0o170000 != 0o100000 or info.st_size > _LARGEST:
            return None
        found = json.loads(_all_of(descriptor).decode())
    except (OSError, ValueError, RecursionError):
        return None
    finally:
        os.close(descriptor)
    return _understood(found)


def _all_of(descriptor: int) -> bytes:
    pieces = []
    left = _LARGEST
    while left > 0 and (piece := os.read(descriptor, left)):
        pieces.append(piece)
        left -= len(piece)
    return b"".join(pieces)


def _understood(found: object) -> Catalogue | None:
    if not isinstance(found, dict) or found.get("catalogue") != 1:
        return None
    digest, server_info, tools = found.get("digest"), found.get("serverInfo"), found.get("tools")
    instructions, capabilities = found.get("instructions", ""), found.get("capabilities", {})
    resources = found.get("resources", [])
    if not (
        isinstance(digest, str)
        and isinstance(server_info, dict)
        and all(isinstance(server_info.get(key), str) for key in ("name", "version"))
        and isinstance(instructions, str)
        and isinstance(capabilities, dict)
        and isinstance(tools, list)
        and all(_is_tool(tool) for tool in tools)
        and isinstance(resources, list)
        and all(_is_resource(resource) for resource in resources)
    ):
        return None
    return Catalogue(digest, server_info, instructions, capabilities, tools, resources)


def _is_tool(value: object) -> bool:
    return (
        isinstance(value, dict)
        and isinstance(value.get("name"), str)
        and isinstance(value.get("inputSchema"), dict)
    )


def _is_resource(value: object) -> bool:
    return isinstance(value, dict) and all(isinstance(value.get(key), str) for key in ("name", "uri"))
