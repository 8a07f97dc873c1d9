"""Claude Code's SessionStart hook, by which it gets the memory in HOOK mode. Pure.

Source: Claude Code 2.1.332, by running it. Hooks of `.claude/settings.local.json` of the main checkout run in
sub-directories and worktrees too. `source` is startup, resume, clear or compact; what a hook said stays in a
resumed session, so there it would be said twice. `additionalContext` of more than 10,000 UTF-16 code units is
replaced by a preview of 2 KB. `disableAllHooks` switches all hooks off.
"""

from __future__ import annotations

from agent_bridge.harnesses import claude_places, claude_settings
from agent_bridge.harnesses.base import KeyEdit, Notice, Site

CONTEXT_LIMIT = 10_000
"""UTF-16 code units of what a hook may tell the model."""

KEY = ("hooks", "SessionStart")
MATCHER = "startup|clear|compact"
_TIMEOUT_S = 5


def edits(site: Site, command: str) -> tuple[KeyEdit, ...]:
    """The hook in the user's own settings for this project."""
    return (
        KeyEdit(
            path=claude_places.local_settings(site),
            format="json",
            key=KEY,
            value={
                "matcher": MATCHER,
                "hooks": [{"type": "command", "command": command, "timeout": _TIMEOUT_S}],
            },
            why="Claude Code gets the memory by a hook when a session starts: no block in a file",
            local=True,
            element=True,
        ),
    )


def notices(site: Site) -> tuple[Notice, ...]:
    """What keeps the hook from running."""
    off = claude_settings.hooks_switched_off(site)
    if off is None:
        return ()
    text = f"Claude Code runs no hooks here, by disableAllHooks in {off.where}: it gets no texts of facts."
    return (Notice("warning", "claude-hooks-off", text, off.path),)
