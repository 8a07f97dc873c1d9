"""What a tool is: a name, a description, parameters, hints for the client, and what it does.

A tool answers with text for the model and with the same as data. What an agent did wrong is an `Answer` with
`is_error`, made from a raised AgentBridgeError by whoever runs the tool; only a fault of ours is a failure.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, ConfigDict

if TYPE_CHECKING:
    from agent_bridge.mcp.call import Call

ANSWER_BYTES = 40_000
"""UTF-8 bytes that the text of an answer may have: Claude Code 2.1.332 writes answers of over about 50,000
characters to a file and shows a preview (49,140 were still shown)."""
DESCRIPTION_CHARACTERS = 2_000
"""Characters that a tool's description, and the server's instructions, may have: Claude Code 2.1.197 cuts
both at 2,048, 2.1.332 at 4,096."""


class Parameters(BaseModel):
    """The parameters of a tool; an unknown one is refused. Fields are named as the client names them."""

    model_config = ConfigDict(extra="forbid", populate_by_name=True, frozen=True)


@dataclass(frozen=True, slots=True)
class Hints:
    """What a tool does to the world, as MCP's annotations have it.

    Codex 0.171.0 runs a tool without asking where `read_only` holds, or where it is neither destructive nor
    open to the world outside.
    """

    read_only: bool = False
    destructive: bool = False
    idempotent: bool = False
    open_world: bool = False

    def as_wire(self, title: str) -> dict[str, Any]:
        """As `ToolAnnotations`; every hint is said, since the defaults of clients differ."""
        return {
            "title": title,
            "readOnlyHint": self.read_only,
            "destructiveHint": self.destructive,
            "idempotentHint": self.idempotent,
            "openWorldHint": self.open_world,
        }


@dataclass(frozen=True, slots=True)
class Answer:
    """What a tool says: `text` for the model, `data` the same as JSON (an object)."""

    text: str
    data: Mapping[str, Any] = field(default_factory=dict)
    is_error: bool = False


@dataclass(frozen=True, slots=True)
class Tool:
    """One tool. `run` gets the call and the parsed parameters; it may raise AgentBridgeError.

    `output_schema` describes `Answer.data` (JSON Schema of type object). Clients aren't told of it
    (`mcp.catalogue.wire_tool`); the tests hold every answer to it.
    """

    name: str
    title: str
    description: str
    parameters: type[Parameters]
    output_schema: Mapping[str, Any]
    hints: Hints
    run: Callable[[Call, Any], Awaitable[Answer]]
