"""Which project a directory belongs to: Git is asked again only where that may have changed.

A session calls its tools from the same directory all the time, and asking Git starts a process. An answer
holds while the list of projects and the `.git` that lies nearest above are as they were, and for a few
seconds at most, since it depends on Git's configuration too.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from agent_bridge import paths, projects
from agent_bridge.projects import Project

HOLDS_S = 5.0
"""How long an answer holds at most."""
_MOST = 64

_Sign = tuple[int, int, int] | None
_Signs = tuple[str, str, _Sign, _Sign]


@dataclass(frozen=True, slots=True)
class _Known:
    project: Project
    signs: _Signs
    at: float


class ProjectFinder:
    """`projects.find_project` for directories that are asked about again and again. Thread-safe."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        """`clock` in seconds."""
        self._clock = clock
        self._known: dict[Path, _Known] = {}

    def find(self, start: Path) -> Project | None:
        """The listed project that a directory lies in, or None. Raises what `find_project` raises."""
        signs, now = _signs(start), self._clock()
        known = self._known.get(start)
        if known is not None and known.signs == signs and now - known.at < HOLDS_S:
            return known.project
        project = projects.find_project(start)
        if project is None:
            self._known.pop(start, None)
            return None
        if len(self._known) >= _MOST:
            self._known.clear()
        self._known[start] = _Known(project, signs, now)
        return project


def _signs(start: Path) -> _Signs:
    """What tells that the answer for a directory may be another one: taken before the question is asked."""
    real = os.path.realpath(start)
    place, sign = real, _sign(f"{real}/.git")
    while sign is None and place != os.path.dirname(place):  # noqa: PTH120 - for every call: no Path is made
        place = os.path.dirname(place)  # noqa: PTH120
        sign = _sign(f"{place}/.git")
    return real, place, sign, _sign(paths.projects_file())


def _sign(path: str | Path) -> _Sign:
    try:
        seen = os.lstat(path)
    except OSError:
        return None
    return seen.st_ino, seen.st_mtime_ns, seen.st_size
