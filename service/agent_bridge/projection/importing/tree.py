"""The files of a source, read without changing or following anything: no link is followed, no FIFO opened.

What can't be read is a finding (`Left`), never an error: the other files go on.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from agent_bridge import files
from agent_bridge.errors import AgentBridgeError, MarkerError, RefusedError
from agent_bridge.harnesses import managed_block
from agent_bridge.memory.fact import MAX_BYTES, FactProblem, decode
from agent_bridge.projection.importing.items import Left

MAX_DEPTH = 24
"""Directories within one another."""

MAX_ENTRIES = 200_000
"""Names in a source; a directory with more is no memory but somebody's disk."""

_UNSHOWABLE = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")
_SKIPPED = frozenset({"node_modules", "__pycache__"})


@dataclass(frozen=True, slots=True)
class Tree:
    """A directory, or a single file as the only one of its directory.

    `names` are the paths of its regular files below `root`, sorted, with `/`; `left` is what else is there.
    """

    root: Path
    names: tuple[str, ...]
    left: tuple[Left, ...] = ()

    def text(self, name: str) -> str:
        """A file's text with its line ends, without a byte order mark. Raises FactProblem."""
        return decode(self.data(name)).removeprefix("\ufeff")

    def data(self, name: str) -> bytes:
        """A file's bytes, at most 1 MiB, without a block of ours. Raises FactProblem.

        The facts in it are remembered already, and in the user's own files there are private ones.
        """
        data = _bytes(self.root / name, self.root, MAX_BYTES)
        try:
            return managed_block.remove(data)
        except MarkerError:
            reason = "it holds markers of agent-bridge that don't pair"
            raise FactProblem(reason, "Repair or remove them.") from None

    def without(self, places: Iterable[Path], why: str) -> Tree:
        """The same without what lies below these places, each of which is told as left."""
        inside = [place for place in places if place.is_relative_to(self.root) and place != self.root]
        called = {place: place.relative_to(self.root).as_posix() for place in inside}
        told = [Left(shown(name), why) for place, name in called.items() if place.is_dir()]
        tops = tuple(f"{name}/" for name in called.values())
        names = tuple(name for name in self.names if not name.startswith(tops))
        return replace(self, names=names, left=(*self.left, *told)) if names != self.names else self

    def modified(self, name: str) -> float:
        """When the file was written, in seconds since 1970; 0 where it is gone."""
        try:
            return (self.root / name).lstat().st_mtime
        except OSError:
            return 0.0


def single_file(path: Path) -> Tree:
    """A tree of one file."""
    return Tree(path.parent, (path.name,))


def walk(root: Path, *, hidden: frozenset[str] = frozenset()) -> Tree:
    """All files below `root`; of names that begin with a dot only those in `hidden` are looked at.

    Raises RefusedError for a directory with too many files.
    """
    names: list[str] = []
    left: list[Left] = []
    for count, (name, found) in enumerate(_entries(root, hidden)):
        if count >= MAX_ENTRIES:
            raise RefusedError(
                f"There are more than {MAX_ENTRIES:,} files here", path=root, remedy="Name a directory in it."
            )
        if found is None:
            names.append(name)
        else:
            left.append(found)
    return Tree(root, tuple(sorted(names)), tuple(sorted(left, key=lambda one: one.origin)))


def read_bounded(path: Path, within: Path, limit: int) -> bytes:
    """A file's bytes, at most `limit`; no bytes where there is none. Raises FactProblem."""
    return _bytes(path, within, limit)


def shown(path: str) -> str:
    """A path as it can be printed: one line, valid Unicode."""
    return _UNSHOWABLE.sub(lambda match: f"\\u{ord(match[0]):04x}", path)


def _entries(root: Path, hidden: frozenset[str]) -> Iterator[tuple[str, Left | None]]:
    pending = [("", root, 0)]
    while pending:
        prefix, directory, depth = pending.pop()
        try:
            listed = sorted(os.scandir(directory), key=lambda entry: entry.name)
        except OSError as error:
            name = shown(prefix.rstrip("/") or ".")
            yield name, Left(name, f"it can't be read ({error.strerror})", refused=True)
            continue
        for entry in listed:
            name = prefix + entry.name
            if (entry.name.startswith(".") and entry.name not in hidden) or entry.name in _SKIPPED:
                continue
            if entry.is_symlink():
                if (why := _why_not_followed(root, Path(entry.path))) is not None:
                    yield name, Left(shown(name), why, refused=True)
            elif entry.is_dir(follow_symlinks=False):
                if depth < MAX_DEPTH:
                    pending.append((f"{name}/", Path(entry.path), depth + 1))
                else:
                    why = f"it lies deeper than {MAX_DEPTH} directories"
                    yield name, Left(shown(name), why, refused=True)
            elif not entry.is_file(follow_symlinks=False):
                yield name, Left(shown(name), "it is no regular file", refused=True)
            elif _UNSHOWABLE.search(name):
                yield name, Left(shown(name), "its name holds characters that can't be shown", refused=True)
            else:
                yield name, None


def _why_not_followed(root: Path, link: Path) -> str | None:
    """A link to something within the source adds nothing: it is met at its own place."""
    try:
        real = Path(os.path.realpath(link, strict=True))
    except OSError:
        return "it is a symlink that leads nowhere"
    return None if real.is_relative_to(root) else f"it is a symlink that leads out of {root}"


def _bytes(path: Path, within: Path, limit: int) -> bytes:
    try:
        if not stat.S_ISREG(path.lstat().st_mode):
            raise FactProblem("it is no regular file", "Put the file itself there.")
        return files.read_image(path, within=within, limit=limit).data
    except FileNotFoundError:
        raise FactProblem("it is gone", "Run the import again.") from None
    except OSError as error:
        raise FactProblem(f"it can't be read ({error.strerror})", "Check its rights.") from error
    except AgentBridgeError as error:
        too_large = "it is larger than 1 MiB" if limit == MAX_BYTES and "bytes" in error.title else ""
        raise FactProblem(too_large or error.sentence(), error.remedy or "Look at the file.") from error
