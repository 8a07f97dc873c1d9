"""The tool `agent_bridge_guide`: what the other tools are for, and how they are used together."""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import Field

from agent_bridge.mcp.call import Call
from agent_bridge.mcp.guide import PAGES, Topic, guide
from agent_bridge.mcp.tool import Answer, Hints, Parameters, Tool

_DESCRIPTION = (
    "How to use agent-bridge. Call it when you don't know which of these tools to use or how they work"
    " together, when a message or an answer doesn't arrive, or when the user asks to set something up."
)
_OUTPUT = {
    "type": "object",
    "properties": {"topic": {"type": "string"}, "text": {"type": "string"}},
    "required": ["topic", "text"],
}


class GuideParameters(Parameters):
    """What the guide is asked for."""

    topic: Topic = Field("all", description=f"One page of it: {', '.join(PAGES)}.")


def guide_tool(others: Sequence[Tool]) -> Tool:
    """The tool; its pages list `others` and itself."""

    async def run(_: Call, wanted: GuideParameters) -> Answer:
        text = guide(wanted.topic, (*others, itself))
        return Answer(text, {"topic": wanted.topic, "text": text})

    itself = Tool(
        name="agent_bridge_guide",
        title="How to use agent-bridge",
        description=_DESCRIPTION,
        parameters=GuideParameters,
        output_schema=_OUTPUT,
        hints=Hints(read_only=True, idempotent=True),
        run=run,
    )
    return itself
