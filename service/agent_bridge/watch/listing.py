"""What a small directory holds now, to be compared with what was known: the truth behind the hints."""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from agent_bridge.watch.events import Interest

Identity = tuple[int, int]
"""Device and inode: what a path leads to, however it is called."""


class Entry(NamedTuple):  # a listing of a large store makes thousands, and a dataclass takes twice as long
    """One name in a directory; two entries are equal when nothing that matters changed.

    `mtime_ns`, `size` and `inode` are those of what the name leads to (of the link itself where it dangles);
    for a directory only `inode` is kept. `ctime_ns` tells a mode change, and a save that put the time back.
    `silent` marks a file that can change without an event in this directory: a link, or one of several names.
    """

    mtime_ns: int
    ctime_ns: int
    size: int
    inode: int
    is_directory: bool
    silent: bool = False


Listing = Mapping[str, Entry]


def identity(path: Path) -> Identity | None:
    """Where `path` leads, through every link on the way; None when it leads to no directory."""
    try:
        found = os.stat(path)  # noqa: PTH116 (a tenth of the cost of Path.stat, once a second for each watch)
    except OSError:
        return None
    return (found.st_dev, found.st_ino) if stat.S_ISDIR(found.st_mode) else None


def list_directory(path: Path, interest: Interest) -> Listing | None:
    """The entries of `path` that matter; None when it is gone or can't be read."""
    entries: dict[str, Entry] = {}
    try:
        with os.scandir(path) as found:
            for item in found:
                if interest.wants(item.name):
                    entry = _entry(item)
                    if entry is not None:
                        entries[item.name] = entry
    except OSError:
        return None
    return entries


def changed_names(before: Listing | None, after: Listing | None) -> frozenset[str]:
    """Names that came, went or differ. A directory that is gone (None) holds nothing."""
    old = before or {}
    new = after or {}
    return frozenset(name for name in old.keys() | new.keys() if old.get(name) != new.get(name))


def may_be_silent(name: str, before: Listing | None, after: Listing | None) -> bool:
    """Whether `name` can have changed without an event, which then says nothing of the watch."""
    return any(
        listing is not None and name in listing and listing[name].silent for listing in (before, after)
    )


def _entry(item: os.DirEntry[str]) -> Entry | None:
    try:
        link = item.is_symlink()
        try:
            found = item.stat()
        except OSError:
            found = item.stat(follow_symlinks=False)
    except OSError:
        return None
    if stat.S_ISDIR(found.st_mode):
        return Entry(0, 0, 0, found.st_ino, is_directory=True, silent=link)
    return Entry(
        found.st_mtime_ns,
        found.st_ctime_ns,
        found.st_size,
        found.st_ino,
        is_directory=False,
        silent=link or found.st_nlink > 1,
    )
