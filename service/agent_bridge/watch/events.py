"""What the operating system tells about a watched directory, in our own few words.

Events are hints: they say where to look, never what is there. Comparing is the truth (`watch.listing`).
"""

from __future__ import annotations

import enum
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

_NOISE = re.compile(r"4913|.*~|.*\.(?:tmp|sw[a-p]|swx)|\.#.*|#.*#|\..*\.agent-bridge\.tmp", re.DOTALL)
_SETTINGS_SUFFIXES = (".md", ".json", ".jsonc", ".toml")
_SETTINGS_NAMES = frozenset(
    {".memory", ".claude", ".codex", ".opencode", ".gemini", ".agents", ".git", "rules"}
)


class Kind(enum.Enum):
    """What happened to the entry that an event names."""

    CREATED = "created"
    """A new entry; a file's content follows, unless it is a link or was moved."""
    MODIFIED = "modified"
    """Content changed; whoever writes may not be done."""
    ATTRIBUTES = "attributes"
    """Mode, owner, times or link count changed."""
    CLOSED = "closed"
    """A file that was open for writing was closed: its content is complete."""
    MOVED = "moved"
    """An entry was renamed into or out of this name."""
    REMOVED = "removed"
    """The entry is gone."""
    SELF = "self"
    """The watched directory itself was moved, removed or unmounted; `name` is empty."""
    OVERFLOW = "overflow"
    """Events were lost; everything must be compared. `name` is empty."""


@dataclass(frozen=True, slots=True)
class FileEvent:
    """One hint: an entry of a watched directory changed."""

    kind: Kind
    directory: Path
    name: str
    is_directory: bool = False

    @property
    def path(self) -> Path:
        """The entry's path, below the directory as it was asked for (not its real path)."""
        return self.directory / self.name if self.name else self.directory


class Interest(enum.Enum):
    """Which names in a directory matter."""

    EVERYTHING = "everything"
    """All but what editors and atomic writers leave for a moment. For stores: every file may be a fact."""
    SETTINGS = "settings"
    """Instruction files, configuration and the directories that hold them. For a project's root and a
    harness's home, where builds and sessions write logs and databases all the time."""

    def wants(self, name: str) -> bool:
        """Whether a change of the entry `name` is worth looking at."""
        if _NOISE.fullmatch(name):
            return False
        if self is Interest.EVERYTHING:
            return True
        return name.endswith(_SETTINGS_SUFFIXES) or name in _SETTINGS_NAMES


Sink = Callable[[FileEvent], None]
"""Takes an event on any thread, at once, without raising."""
