"""The seam: what an agent program ("harness") is to the rest of the product.

A harness answers in values. It is given a `Site`, a frozen observation of a project and of the user's
harness homes, and says by which files it reads memory, which keys it needs and what a person should know.
Nothing here touches a disk; `observe` gathers a Site, the projection performs what is answered.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any, ClassVar, Literal

from agent_bridge.harnesses.site import FileKind as FileKind
from agent_bridge.harnesses.site import Ground as Ground
from agent_bridge.harnesses.site import InstructionFile as InstructionFile
from agent_bridge.harnesses.site import NestedFile as NestedFile
from agent_bridge.harnesses.site import Site as Site

Json = str | int | float | bool | list[Any] | dict[str, Any] | None
"""A value as JSON has it."""

NO_LIMIT = 1 << 30
"""The budget, in bytes, of a carrier that the harness reads whole."""

LEAST_BUDGET = 2048
"""A block with fewer bytes than this says too little to be worth its place (design, law 8)."""


class Mode(StrEnum):
    """How a store becomes visible to a harness."""

    SYMLINK = "symlink"
    """The harness's own memory directory is a link to the store."""
    RENDER = "render"
    """Facts are rendered into a file that the harness reads at the start of a session."""
    HOOK = "hook"
    """A hook of the harness prints them when a session starts."""
    NONE = "none"
    """The harness can't be reached, or its user doesn't want it to."""


class Scope(StrEnum):
    """Whose memory a store is."""

    PROJECT = "project"
    GLOBAL = "global"


@dataclass(frozen=True, slots=True)
class Carrier:
    """A file by which a harness gets the bodies of facts.

    `budget` is the most bytes our block may have there (the harness's own limit; the product's setting may
    be smaller). `local`: when we create it in a repository it stays out of Git. `header` is text that an
    "own" file needs before the block (front matter, say). `readers` are harness names. `text`: what the block
    says in place of the facts, as long as there are any (an import of the file that has them, say).
    """

    path: Path
    kind: Literal["block", "own"]
    scope: Scope
    readers: tuple[str, ...]
    create: bool
    local: bool
    budget: int = NO_LIMIT
    header: str = ""
    why: str = ""
    text: str = ""
    asked_by: str = ""
    """The harness that wants the file, filled in by who asks several of them; it may find no facts there."""


@dataclass(frozen=True, slots=True)
class KeyEdit:
    """One key of a harness's settings file that is to have a value, any that JSON can say.

    `element`: the key is an array in which the value is to be one element, whatever else is in it; an array
    that is missing is made. `only_if` says, in words, under which condition the harness asked for it.
    `local`: the file lies in a repository and must not become part of it through us.
    """

    path: Path
    format: Literal["json", "toml"]
    key: tuple[str, ...]
    value: Json
    why: str
    only_if: str = ""
    local: bool = False
    element: bool = False


def by_path(edits: Iterable[KeyEdit]) -> dict[Path, list[KeyEdit]]:
    """The edits of each file, in their order."""
    grouped: dict[Path, list[KeyEdit]] = {}
    for edit in edits:
        grouped.setdefault(edit.path, []).append(edit)
    return grouped


@dataclass(frozen=True, slots=True)
class LinkEdit:
    """A path in a harness's home that is to be a symlink to `target`; a real directory there is adopted."""

    path: Path
    target: Path
    why: str


@dataclass(frozen=True, slots=True)
class Adoption:
    """A directory in which a harness has kept memories; they go into the store of `scope`, it stays."""

    directory: Path
    scope: Scope
    why: str


@dataclass(frozen=True, slots=True)
class Notice:
    """Something that a person should know about a harness here. `code` is stable, for `--json`."""

    level: Literal["info", "warning"]
    code: str
    text: str
    path: Path | None = None


@dataclass(frozen=True, slots=True)
class NativeItem:
    """One memory that a harness wrote by itself.

    `directory` is the working directory it belongs to, None when it belongs to no directory.
    `created_at` is ISO UTC text or "". `harness` is its name, filled in by who asks several of them.
    `private`: its file is one person's own, so no Git may carry the text.
    """

    text: str
    title: str
    directory: Path | None
    source_file: Path
    created_at: str = ""
    harness: str = ""
    private: bool = False


@dataclass(frozen=True, slots=True)
class Read:
    """One file, or piece of a file, that a harness shows the model when a session starts.

    `size` is in bytes as they stand in the file, `shown` in bytes as the model gets them (fewer where the
    harness cuts). `why` says in words by which rule or setting it is read; `hidden`: by which it is not read
    although one might think so ("" for a file that is read). `text` is what is shown, for finding doubles.
    `cut` says in words what is cut off and for which limit ("": nothing; comments left out are no cut).
    """

    path: Path
    size: int
    shown: int
    why: str
    hidden: str = ""
    text: str = ""
    cut: str = ""


@dataclass(frozen=True, slots=True)
class HookRoom:
    """How much a hook of a harness may tell the model: UTF-8 bytes, or UTF-16 code units."""

    utf8: int = NO_LIMIT
    utf16: int = NO_LIMIT

    def holds(self, text: str) -> bool:
        """Whether a text may be told whole."""
        return len(text.encode()) <= self.utf8 and len(text.encode("utf-16-le")) // 2 <= self.utf16


class Harness(ABC):
    """An agent program. One subclass a program, in a module of its own, without state."""

    name: str
    """Stable key, e.g. `claude-code`."""
    title: str
    """What people call it."""
    hook_room: ClassVar[HookRoom | None] = None
    """What its session-start hook may tell; None where it has no hook (`hook_edits`)."""
    only_if_used: ClassVar[bool] = False
    """Nothing is looked at or written for it unless `detect` finds it or the user asks for it by name."""

    @abstractmethod
    def detect(self, env: Mapping[str, str]) -> bool:
        """Whether this user seems to use it: its home exists or its program is on PATH."""

    @abstractmethod
    def projection_mode(self, scope: Scope) -> Mode:
        """How facts of a scope reach it in general; `carriers` may still say none here."""

    # What observe must gather. Listings first, then settings, then files: each may depend on those before.

    def listings_wanted(self, _ground: Ground) -> tuple[Path, ...]:
        """Flat directories whose names are needed."""
        return ()

    def config_wanted(self, _ground: Ground, _listings: Mapping[str, tuple[str, ...]]) -> tuple[Path, ...]:
        """Settings files whose bytes are needed."""
        return ()

    def names_above(self, _ground: Ground) -> tuple[str, ...]:
        """Paths, relative to each directory above the checkout, that matter when they exist."""
        return ()

    def names_below(self, _ground: Ground, _config: Mapping[str, bytes]) -> tuple[str, ...]:
        """File names that it looks for in the directories below the root."""
        return ()

    def files_wanted(self, _ground: Ground, _config: Mapping[str, bytes]) -> tuple[Path, ...]:
        """Instruction files and directories that it reads, or that decide what it reads."""
        return ()

    def follows(self, _ground: Ground, _file: InstructionFile) -> tuple[Path, ...]:
        """Further files that it reads because of this one (imports)."""
        return ()

    # What it answers. All pure.

    @abstractmethod
    def carriers(self, site: Site, scope: Scope) -> tuple[Carrier, ...]:
        """The files by which it gets the bodies of facts; empty where nothing may be written."""

    def key_edits(self, _site: Site) -> tuple[KeyEdit, ...]:
        """Settings that it needs so that the store is its memory."""
        return ()

    def disable_native_memory(self, _site: Site) -> tuple[KeyEdit, ...]:
        """Settings that switch off the memory it keeps by itself, where that is on or holds anything."""
        return ()

    def links(self, _site: Site) -> tuple[LinkEdit, ...]:
        """Links from its home into the store."""
        return ()

    def adoptions(self, _site: Site) -> tuple[Adoption, ...]:
        """Directories outside of `links` whose memories the store takes over before our keys hide them."""
        return ()

    def notices(self, _site: Site) -> tuple[Notice, ...]:
        """What a person should know: exceptions, settings that win over ours, files that can't be used."""
        return ()

    def memory_location(self, _site: Ground) -> Path | None:
        """Where it keeps a project's memory by itself; None where it has no such place."""
        return None

    def native_memory(self, _env: Mapping[str, str]) -> list[NativeItem]:
        """Memories that it wrote by itself and keeps for the whole user. Reads the disk, changes nothing."""
        return []

    def memory_places(self, _env: Mapping[str, str]) -> tuple[Path, ...]:
        """Flat directories and files in which a change means that `native_memory` may have something new."""
        return ()

    def hook_edits(self, _site: Site, _command: str) -> tuple[KeyEdit, ...]:
        """Settings by which it runs `command` when a session starts and shows the model what that prints."""
        return ()

    def mcp_edits(self, _site: Site, _command: tuple[str, ...]) -> tuple[KeyEdit, ...]:
        """Settings by which it starts our MCP server and lets the model use its tools.

        Asked for each checkout (`site.is_main` for the main one). `command` is for files of one user; in
        repositories the bare `mcp_command.NAME` stands. The server's own keys are those below one key whose
        last part is `mcp_command.SERVER`: where the user has an entry there already, none of them is set.
        The projection refuses files that can't be edited, with line and column, and says so.
        """
        return ()

    def skill_places(self, _env: Mapping[str, str]) -> tuple[Path, ...]:
        """Directories in which it looks for skills of its user, existing or not; ours goes into the first."""
        return ()

    def reads(self, _site: Site, _start: Path) -> tuple[Read, ...]:
        """What a session started in directory `start` (the checkout or below) shows the model, in order.

        Files that it skips are part of the answer (`Read.hidden`). May read the disk below the checkout.
        """
        return ()

    def hand_written(self, _site: Site) -> list[NativeItem]:
        """Texts that people or the harness wrote where it reads memory, our own apart; for `sync --from`.

        List items and sections of instruction files, notes in its folders. Reads the disk, changes nothing.
        """
        return []

    def watch_places(self, _site: Site) -> tuple[Path, ...]:
        """Flat directories in which a change matters, existing or not."""
        return ()
