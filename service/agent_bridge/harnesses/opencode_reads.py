"""What a session of OpenCode shows the model at its start, in order, and what people wrote there.

Source: OpenCode 1.18.33, by running it; see `opencode_files` and `opencode_config` for the rules. Everything
stands in the system message: the user's file, the project's files of one name from the session's directory
upward, then what `instructions` list. Nothing is cut.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from agent_bridge import paths
from agent_bridge.harnesses import opencode_config, opencode_files, opencode_global, path_glob, prose
from agent_bridge.harnesses.base import InstructionFile, NativeItem, Read, Site
from agent_bridge.harnesses.observe import look

WALK_LIMIT = 20_000
"""So many names are looked at for one glob."""


def reads(site: Site, start: Path) -> tuple[Read, ...]:
    """The files, those that are skipped too. Reads the disk."""
    found = _Found(site)
    _user_files(site, found)
    if site.project is not None and not opencode_config.project_switched_off(site):
        _project_files(site, start, found)
    for entry in _entries(site, start):
        _listed(site, start, entry, found)
    return tuple(found.reads)


def hand_written(site: Site) -> list[NativeItem]:
    """What people wrote into the project's files that OpenCode shows. Reads the disk."""
    items = []
    for read in reads(site, site.checkout):
        if read.hidden or not read.path.is_relative_to(site.checkout):
            continue
        if read.path == site.checkout / opencode_files.BRIDGE:
            continue
        file = look(read.path, site.checkout)
        if file.inside:
            items += [
                NativeItem(piece.text, piece.title, site.checkout, read.path)
                for piece in prose.pieces_of(file.data)
            ]
    return items


class _Found:
    """The answer so far: each path once, as OpenCode does it."""

    def __init__(self, site: Site) -> None:
        self.site = site
        self.reads: list[Read] = []
        self._seen: set[Path] = set()

    def add(self, file: InstructionFile, why: str, hidden: str = "") -> None:
        if file.path in self._seen or not file.readable:
            return
        if not hidden:
            self._seen.add(file.path)
        size = len(file.data)
        text = "" if hidden else file.data.decode("utf-8", "replace")
        self.reads.append(Read(file.path, size, 0 if hidden else size, why, hidden, text))


def _user_files(site: Site, found: _Found) -> None:
    own = site.file(opencode_global.own_file(site))
    theirs = site.file(opencode_global.claudes_file(site))
    found.add(own, "OpenCode's own file for all projects")
    if opencode_config.claude_switched_off(site):
        found.add(theirs, "Claude Code's file for all projects", "a variable switches Claude's files off")
    elif own.readable or own.is_directory:
        found.add(theirs, "Claude Code's file for all projects", f"{own.path} takes its place")
    else:
        found.add(theirs, "Claude Code's file for all projects, as OpenCode has none of its own")


def _project_files(site: Site, start: Path, found: _Found) -> None:
    chosen = ""
    off = opencode_config.claude_switched_off(site)
    for name in opencode_files.NAMES:
        files = [_look(site, place / name) for place in _upward(site, start)]
        there = [file for file in files if file.readable or file.is_directory]
        if off and name == opencode_files.CLAUDE:
            hidden = "a variable switches Claude's files off"
        elif chosen:
            hidden = f"{chosen} takes its place"
        else:
            hidden = ""
            chosen = name if there else ""
        listed = _entries(site, start)
        for file in there:
            if not hidden:
                found.add(file, f"the first name that exists of {', '.join(opencode_files.NAMES)}")
            elif not any(_names(site, start, entry, file.path) for entry in listed):
                found.add(file, "an instruction file of the project", hidden)


def _entries(site: Site, start: Path) -> tuple[str, ...]:
    """All instructions, also those of settings between the root and the session's directory."""
    found = list(opencode_config.entries(site))
    if site.project is not None and not opencode_config.project_switched_off(site):
        for place in reversed(_upward(site, start)):
            if place != site.checkout:
                files = (look(place / name, place) for name in opencode_config.PROJECT_FILES)
                found += [entry for file in files for entry in opencode_config.entries_in(file.data)]
    return tuple(dict.fromkeys(found))


def _listed(site: Site, start: Path, entry: str, found: _Found) -> None:
    why = f"`instructions` list {entry!r}"
    home = paths.home(site.env)
    pattern = f"{home}/{entry[2:]}" if entry.startswith("~/") else entry
    if not pattern or pattern.startswith(("http://", "https://")):
        return
    if pattern.startswith("/"):
        # Only the last part of an absolute path is a glob.
        for path in _matching(Path(pattern).parent, Path(pattern).name):
            found.add(_look(site, path), why)
        return
    for place in _upward(site, start):
        for path in _matching(place, pattern):
            found.add(_look(site, path), why)


def _names(site: Site, start: Path, entry: str, path: Path) -> bool:
    home = paths.home(site.env)
    return any(opencode_config.names(entry, path, place, home) for place in _upward(site, start))


def _upward(site: Site, start: Path) -> list[Path]:
    """The session's directory and those above it, up to the checkout; outside of Git up to `/`."""
    places = [start, *start.parents]
    if not site.is_git or site.checkout not in places:
        return places
    return places[: places.index(site.checkout) + 1]


def _matching(place: Path, pattern: str) -> Iterator[Path]:
    """The files that a glob means, looked for in a directory; one without wildcards needs no search."""
    for one in opencode_config.alternatives(pattern):
        whole = Path(os.path.normpath(place / one))
        if not set(one) & set("*?"):
            yield whole
            continue
        fixed = whole.parent
        while set(str(fixed)) & set("*?"):
            fixed = fixed.parent
        deep = "**" in one or len(whole.relative_to(fixed).parts) > 1
        yield from sorted(
            path
            for path in _files_below(fixed, deep=deep)
            if path_glob.matches(whole.as_posix(), path.as_posix())
        )


def _files_below(place: Path, *, deep: bool) -> Iterator[Path]:
    seen = 0
    for directory, folders, names in os.walk(place):
        folders[:] = [name for name in folders if deep and name != ".git"]
        for name in names:
            seen += 1
            if seen > WALK_LIMIT:
                return
            yield Path(directory, name)


def _look(site: Site, path: Path) -> InstructionFile:
    known = site.files.get(str(path))
    return known if known is not None and known.data else look(path, site.checkout)


__all__ = ["hand_written", "reads"]
