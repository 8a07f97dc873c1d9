"""Where a row's paths lie, and whether its program is there: a few cheap looks at the disk."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path

from agent_bridge import paths
from agent_bridge.harnesses.row import Row

_CONFIG = ".config/"


def below_home(name: str, env: Mapping[str, str]) -> Path:
    """A path below the user's home; what begins with `.config/` follows XDG_CONFIG_HOME."""
    configured = env.get("XDG_CONFIG_HOME", "")
    if name.startswith(_CONFIG) and configured.startswith("/"):
        return Path(configured) / name.removeprefix(_CONFIG)
    return paths.home(env) / name


def is_used(row: Row, env: Mapping[str, str]) -> bool:
    """Whether one of its homes is there, or one of its programs on PATH."""
    if exists_any(below_home(home, env) for home in row.homes):
        return True
    return any(shutil.which(program, path=env.get("PATH")) for program in row.programs)


def exists_any(places: Iterable[Path]) -> bool:
    """Whether anything stands at one of these paths; what may not be looked at isn't there."""
    for place in places:
        try:
            place.lstat()
        except OSError:
            continue
        return True
    return False
