"""The memory as MCP resources: the index of the project's facts, and of everybody's."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from agent_bridge import files
from agent_bridge.errors import NotFoundError
from agent_bridge.mcp.ports import NoProject

if TYPE_CHECKING:
    from agent_bridge.mcp.call import Session

PROJECT_URI: Final = "agent-bridge://memory/project"
GLOBAL_URI: Final = "agent-bridge://memory/global"
LISTED: Final[tuple[dict[str, Any], ...]] = (
    {
        "uri": PROJECT_URI,
        "name": "project-memory",
        "title": "Memory of this project",
        "description": "An index of what is remembered about this project, a line a fact.",
        "mimeType": "text/markdown",
    },
    {
        "uri": GLOBAL_URI,
        "name": "global-memory",
        "title": "Memory for all projects",
        "description": "An index of what is remembered for all projects, a line a fact.",
        "mimeType": "text/markdown",
    },
)
_INDEX = "MEMORY.md"
_BYTES = 100_000
"""An index has 25,000 characters at most; what others have added to it may make it longer."""


def read(uri: str, session: Session) -> str:
    """The text of a resource. Blocks. Raises NotFoundError, and what the store raises."""
    if uri == GLOBAL_URI:
        place = session.memory.everybodys()
    elif uri == PROJECT_URI:
        found = session.memory.project(session.start)
        if isinstance(found, NoProject):
            raise NotFoundError(
                "There is no project's memory here", remedy="`agent-bridge init` in a repository makes one."
            )
        place = found
    else:
        raise NotFoundError(f"There is no resource {uri[:200]!r}")
    index = files.read_image(place.store.root / _INDEX, within=place.store.root)
    if not index.data:
        return "Nothing is remembered yet.\n"
    return index.data[:_BYTES].decode("utf-8", "replace")
