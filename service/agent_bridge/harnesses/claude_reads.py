"""Which files a session of Claude Code shows the model, in order, and which it skips.

Source: Claude Code 2.1.332, by running it. The user's own files come first; then, from the top directory
down to the session's: CLAUDE.md and its imports, `.claude/CLAUDE.md`, `.claude/rules`, CLAUDE.local.md, and
AGENTS.md and `.claude/AGENTS.md` where nothing hides them; the index of the memory comes last. One file is
shown once. Links and imports of a project lead only to places below the session's own directory.

The core takes what it looks at the disk with, so that it can be tested without one.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from agent_bridge import paths
from agent_bridge.harnesses import agents_md, claude_places, claude_settings, claude_text
from agent_bridge.harnesses.base import FileKind, InstructionFile, Read, Site
from agent_bridge.harnesses.claude_carriers import IN_FOLDER, LOCAL, MAIN
from agent_bridge.harnesses.claude_imports import imports, resolve
from agent_bridge.harnesses.claude_settings import Instructions
from agent_bridge.harnesses.observe import look

MANAGED = Path("/etc/claude-code/CLAUDE.md")
"""Instructions of the machine's administrator on Linux; read by the documentation, not run."""

IMPORT_DEPTH = 4
"""How deep imports of imports are followed."""

RULES_DEPTH, RULES_LIMIT = 8, 500
"""Directories below `.claude/rules`, and files in all, that are looked at."""

_INDEX = "MEMORY.md"
_SHARED_SETTINGS = ".claude/settings.json"
_LOCAL_SETTINGS = ".claude/settings.local.json"
_IN_FOLDER_AGENTS = ".claude/AGENTS.md"
_WITHIN = "Claude Code follows a project's links and imports only to places below where it is started"
_OPTION = "pluginConfigs.cc-plugin-agents-md@builtin.options.instructionFiles"


@dataclass(frozen=True, slots=True)
class Disk:
    """How the disk is looked at: what stands at a path, and the names in a directory in the disk's order."""

    look: Callable[[Path], InstructionFile]
    names: Callable[[Path], Sequence[str]]


def reads(site: Site, start: Path, disk: Disk | None = None) -> tuple[Read, ...]:
    """The files of a session started in `start`, a real path, in the order in which the model gets them."""
    disk = disk or Disk(_look, _names)
    session = _session(site, start, disk)
    chain = _Chain(session, start, disk)
    off = claude_settings.instructions_switched_off(session)
    if off is None:
        chain.walk()
    else:
        chain.skip_all(f"{off.where} switches instruction files off")
    chain.index()
    return tuple(_each_once(chain.found))


@dataclass(slots=True)
class _Chain:
    """Collects what is read, file by file."""

    site: Site
    start: Path
    disk: Disk
    found: list[Read] = field(default_factory=list)
    seen: dict[Path, Path] = field(default_factory=dict)
    """Files shown already, by their real path, with the name under which they were."""

    def walk(self) -> None:
        """Everything but the index of the memory."""
        home = paths.claude_home(self.site.env)
        self.take(MANAGED, "the machine's administrator's")
        self.take(home / MAIN, "the user's own, for all projects", own=True)
        self.rules(home / "rules", "the user's own rules", own=True)
        hiding = self._what_hides_agents_md()
        for directory in (*reversed(self.start.parents), self.start):
            self.directory(directory, hiding)

    def directory(self, place: Path, hiding: str) -> None:
        """What one directory on the way from the top to the session's brings along."""
        where = (
            "the session's directory" if place == self.start else f"{place}, above the session's directory"
        )
        foreign = self._is_main_checkout_around(place)
        if not foreign:
            self.take(place / MAIN, f"CLAUDE.md of {where}")
            self.take(place / IN_FOLDER, f".claude/CLAUDE.md of {where}")
            self.rules(place / ".claude" / "rules", f"a rules file of {where}")
        self.take(place / LOCAL, f"CLAUDE.local.md of {where}")
        if not foreign:
            both = claude_settings.instructions(self.site) is Instructions.BOTH
            asked = f"{_OPTION} in {claude_places.user_settings(self.site.env)} asks for both"
            why = asked if both else "no CLAUDE.md on the way hides it"
            for name in (agents_md.NAME, _IN_FOLDER_AGENTS):
                self.take(place / name, f"{name} of {where}; {why}", hidden=hiding)

    def take(self, path: Path, why: str, *, own: bool = False, hidden: str = "", depth: int = 0) -> None:
        """One file and what it imports. `own`: it may import from anywhere. `hidden`: why it is skipped."""
        file = self.disk.look(path)
        if not file.readable:
            if file.kind is not FileKind.ABSENT:
                self._add(file, why, hidden=file.why_unreadable)
            return
        hidden = self._same_as_before(file) or hidden or self._excluded(file)
        text = "" if hidden else claude_text.shown(file.data)
        if not hidden and not text:
            hidden = "nothing but comments and white space stands in it"
        self._add(file, why, hidden=hidden, text=text)
        if hidden:
            return
        self.seen[file.real] = path
        for written in imports(text) if depth < IMPORT_DEPTH else ():
            target = resolve(written, file.real, paths.home(self.site.env))
            self._import(target, path, own=own, depth=depth + 1)

    def rules(self, place: Path, why: str, *, own: bool = False) -> None:
        """The rules files below a directory, in the disk's order."""
        for path in self._rules_below(place, RULES_DEPTH):
            file = self.disk.look(path)
            outside = not own and file.real != path and not file.real.is_relative_to(self.start)
            if outside:
                self._add(file, why, hidden=f"it is or lies behind a link to {file.real}: {_WITHIN}")
            elif file.readable and claude_text.only_for_paths(file.data):
                self._add(file, why, hidden="its `paths` say that it is for certain files only")
            else:
                self.take(file.real if file.readable else path, why, own=own)

    def index(self) -> None:
        """MEMORY.md."""
        off = claude_settings.memory_switched_off(self.site)
        said = claude_settings.memory_directory(self.site)
        default = claude_places.memory_directory(self.site)
        place = default if said is None else Path(str(said.value))
        by = (
            "Claude Code's own place"
            if said is None
            else f"{claude_settings.MEMORY_DIRECTORY} in {said.where}"
        )
        why = f"the index of the memory; its directory is that of {by}"
        file = self.disk.look(place / _INDEX)
        if not file.readable:
            if off is None and place.is_absolute():
                self._add(file, why, hidden="it isn't there")
            return
        if off is not None:
            self._add(file, why, hidden=f"{off.where} switches the memory off")
            return
        index = claude_text.shown_index(file.data)
        empty = "" if index.text else "nothing stands in it"
        self._add(file, why, hidden=empty, text=index.text, cut=index.cut)

    def skip_all(self, hidden: str) -> None:
        """The files of which one would think that they are read, where none is."""
        home = paths.claude_home(self.site.env)
        places = [home / MAIN, *(self.start / name for name in (MAIN, IN_FOLDER, LOCAL, agents_md.NAME))]
        for path in places:
            self.take(path, "an instruction file", hidden=hidden)

    def _add(self, file: InstructionFile, why: str, *, hidden: str, text: str = "", cut: str = "") -> None:
        shown = 0 if hidden else len(text.encode("utf-8", "replace"))
        self.found.append(
            Read(file.path, len(file.data), shown, why, hidden=hidden, text="" if hidden else text, cut=cut)
        )

    def _import(self, target: Path, importer: Path, *, own: bool, depth: int) -> None:
        file = self.disk.look(target)
        why = f"{importer} imports it"
        if not file.readable or file.real in self.seen:
            return
        if own or file.real.is_relative_to(self.start):
            self.take(target, why, own=own, depth=depth)
        else:
            self._add(file, why, hidden=_WITHIN)

    def _same_as_before(self, file: InstructionFile) -> str:
        shown = self.seen.get(file.real)
        return "" if shown is None else f"it is the same file as {shown}, which is shown already"

    def _excluded(self, file: InstructionFile) -> str:
        excluding = self._excluding(file.path)
        return f"claudeMdExcludes in {excluding} excludes it" if excluding else ""

    def _excluding(self, path: Path) -> Path | None:
        shared = claude_places.shared_settings(self.site)
        layers = {
            self.start / _SHARED_SETTINGS if layer == shared else layer: self.site.settings(layer)
            for layer in claude_places.layers(self.site)
        }
        # Of the user's settings for the session's own directory this alone counts below a repository's root.
        below = self.disk.look(self.start / _LOCAL_SETTINGS)
        layers.setdefault(below.path, below.data if below.readable else None)
        key = str(claude_places.user_settings(self.site.env))
        for layer, data in layers.items():
            if data is not None and claude_settings.excluded(replace(self.site, config={key: data}), path):
                return layer
        return None

    def _what_hides_agents_md(self) -> str:
        mode = claude_settings.instructions(self.site)
        if mode is Instructions.BOTH:
            return ""
        user = claude_places.user_settings(self.site.env)
        if mode is Instructions.CLAUDE_ONLY:
            return f"{_OPTION} in {user} says `claude-md`"
        hiding = next(self._hiding(), None)
        return "" if hiding is None else f"{hiding} hides it: Claude Code reads AGENTS.md only without one"

    def _hiding(self) -> Iterator[Path]:
        own = paths.claude_home(self.site.env)
        for place in (self.start, *self.start.parents):
            names = (LOCAL,) if self._is_main_checkout_around(place) else (MAIN, IN_FOLDER, LOCAL)
            for path in (place / name for name in names):
                file = self.disk.look(path) if path.parent != own else None
                if file is None or not file.readable or self._excluding(path):
                    continue
                if claude_text.shown(file.data):
                    yield path

    def _is_main_checkout_around(self, place: Path) -> bool:
        """Whether a directory belongs to the main checkout around this worktree: it isn't read too."""
        site = self.site
        if site.project is None or place.is_relative_to(site.checkout):
            return False
        return place.is_relative_to(site.project.main or site.project.root)

    def _rules_below(self, place: Path, depth: int) -> Iterator[Path]:
        names = self.disk.names(place)[:RULES_LIMIT] if depth else ()
        for name in names:
            path = place / name
            if name.endswith(".md"):
                yield path
            elif self.disk.look(path).is_directory:
                yield from self._rules_below(path, depth - 1)


def _each_once(found: Sequence[Read]) -> Iterator[Read]:
    """A file that is read one way isn't told as skipped another way, nor skipped twice."""
    told = {read.path for read in found if not read.hidden}
    for read in found:
        if not read.hidden:
            yield read
        elif read.path not in told:
            told.add(read.path)
            yield read


def _session(site: Site, start: Path, disk: Disk) -> Site:
    """The site with the settings that a session started in `start` has.

    Shared settings are those of the session's own directory; the user's for the project are the main
    checkout's, outside of Git those of the session's own directory, where the memory is sought too.
    """
    here = site
    if not site.is_git and site.project is not None:
        here = replace(site, project=replace(site.project, root=start), checkout=start)
    replaced = {claude_places.shared_settings(site), claude_places.local_settings(site)}
    config = {path: data for path, data in site.config.items() if Path(path) not in replaced}
    local = claude_places.local_settings(here)
    for path, read in ((claude_places.shared_settings(here), start / _SHARED_SETTINGS), (local, local)):
        file = disk.look(read)
        if file.readable:
            config[str(path)] = file.data
    return replace(here, config=config)


def _look(path: Path) -> InstructionFile:
    return look(path, path.parent)


def _names(place: Path) -> tuple[str, ...]:
    try:
        with os.scandir(place) as entries:
            return tuple(entry.name for entry in entries)
    except OSError:
        return ()
