"""Gathering a `Site`: the one part of this room that looks at the disk and asks Git.

Harnesses say what they need (`*_wanted`, `names_*`, `follows`). What is found is hostile until parsed, so
this only lists directories and reads regular files up to a limit; a FIFO or a device is never opened.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path

from agent_bridge import files, git, paths
from agent_bridge.errors import AgentBridgeError, RefusedError
from agent_bridge.harnesses import all_harnesses
from agent_bridge.harnesses.base import (
    FileKind,
    Ground,
    Harness,
    InstructionFile,
    NestedFile,
    Scope,
    Site,
)
from agent_bridge.harnesses.in_use import active, in_use
from agent_bridge.projects import Project

FILE_LIMIT = 16 * 1024 * 1024
"""Bytes: a larger instruction file is told as unreadable."""

SETTINGS_LIMIT = 1024 * 1024
"""Bytes: the same for a settings file. They are parsed to the byte, a second a mebibyte."""

LISTING_LIMIT = 10_000
"""Names taken from one directory; Codex keeps one summary a session, so real ones have some hundreds."""

FOLLOW_LIMIT = 200
"""Imported files looked at in one checkout."""

MAX_DEPTH = 5
"""How deep imports of imports are followed (Claude Code 2.1.332)."""


def observe_site(
    project: Project,
    checkout: Path,
    *,
    harnesses: Iterable[Harness] | None = None,
    env: Mapping[str, str] | None = None,
) -> Site:
    """Look at one checkout of a project: its main checkout or a worktree.

    `env` is the environment of the harnesses; None means what `init` recorded, with this process's HOME and
    PATH where it recorded none, so that a command and the service see the same. Files that can't be read
    are part of the answer (`InstructionFile.problem`). Raises GitError where Git can't read the repository.
    """
    real = Path(os.path.realpath(checkout))
    found = git.find_checkout(real)
    if found is not None and found.root != real:
        found = None
    ground = Ground(
        project=project,
        checkout=real,
        is_main=real == project.root,
        env=recorded_environment(project) if env is None else dict(env),
        is_git=found is not None,
    )
    known = _known(harnesses)
    used = in_use(known, ground.env, asked=project.requested, state=project.state)
    ground = replace(ground, used=used)
    return _observe(ground, found, active(known, ground))


def observe_user(env: Mapping[str, str], *, harnesses: Iterable[Harness] | None = None) -> Site:
    """Look at the user's own places alone, for scope `global`. The home stands for the checkout.

    A file counts as tracked where Git holds it, or would take it: homes are kept in repositories too.
    """
    known = _known(harnesses)
    used = in_use(known, env, state=paths.user_state())
    ground = Ground(project=None, checkout=paths.home(env), env=dict(env), is_git=False, used=used)
    site = _observe(ground, None, active(known, ground))
    carriers = {
        carrier.path for harness in active(known, ground) for carrier in harness.carriers(site, Scope.GLOBAL)
    }
    homes = (
        paths.claude_home(env),
        paths.codex_home(env),
        paths.opencode_config(env),
        paths.gemini_home(env),
    )
    places: dict[Path, set[Path]] = {}
    for file in site.files.values():
        if file.path in carriers or (file.path.suffix == ".md" and file.path.parent in homes):
            places.setdefault(_existing(file.real.parent), set()).add(file.real)
    held = {path for place, reals in places.items() for path in _held_by_git(place, reals)}
    files_seen = {
        name: replace(file, tracked=True) if file.real in held else file for name, file in site.files.items()
    }
    return replace(site, files=files_seen)


def recorded_environment(project: Project) -> dict[str, str]:
    """The environment that a project's harnesses are judged by."""
    own = {name: os.environ[name] for name in ("HOME", "PATH") if name in os.environ}
    return own | project.environment


def look(path: Path, root: Path, *, limit: int = FILE_LIMIT) -> InstructionFile:
    """What stands at `path`; `root` is the directory that counts as inside (a real path)."""
    real = Path(os.path.realpath(path)) if _can_exist(path) else path
    inside = real.is_relative_to(root)
    name = path.relative_to(root).as_posix() if path.is_relative_to(root) else str(path)
    found = InstructionFile(name=name, path=path, real=real, kind=FileKind.ABSENT, inside=inside)
    if not _can_exist(path):
        return found
    try:
        link = stat.S_ISLNK(path.lstat().st_mode)
    except FileNotFoundError:
        return found
    except OSError as error:
        return replace(found, kind=FileKind.OTHER, problem=error.strerror or str(error))
    try:
        info = path.stat()
    except OSError:
        return replace(found, kind=FileKind.DANGLING if link else FileKind.OTHER)
    found = replace(found, identity=(info.st_dev, info.st_ino))
    if stat.S_ISDIR(info.st_mode):
        return replace(found, kind=FileKind.LINKED_DIRECTORY if link else FileKind.DIRECTORY)
    if not stat.S_ISREG(info.st_mode):
        return replace(found, kind=FileKind.OTHER, problem="it is neither a file nor a directory")
    return _read(found, FileKind.SYMLINK if link else FileKind.FILE, limit)


def _known(harnesses: Iterable[Harness] | None) -> tuple[Harness, ...]:
    return all_harnesses() if harnesses is None else tuple(harnesses)


def _observe(ground: Ground, checkout: git.Checkout | None, harnesses: tuple[Harness, ...]) -> Site:
    listings = {
        str(place): _listing(place)
        for place in _each(harness.listings_wanted(ground) for harness in harnesses)
    }
    config: dict[str, bytes] = {}
    problems: dict[str, InstructionFile] = {}
    for path in _each(harness.config_wanted(ground, listings) for harness in harnesses):
        file = look(path, ground.checkout, limit=SETTINGS_LIMIT)
        problems[str(path)] = file
        if file.readable:
            config[str(path)] = file.data
    found = {
        str(path): look(path, ground.checkout)
        for path in _each(harness.files_wanted(ground, config) for harness in harnesses)
    }
    _follow(ground, found, harnesses)
    for spelled, file in problems.items():
        found.setdefault(spelled, replace(file, data=b""))
    return Site(
        project=ground.project,
        checkout=ground.checkout,
        is_main=ground.is_main,
        env=ground.env,
        is_git=ground.is_git,
        used=ground.used,
        files=_with_tracking(found, checkout),
        config=config,
        listings=listings,
        nested=_nested(ground, checkout, config, harnesses),
        parents=_parents(ground, harnesses),
    )


def _each(groups: Iterable[tuple[Path, ...]]) -> list[Path]:
    return list(dict.fromkeys(path for group in groups for path in group if _can_exist(path)))


def _can_exist(path: Path | str) -> bool:
    """Whether a file may have this name: settings say what they like, and JSON has halves of characters."""
    try:
        return b"\0" not in os.fsencode(path)
    except UnicodeEncodeError:
        return False


def _listing(place: Path) -> tuple[str, ...]:
    """Names in a directory without hidden temporary ones; () where it is missing or may not be read."""
    try:
        with os.scandir(place) as entries:
            return tuple(sorted(entry.name for entry, _ in zip(entries, range(LISTING_LIMIT), strict=False)))
    except OSError:
        return ()


def _read(found: InstructionFile, kind: FileKind, limit: int) -> InstructionFile:
    try:
        image = files.read_image(found.path, limit=limit)
    except RefusedError as error:
        return replace(found, kind=FileKind.OTHER, problem=error.detail or error.title)
    if not image.existed:
        return replace(found, kind=FileKind.ABSENT, identity=None)
    return replace(found, kind=kind, data=image.data, identity=image.inode)


def _follow(ground: Ground, found: dict[str, InstructionFile], harnesses: tuple[Harness, ...]) -> None:
    """Add the files that found ones import, and those that these import."""
    fresh = [file for file in found.values() if file.readable]
    for _ in range(MAX_DEPTH):
        wanted = _each(harness.follows(ground, file) for file in fresh for harness in harnesses)
        fresh = []
        for path in wanted:
            if str(path) in found or len(found) >= FOLLOW_LIMIT:
                continue
            found[str(path)] = look(path, ground.checkout)
            fresh.append(found[str(path)])


def _with_tracking(
    found: Mapping[str, InstructionFile], checkout: git.Checkout | None
) -> dict[str, InstructionFile]:
    """Files with what Git says: a file counts as tracked if its name or the file behind it is."""
    if checkout is None:
        return dict(found)
    candidates = {file.path for file in found.values()} | {file.real for file in found.values()}
    known = git.tracked(checkout, [path for path in candidates if path.is_relative_to(checkout.root)])
    return {
        spelled: replace(file, tracked=file.path in known or file.real in known)
        for spelled, file in found.items()
    }


def _existing(place: Path) -> Path:
    """The directory itself, or the nearest one above it that is there."""
    return next((each for each in (place, *place.parents) if each.is_dir()), place)


def _held_by_git(place: Path, reals: set[Path]) -> set[Path]:
    """Those of some files in one directory that Git tracks or would add. A repository that can't be asked
    holds all."""
    try:
        checkout = git.find_checkout(place)
        return set() if checkout is None else reals - git.ignored(checkout, reals)
    except AgentBridgeError:
        return reals


def _nested(
    ground: Ground, checkout: git.Checkout | None, config: Mapping[str, bytes], harnesses: tuple[Harness, ...]
) -> tuple[NestedFile, ...]:
    if checkout is None:
        return ()
    names = dict.fromkeys(name for harness in harnesses for name in harness.names_below(ground, config))
    found = []
    for path in git.list_instruction_files(checkout, [name for name in names if _can_exist(name)]):
        if path.parent == ground.checkout:
            continue
        try:
            size = path.stat().st_size
        except OSError:
            continue
        found.append(NestedFile(path.relative_to(ground.checkout).as_posix(), size))
    return tuple(found)


def _parents(ground: Ground, harnesses: tuple[Harness, ...]) -> tuple[Path, ...]:
    """Files above the checkout. A worktree inside its main checkout doesn't count that one's as above it."""
    if ground.project is None:
        return ()
    names = dict.fromkeys(name for harness in harnesses for name in harness.names_above(ground))
    above = [
        parent
        for parent in ground.checkout.parents
        if ground.is_main or not parent.is_relative_to(ground.project.root)
    ]
    return tuple(parent / name for parent in above for name in names if _is_file(parent / name))


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError:
        return False
