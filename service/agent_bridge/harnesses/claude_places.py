"""Where Claude Code keeps things, by its own rules. Pure.

Source: Claude Code 2.1.332 and 2.1.197, by running them: the slug of a path, the memory directory, the
layers of settings.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from agent_bridge import paths
from agent_bridge.harnesses.base import Ground

SLUG_LIMIT = 200
"""UTF-16 code units; a longer slug is cut and gets a hash."""

POLICY = Path("/etc/claude-code/managed-settings.json")
"""Settings of the machine's administrator on Linux; they win over all others."""

RULES_NAME = "agent-bridge.md"

_DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"
_PLAIN = re.compile(r"[A-Za-z0-9]")


def slug(path: str) -> str:
    """The directory name below `projects/` for an absolute path.

    Each UTF-16 code unit outside [A-Za-z0-9] becomes `-`, one for one. Over 200 of them: the first 200, `-`,
    and base 36 of the absolute value of the 32-bit hash `h = h * 31 + unit` over the path.
    """
    units = _utf16(path)
    plain = "".join(chr(unit) if unit < 128 and _PLAIN.match(chr(unit)) else "-" for unit in units)
    if len(plain) <= SLUG_LIMIT:
        return plain
    return f"{plain[:SLUG_LIMIT]}-{_base36(abs(_hash(units)))}"


def memory_directory(ground: Ground) -> Path:
    """Where Claude keeps this project's memory unless a setting says otherwise.

    All worktrees of a repository share the main checkout's; HOME stays as it is spelled.
    """
    base = _main(ground)
    return paths.claude_home(ground.env) / "projects" / slug(str(base)) / "memory"


def user_settings(env: Mapping[str, str]) -> Path:
    """Settings of the user, for all projects."""
    return paths.claude_home(env) / "settings.json"


def local_settings(ground: Ground) -> Path:
    """Settings of one user for one project; Claude reads the main checkout's in worktrees too."""
    return _main(ground) / ".claude" / "settings.local.json"


def shared_settings(ground: Ground) -> Path:
    """Settings of a project that its Git carries."""
    return _main(ground) / ".claude" / "settings.json"


def layers(ground: Ground) -> tuple[Path, ...]:
    """Settings files from the one that wins to the one that everything else overrides."""
    user = user_settings(ground.env)
    if ground.project is None:
        return (POLICY, user)
    return (POLICY, local_settings(ground), shared_settings(ground), user)


def _main(ground: Ground) -> Path:
    return ground.checkout if ground.project is None else ground.project.main or ground.project.root


def _utf16(text: str) -> list[int]:
    data = text.encode("utf-16-le", "surrogatepass")
    return [int.from_bytes(data[at : at + 2], "little") for at in range(0, len(data), 2)]


def _hash(units: list[int]) -> int:
    value = 0
    for unit in units:
        value = (value * 31 + unit) & 0xFFFFFFFF
    return value - (1 << 32) if value & 0x80000000 else value


def _base36(number: int) -> str:
    digits = ""
    while number:
        number, digit = divmod(number, 36)
        digits = _DIGITS[digit] + digits
    return digits or "0"
