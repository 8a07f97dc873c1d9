"""How to use the tools: the pages of the guide (`mcp/pages/*.md`), with a list of the tools that there are.

The skill is made of the same pages (`mcp.skill`).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from importlib import resources
from typing import Literal

from agent_bridge.mcp.tool import Tool

Topic = Literal["overview", "memory", "setup", "send", "reply", "acks", "troubleshooting", "all"]
PAGES = ("overview", "memory", "setup", "send", "reply", "acks", "troubleshooting")
"""The pages, in the order of the whole guide."""

_RULE = "\n\n---\n\n"
_TOOLS = "{tools}"
_FIRST_SENTENCE = re.compile(r"(.+?[.:])(?:\s|$)", re.DOTALL)


def guide(topic: Topic, tools: Sequence[Tool]) -> str:
    """The page of a topic as markdown, or with `all` every page; `tools` are those that it lists."""
    wanted = PAGES if topic == "all" else (topic,)
    return _RULE.join(page(one, tools) for one in wanted)


def page(name: str, tools: Sequence[Tool]) -> str:
    """One page; its first line is its heading."""
    text = (resources.files("agent_bridge.mcp") / "pages" / f"{name}.md").read_text("utf-8")
    return text.strip().replace(_TOOLS, _listed(tools))


def _listed(tools: Sequence[Tool]) -> str:
    return "\n".join(f"- `{tool.name}`: {_first_sentence(tool.description)}" for tool in tools)


def _first_sentence(text: str) -> str:
    found = _FIRST_SENTENCE.match(text)
    return " ".join((found[1] if found else text).split()).removesuffix(":")
