"""Puts our skill where agent programs look for the skills of their user, and takes it out again.

A skill is a directory: SKILL.md, and files that it sends its reader to. Ours is in the user's ledger, file by
file: one that its user has changed or removed stays so, a directory of that name that isn't ours is left
alone. It goes when the last project with MCP goes, as it is about our tools.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path, PurePosixPath
from types import MappingProxyType

from agent_bridge import files
from agent_bridge.errors import AgentBridgeError
from agent_bridge.files import FileImage
from agent_bridge.harnesses.base import Harness, Notice, Site
from agent_bridge.projection import apply, undo
from agent_bridge.projection.ledger import Kind, Ledger
from agent_bridge.projects import Project, load_projects

NAME = "agent-bridge"
"""The skill's name, which is that of its directory."""

FIRST = "SKILL.md"
"""The file that makes a directory a skill."""

_REFERENCES = "references"
_FOLDERS = ("skills", "skill")


@dataclass(frozen=True, slots=True)
class Copy:
    """One directory that is to have the skill, and the titles of the programs that read it there."""

    directory: Path
    readers: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Choice:
    """The copies that a user needs, one for each reader, and what to tell."""

    copies: tuple[Copy, ...] = ()
    notices: tuple[Notice, ...] = ()


@cache
def shipped() -> MappingProxyType[str, bytes]:
    """The skill as the package brings it: bytes by the path below its directory."""
    place = resources.files("agent_bridge.harnesses") / "skill"
    return MappingProxyType(dict(sorted(_files_in(place, PurePosixPath()))))


def choose(project: Project, harnesses: Iterable[Harness], site: Site, ledger: Ledger) -> Choice:
    """Where the skill goes for the given harnesses; nowhere if the project wants no MCP.

    `ledger` is the user's. Who reads a copy of ours gets no second one; who reads somebody else's skill of
    our name gets none.
    """
    if not project.mcp:
        return Choice()
    ours = {_real(place): place for place in copies(ledger) if not place.is_symlink()}
    readers: dict[Path, list[str]] = {}
    notices = []
    for harness in harnesses:
        places = {_real(place / NAME): place / NAME for place in harness.skill_places(site.env)}
        served = [real for real in places if real in readers or (real in ours and real.is_dir())]
        taken = [place for real, place in places.items() if real not in ours and _is_taken(real)]
        target = next(iter(served or places), None)
        if target is None:
            continue
        why = "" if served else _why_not(taken, places[target])
        if why:
            text = f"{why}, so {harness.title} doesn't get our skill."
            notices.append(Notice("info", "skill-closed", text, places[target]))
            continue
        ours.setdefault(target, places[target])
        readers.setdefault(target, []).append(harness.title)
    found = []
    for copy in (Copy(ours[real], tuple(titles)) for real, titles in readers.items()):
        if trouble := _in_the_way(ledger, copy.directory):
            text = f"{', '.join(copy.readers)} doesn't get our skill: {trouble}"
            notices.append(Notice("warning", "skill-closed", text, copy.directory))
        else:
            found.append(copy)
    return Choice(tuple(found), tuple(notices))


def to_be_done(project: Project, choice: Choice, ledger: Ledger) -> list[tuple[Path, str]]:
    """What `install` will do, or `withdraw` where the project wants no MCP: directories, and words for it."""
    found = []
    for one in choice.copies:
        if any(True for _ in _changes(ledger, one.directory)):
            how = "gets this version of the skill" if one.directory.is_dir() else "is made: a skill"
            readers = ", ".join(one.readers)
            text = f"{how} that tells {readers} how to use the memory and to write to others"
            found.append((one.directory, text))
    if not project.mcp:
        found += [(place, "our skill is taken out again") for place in leaving(ledger, project)]
    return found


def install(ledger: Ledger, choice: Choice) -> list[Path]:
    """Put the skill into each directory; the files that were written. The user's lock is held.

    Files that somebody has changed stay as they are. Raises AgentBridgeError.
    """
    wrote = []
    for one in choice.copies:
        for image, data in _changes(ledger, one.directory):
            apply.record_file(ledger, image, data)
            if apply.write_file(ledger, image, data):
                wrote.append(image.path)
        _drop_former(ledger, one.directory)
    return wrote


def keep_current(ledger: Ledger) -> list[Notice]:
    """Bring installed copies to this version, and tell of changed ones. The user's lock is held.

    What its user has removed isn't made again.
    """
    notices: list[Notice] = []
    for directory in copies(ledger):
        try:
            notices += _kept(ledger, directory)
        except AgentBridgeError as error:
            notices.append(Notice("warning", error.code, error.sentence(), directory))
    return notices


def leaving(ledger: Ledger, project: Project) -> tuple[Path, ...]:
    """The copies that go when this project has MCP no more: all, if no other project has it."""
    return () if any(one.mcp for one in load_projects() if one.id != project.id) else copies(ledger)


def withdraw(ledger: Ledger, project: Project) -> list[undo.Undone]:
    """Take out the copies that are `leaving`. The user's lock is held."""
    going = leaving(ledger, project)
    return [
        undo.undo(ledger, entry)
        for entry in reversed(ledger.entries())
        if entry.kind is Kind.FILE and _copy_of(Path(entry.path)) in going
    ]


def copies(ledger: Ledger) -> tuple[Path, ...]:
    """The directories with a skill of ours on record."""
    found = (_copy_of(Path(entry.path)) for entry in ledger.entries() if entry.kind is Kind.FILE)
    return tuple(dict.fromkeys(place for place in found if place is not None))


def _kept(ledger: Ledger, directory: Path) -> Iterator[Notice]:
    if directory.is_symlink() or not directory.is_dir():
        return
    changed = [
        image for image in _recorded(ledger, directory) if image.existed and not _is_ours(ledger, image)
    ]
    for image in changed:
        text = f"{image.path} was changed by its user and stays so; a newer one of ours doesn't replace it."
        yield Notice("info", "skill-changed", text, image.path)
    first = files.read_image(directory / FIRST, plain=True, within=directory)
    if not _is_ours(ledger, first):
        return
    wrote = False
    for image, data in _changes(ledger, directory):
        if image.existed or ledger.get(image.path) is None:
            apply.record_file(ledger, image, data)
            wrote |= apply.write_file(ledger, image, data)
    _drop_former(ledger, directory)
    if wrote:
        text = f"The skill in {directory} was brought to this version."
        yield Notice("info", "skill-updated", text, directory)


def _changes(ledger: Ledger, directory: Path) -> Iterator[tuple[FileImage, bytes]]:
    """The files that are missing or of another version, and what they should be. Raises AgentBridgeError."""
    for name, data in shipped().items():
        image = files.read_image(directory / name, plain=True, within=directory)
        if not image.existed or (image.data != data and _is_ours(ledger, image)):
            yield image, data


def _drop_former(ledger: Ledger, directory: Path) -> None:
    """Remove files of ours that this version doesn't have any more."""
    for image in _recorded(ledger, directory):
        entry = ledger.get(image.path)
        if entry is not None and image.path.relative_to(directory).as_posix() not in shipped():
            undo.undo(ledger, entry)


def _recorded(ledger: Ledger, directory: Path) -> list[FileImage]:
    known = [Path(entry.path) for entry in ledger.entries() if entry.kind is Kind.FILE]
    return [
        files.read_image(path, plain=True, within=directory)
        for path in known
        if path.is_relative_to(directory)
    ]


def _is_ours(ledger: Ledger, image: FileImage) -> bool:
    return image.existed and apply.is_our_file(ledger.get(image.path), image.data)


def _copy_of(path: Path) -> Path | None:
    """The skill's directory that a file of ours lies in, None for another file."""
    for place in path.parents:
        if place.name == NAME and place.parent.name in _FOLDERS:
            return place if path.relative_to(place).parts[0] in (FIRST, _REFERENCES) else None
    return None


def _why_not(taken: Sequence[Path], place: Path) -> str:
    """Why a place can't get the skill, "" if it can; `taken` are skills of our name that aren't ours."""
    if taken:
        return f"{taken[0]} isn't ours and is left alone"
    above = next(each for each in place.parents if os.path.lexists(each))
    if not above.is_dir():
        return f"{above} is no directory"
    return "" if os.access(above, os.W_OK | os.X_OK) else f"nothing can be written in {above}"


def _in_the_way(ledger: Ledger, directory: Path) -> str:
    """What keeps our files out of their directory, "" for nothing: its user may have put there anything."""
    for place in (directory, directory / _REFERENCES):
        if os.path.lexists(place) and not place.is_dir():
            return f"{place} is no directory."
    try:
        for _ in _changes(ledger, directory):
            continue
    except AgentBridgeError as error:
        return error.sentence()
    return ""


def _is_taken(directory: Path) -> bool:
    """Whether anything but an empty directory stands there."""
    if directory.is_symlink() or not directory.is_dir():
        return os.path.lexists(directory)
    try:
        return any(directory.iterdir())
    except OSError:
        return True


def _real(directory: Path) -> Path:
    """The directory by its parent's real path: two programs may have one folder of skills."""
    return Path(os.path.realpath(directory.parent)) / directory.name


def _files_in(place: Traversable, below: PurePosixPath) -> Iterator[tuple[str, bytes]]:
    for item in place.iterdir():
        if item.is_dir():
            yield from _files_in(item, below / item.name)
        else:
            yield str(below / item.name), item.read_bytes()
