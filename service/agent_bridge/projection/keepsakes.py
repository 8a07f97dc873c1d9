"""Copies of facts that Git was told to ignore, because Git overwrites an ignored file without asking.

A merge, pull or checkout that brings a file of the same name replaces an ignored one silently (gitignore(5)
and git-checkout(1), `--overwrite-ignore`). The copy then is the only place where the user's text still is. A
fact that its owner edited and committed since the last pass looks alike: the reflog tells the two apart.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from agent_bridge import files, git
from agent_bridge.projects import Project

LIMIT = 1024 * 1024
"""Bytes; a larger file is no fact."""

_LOOKED = ".looked"
"""A file whose time says when the last pass was."""


@dataclass(frozen=True, slots=True)
class Overwritten:
    """A fact that Git replaced: its path, and the bytes that it had before."""

    path: Path
    data: bytes


def look_after(
    store: Path,
    tracked: set[Path],
    place: Path,
    keep: Callable[[Overwritten], None],
    step: Callable[[], None] = lambda: None,
) -> int:
    """Copy each untracked fact of `store` to `place`; hand those that Git has replaced since to `keep`.

    So are those that a checkout replaced and the way back from it took away.

    `tracked`: the paths below `store` in the index. A copy is dropped when `keep` returns, and with a fact
    that its owner committed or deleted. A pass without changes only compares sizes and times.
    `step` is called before each fact is copied. Returns how many facts were handed over.
    """
    handed = 0
    looked = place / _LOOKED
    before = looked.stat().st_mtime if looked.exists() else None
    for name in list(facts_below(place)):
        path, copy = store / name, place / name
        if path in tracked or not path.is_file():
            data = copy.read_bytes()
            if _is_lost(path, data, path in tracked, before):
                keep(Overwritten(path, data))
                handed += 1
            copy.unlink()
    for name in facts_below(store):
        if store / name not in tracked:
            step()
            _copy(store / name, place / name)
    if place.is_dir():
        looked.touch(mode=0o600)
    return handed


def _is_lost(path: Path, data: bytes, tracked: bool, before: float | None) -> bool:  # noqa: FBT001
    """Whether Git replaced or took away what held `data` at the last pass, at `before`."""
    there = path.is_file()
    if there and (not tracked or files.read_image(path).data == data):
        return False
    checkout = git.find_checkout(path.parent)
    if checkout is None or before is None or not path.is_relative_to(checkout.root):
        return tracked and there
    name = path.relative_to(checkout.root).as_posix()
    if there:
        return not git.only_committed_since(checkout, name, before)
    return git.passed_through(checkout, name, before)


def _copy(path: Path, copy: Path) -> None:
    try:
        seen = path.lstat()
        if not stat.S_ISREG(seen.st_mode) or seen.st_size > LIMIT:
            return
        stamp = (seen.st_mtime_ns, seen.st_size)
        if copy.exists() and (copy.stat().st_mtime_ns, copy.stat().st_size) == stamp:
            return
        data = path.read_bytes()
    except OSError:  # gone meanwhile, or unreadable: the store's scan tells of that
        return
    files.write_own(copy, data, sync=False)
    os.utime(copy, ns=(seen.st_atime_ns, seen.st_mtime_ns))


def place_of(project: Project) -> Path:
    """Where a project's copies lie."""
    return project.state / "keepsakes"


def facts_below(top: Path) -> Iterator[Path]:
    """The names of what may be a fact below a directory."""
    for directory, _, names in os.walk(top):
        for name in names:
            if name.endswith(".md") and not name.startswith(".") and name != "MEMORY.md":
                yield Path(directory, name).relative_to(top)
