"""Which files a session of Codex shows the model, in order, what it cuts, and which files it skips.

Source: Codex 0.171.0, by running it. The user's own file comes first, trimmed; of AGENTS.override.md and
AGENTS.md the first that isn't empty. Then one file a directory, from the project's root (the nearest
directory with a root marker) down to the session's: the first regular one of AGENTS.override.md, AGENTS.md
and the fallback names, even an empty one. `project_doc_max_bytes` is spent from the root downward; a file of
white space costs nothing and isn't shown.

The core takes what it looks at the disk with, so that it can be tested without one.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from agent_bridge import paths
from agent_bridge.harnesses import agents_md, codex_config
from agent_bridge.harnesses.base import FileKind, InstructionFile, Read, Site
from agent_bridge.harnesses.codex_config import Layer
from agent_bridge.harnesses.observe import look

DEFAULT_MARKERS = (".git",)
"""Codex's default for `project_root_markers`."""

_MAX_BYTES = "project_doc_max_bytes"


@dataclass(frozen=True, slots=True)
class Disk:
    """How the disk is looked at: what stands at a path, and whether anything does."""

    look: Callable[[Path], InstructionFile]
    exists: Callable[[Path], bool]


@dataclass(frozen=True, slots=True)
class _Session:
    """The settings of a session: `layers` are those above the user's, the one that wins first."""

    site: Site
    start: Path
    root: Path
    layers: tuple[Layer, ...]
    untrusted: Path | None
    """The directory that the user's settings call untrusted."""

    def get(self, key: str) -> tuple[object, Path]:
        """A setting and the file that says it (the user's where none does)."""
        user = codex_config.user_layer(self.site)
        for layer in (*self.layers, user):
            value = layer.get(key)
            if value is not None:
                return value, layer.path
        return None, user.path


def reads(site: Site, start: Path, disk: Disk | None = None) -> tuple[Read, ...]:
    """The files of a session started in `start`, a real path, in the order in which the model gets them."""
    disk = disk or Disk(_look, os.path.lexists)
    session = _session(site, start, disk)
    return (*_global_reads(session, disk), *_project_reads(session, disk))


def _global_reads(session: _Session, disk: Disk) -> Iterator[Read]:
    home = paths.codex_home(session.site.env)
    chosen: Path | None = None
    for name in (agents_md.OVERRIDE, agents_md.NAME):
        file = disk.look(home / name)
        text = _text(file.data).strip()
        why = "the user's own, for all projects"
        if file.kind is FileKind.ABSENT:
            continue
        if chosen is not None:
            yield _hidden(file, why, f"{chosen} hides it")
        elif not file.readable:
            yield _hidden(file, why, file.why_unreadable)
        elif not text:
            yield _hidden(file, why, "nothing stands in it")
        else:
            chosen = file.path
            yield Read(file.path, len(file.data), len(text.encode()), why, text=text)


def _project_reads(session: _Session, disk: Disk) -> Iterator[Read]:
    said, where = session.get(_MAX_BYTES)
    limit = said if isinstance(said, int) and not isinstance(said, bool) and said >= 0 else None
    limit = codex_config.DEFAULT_MAX_BYTES if limit is None else limit
    setting = f"{_MAX_BYTES} is {limit}" + (f" in {where}" if said is not None else " by default")
    fallback, by = session.get("project_doc_fallback_filenames")
    names = (agents_md.OVERRIDE, agents_md.NAME, *codex_config.names_of(fallback))
    left = limit
    for place in _way(session):
        chosen: Path | None = None
        for name in names:
            file = disk.look(place / name)
            why = _why(session, file, by)
            if file.kind is FileKind.ABSENT:
                continue
            if chosen is not None:
                yield _hidden(file, why, f"{chosen} hides it: Codex reads one file in each directory")
            elif not file.readable:
                yield _hidden(file, why, file.why_unreadable)
            elif session.untrusted is not None:
                user = codex_config.user_file(session.site.env)
                yield _hidden(file, why, f"{user} calls {session.untrusted} untrusted (trust_level)")
            else:
                chosen = file.path
                read = _limited(file, why, left, setting)
                left -= read.shown
                yield read
    yield from _above(session, disk, names)


def _limited(file: InstructionFile, why: str, left: int, setting: str) -> Read:
    size = len(file.data)
    kept = file.data[:left]
    if not _text(kept).strip():
        empty = not _text(file.data).strip()
        return _hidden(file, why, "nothing stands in it" if empty else f"no bytes are left: {setting}")
    cut = f"the last {size - left} bytes: {setting}" if size > left else ""
    return Read(file.path, size, len(kept), why, text=_text(kept), cut=cut)


def _above(session: _Session, disk: Disk, names: tuple[str, ...]) -> Iterator[Read]:
    """Files above the root, which one could think are read."""
    for place in session.root.parents:
        for name in names:
            file = disk.look(place / name)
            if file.readable and place != paths.codex_home(session.site.env):
                yield _hidden(file, "above the project", f"it lies above {session.root}, the project's root")


def _why(session: _Session, file: InstructionFile, fallback: Path) -> str:
    place = file.path.parent
    where = "the session's directory" if place == session.start else f"{place}, on the way down"
    if file.path.name in (agents_md.OVERRIDE, agents_md.NAME):
        return f"{file.path.name} of {where}"
    return f"named by project_doc_fallback_filenames in {fallback}, in {where}"


def _way(session: _Session) -> Iterator[Path]:
    """The directories from the root down to the session's."""
    below = session.start.relative_to(session.root).parts
    for depth in range(len(below) + 1):
        yield session.root.joinpath(*below[:depth])


def _session(site: Site, start: Path, disk: Disk) -> _Session:
    user = codex_config.user_layer(site)
    said = user.get("project_root_markers")
    markers = DEFAULT_MARKERS if said is None else codex_config.names_of(said)
    marked = (place for place in (start, *start.parents) if any(disk.exists(place / one) for one in markers))
    root = next(marked, start)
    level, place = _trust(user, site, start, root)
    layers = list(_project_layers(start, root, disk)) if level == "trusted" else []
    return _Session(site, start, root, tuple(layers), place if level == "untrusted" else None)


def _trust(user: Layer, site: Site, start: Path, root: Path) -> tuple[str, Path]:
    """What the user's settings say of the session's directory, else of its root or the main checkout."""
    projects = user.get("projects")
    main = () if site.project is None else (site.project.root,)
    for place in (start, root, *main):
        entry = projects.get(str(place)) if isinstance(projects, dict) else None
        level = entry.get("trust_level") if isinstance(entry, dict) else None
        if isinstance(level, str):
            return level, place
    return "", root


def _project_layers(start: Path, root: Path, disk: Disk) -> Iterator[Layer]:
    """Settings of a trusted project: those of the directory nearest to the session win."""
    for place in (start, *start.parents):
        file = disk.look(place / ".codex" / "config.toml")
        if file.readable:
            values, problem = codex_config.parse(file.data)
            yield Layer(file.path, values, problem)
        if place == root:
            return


def _hidden(file: InstructionFile, why: str, hidden: str) -> Read:
    return Read(file.path, len(file.data), 0, why, hidden=hidden)


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace")


def _look(path: Path) -> InstructionFile:
    return look(path, path.parent)
