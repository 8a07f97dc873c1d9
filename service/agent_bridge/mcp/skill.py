"""The skill `agent-bridge`: the pages of the guide as files that agent programs find by themselves.

A program lists a skill by its description and reads SKILL.md when that fits, the files beside it when
SKILL.md sends it there. The set-up installs them; they lie in `harnesses/skill/`, where `scripts/catalogue`
writes them.

Source of the form: `SKILL.md` with `name` (that of its directory) and `description` (at most 1,024
characters) as front matter, which Claude Code 2.1.332, Codex 0.171.0, OpenCode 1.18.33 and Gemini CLI 0.61.0
read.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from agent_bridge.mcp.guide import page
from agent_bridge.mcp.tool import Tool

NAME = "agent-bridge"
DESCRIPTION = (
    "The memory that all coding agents of a project share, and messages between their live sessions. Use it"
    " when something should be remembered, recalled, corrected or forgotten; when the user speaks of another"
    " agent or session (ask it, answer it, what it said); when a message from another agent came in; or when"
    " agent-bridge is to be set up, or doesn't work."
)
_REFERENCES: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "memory": ("what to keep and how, scopes, finding and correcting", ("memory",)),
    "messages": (
        "writing to another session, answering, states of a message",
        ("send", "reply", "acks"),
    ),
    "setup": ("where each program has its entry, other programs", ("setup",)),
    "troubleshooting": ("nobody listed, no answer, nothing found, no tools", ("troubleshooting",)),
}


def skill(tools: Sequence[Tool]) -> dict[str, str]:
    """Its files: the path below the skill's directory, and the text. `tools` are those that it lists."""
    references = {
        f"references/{name}.md": "\n\n".join(page(one, tools) for one in pages) + "\n"
        for name, (_, pages) in _REFERENCES.items()
    }
    return {"SKILL.md": _first(tools), **references}


def _first(tools: Sequence[Tool]) -> str:
    listed = "\n".join(
        f"- [references/{name}.md](references/{name}.md): {about}" for name, (about, _) in _REFERENCES.items()
    )
    return (
        f'---\nname: {NAME}\ndescription: "{DESCRIPTION}"\n---\n\n'
        f"{page('overview', tools)}\n\n## More\n\n{listed}\n\n"
        "The tool `agent_bridge_guide` says the same, as it holds for the version that is running.\n"
    )
