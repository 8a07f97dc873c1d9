"""What is observed of a project and of the user's harness homes, as values: files, settings, listings.

`observe` gathers it; harnesses answer from it alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from agent_bridge.projects import Project

T = TypeVar("T")


class FileKind(StrEnum):
    """What stands at a path, as `lstat` and then `stat` tell it."""

    ABSENT = "absent"
    FILE = "file"
    SYMLINK = "symlink"
    """A symlink that ends at a regular file."""
    DANGLING = "dangling"
    """A symlink that ends nowhere, or in a loop."""
    DIRECTORY = "directory"
    LINKED_DIRECTORY = "linked_directory"
    """A symlink that ends at a directory."""
    OTHER = "other"
    """A FIFO, a device, a socket, or something that can't be read."""


@dataclass(frozen=True, slots=True)
class InstructionFile:
    """One path that a harness may read, and what was found there.

    `path` is the path as the harness spells it, `real` where it ends after all symlinks (equal to `path`'s
    own real place when nothing is there). `data` is empty for everything that isn't a readable regular
    file; `identity` is (device, inode) of the target. `name` is the path below the checkout with `/`, or
    the whole path for a file outside of it. `inside`: the real file lies below the checkout.
    """

    name: str
    path: Path
    real: Path
    kind: FileKind
    data: bytes = b""
    tracked: bool = False
    identity: tuple[int, int] | None = None
    inside: bool = True
    problem: str = ""
    """Why it could not be read, for `FileKind.OTHER`."""

    @property
    def readable(self) -> bool:
        """A regular file stands here, directly or behind a symlink."""
        return self.kind in (FileKind.FILE, FileKind.SYMLINK)

    @property
    def is_directory(self) -> bool:
        """A directory stands here, directly or behind a symlink."""
        return self.kind in (FileKind.DIRECTORY, FileKind.LINKED_DIRECTORY)

    @property
    def why_unreadable(self) -> str:
        """Why it has no bytes, "" for a file that is readable or absent."""
        if self.readable or self.kind is FileKind.ABSENT:
            return ""
        return self.problem or f"it is a {self.kind.value.replace('_', ' ')}"

    def is_same(self, other: InstructionFile) -> bool:
        """Whether two names lead to one file, also to one that doesn't exist yet."""
        if self.identity is not None or other.identity is not None:
            return self.identity == other.identity
        return self.real == other.real


@dataclass(frozen=True, slots=True)
class NestedFile:
    """An instruction file below the checkout's root, listed by Git: its path from the root and its bytes."""

    name: str
    size: int


@dataclass(frozen=True, slots=True)
class Ground:
    """What is known before anything is looked at: whose session, where, with which environment.

    `project` is None when only the user's own (global) scope is meant; `checkout` is then the home.
    `checkout` is the main checkout or a worktree of it, as a real path.
    """

    project: Project | None
    checkout: Path
    is_main: bool = True
    env: Mapping[str, str] = field(default_factory=dict)
    is_git: bool = True
    used: frozenset[str] = frozenset()
    """Names of the harnesses that this user seems to use, or has asked for in this project."""


@dataclass(frozen=True, slots=True)
class Site(Ground):
    """A frozen observation of one checkout and of the harness homes that belong to its user.

    `files` and `config` are keyed by the absolute path as spelled (`str`); `listings` by directory. A path
    that is in none of them is absent or was not asked for.
    """

    files: Mapping[str, InstructionFile] = field(default_factory=dict)
    config: Mapping[str, bytes] = field(default_factory=dict)
    """Bytes of settings files that exist and can be read."""
    listings: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Names in flat directories that a harness asked for, sorted."""
    nested: tuple[NestedFile, ...] = ()
    """Instruction files below the root, which Git tracks or would add; () outside of Git."""
    parents: tuple[Path, ...] = ()
    """Instruction files in directories above the checkout, nearest first."""
    _answers: dict[object, Any] = field(default_factory=dict, init=False, repr=False, compare=False)

    @classmethod
    def of_settings(cls, ground: Ground, config: Mapping[str, bytes]) -> Site:
        """A site of which only the settings are known yet."""
        return cls(ground.project, ground.checkout, ground.is_main, ground.env, ground.is_git, config=config)

    def file(self, path: Path | str) -> InstructionFile:
        """What stands at `path`: absolute, or a name below the checkout."""
        spelled = self.checkout / path
        known = self.files.get(str(spelled))
        if known is not None:
            return known
        inside = spelled.is_relative_to(self.checkout)
        name = spelled.relative_to(self.checkout).as_posix() if inside else str(spelled)
        return InstructionFile(name, spelled, spelled, FileKind.ABSENT, inside=inside)

    def settings(self, path: Path | str) -> bytes | None:
        """The bytes of a settings file, None where it is missing or unreadable."""
        return self.config.get(str(self.checkout / path))

    def once(self, question: object, answer: Callable[[], T]) -> T:
        """What `answer` gives, worked out once for this site: many harnesses ask what Claude Code reads."""
        if question not in self._answers:
            self._answers[question] = answer()
        found: T = self._answers[question]
        return found
