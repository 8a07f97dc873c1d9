"""The files of this package that are made from the tools: `scripts/catalogue` writes them."""

from __future__ import annotations

from pathlib import Path

from agent_bridge.mcp.catalogue import SHIPPED, as_file, catalogue
from agent_bridge.mcp.skill import skill
from agent_bridge.mcp.tools import all_tools

_PACKAGE = Path(__file__).resolve().parents[1]
SKILL = _PACKAGE / "harnesses" / "skill"
"""The directory of the skill: it holds what is made, and nothing else."""


def made() -> dict[Path, bytes]:
    """What each of them should hold."""
    tools = all_tools()
    texts = {SKILL / name: text.encode() for name, text in skill(tools).items()}
    return {_PACKAGE / "mcp" / SHIPPED: as_file(catalogue(tools)), **texts}
