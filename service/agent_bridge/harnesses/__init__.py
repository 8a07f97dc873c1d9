"""One module per agent program: where it reads memory, how, and how much."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from agent_bridge.harnesses.base import Harness


def all_harnesses() -> tuple[Harness, ...]:
    """Every harness that is known, in the order in which plans and status name them."""
    # Here, not above: who needs one module of this package (Git's merge driver) doesn't wait for forty.
    from agent_bridge.harnesses.antigravity import Antigravity
    from agent_bridge.harnesses.claude_code import ClaudeCode
    from agent_bridge.harnesses.codex import Codex
    from agent_bridge.harnesses.entry_points import third_party
    from agent_bridge.harnesses.gemini import Gemini
    from agent_bridge.harnesses.opencode import OpenCode
    from agent_bridge.harnesses.row_harness import rows

    ours: tuple[Harness, ...] = (ClaudeCode(), Codex(), OpenCode(), Gemini(), Antigravity(), *rows())
    return (*ours, *third_party(one.name for one in ours))
