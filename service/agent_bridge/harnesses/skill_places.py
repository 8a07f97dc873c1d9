"""Where programs look for the skills of a user. Pure.

Source: Claude Code 2.1.332, Codex 0.171.0, OpenCode 1.18.33 and Gemini CLI 0.61.0, by running them; for
Antigravity its documentation. Two skills of one name are shown once by OpenCode and Gemini CLI, and twice by
Codex. Each has a directory of its own, which ours goes into: a copy in `~/.agents/skills` would be a second
one for several of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from agent_bridge import paths

_SHARED = Path(".agents", "skills")
_OFF = (
    "OPENCODE_DISABLE_EXTERNAL_SKILLS",
    "OPENCODE_DISABLE_CLAUDE_CODE",
    "OPENCODE_DISABLE_CLAUDE_CODE_SKILLS",
)


def of_claude_code(env: Mapping[str, str]) -> tuple[Path, ...]:
    """Claude Code's; it doesn't read `~/.agents/skills`."""
    return (paths.claude_home(env) / "skills",)


def of_codex(env: Mapping[str, str]) -> tuple[Path, ...]:
    """Codex's, and those that several programs share."""
    return (paths.codex_home(env) / "skills", paths.home(env) / _SHARED)


def of_opencode(env: Mapping[str, str]) -> tuple[Path, ...]:
    """OpenCode's own by all their names, Claude Code's in the home, and those that several programs share."""
    home, own = paths.home(env), paths.opencode_config(env)
    found = (own / "skills", own / "skill", home / ".opencode/skills", home / ".opencode/skill")
    off = {name for name in _OFF if env.get(name, "").strip().lower() in ("1", "true")}
    if _OFF[0] in off:
        return found
    return (*found, *([] if off else [home / ".claude/skills"]), home / _SHARED)


def of_gemini(env: Mapping[str, str]) -> tuple[Path, ...]:
    """Gemini CLI's, and those that several programs share."""
    return (paths.gemini_home(env) / "skills", paths.home(env) / _SHARED)


def of_antigravity(env: Mapping[str, str]) -> tuple[Path, ...]:
    """Those that it shares with Gemini CLI, and its command line's own."""
    home = paths.gemini_home(env)
    return (home / "skills", home / "antigravity-cli/skills")
