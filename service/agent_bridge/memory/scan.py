"""Walk a store's directory and read what changed. Knows files, not what they mean for anybody.

Nothing but regular files below the store is ever opened. A file is known by its signature (see below);
one whose time is within 50 ms of the moment it was read is read again next time, since a second change
within the same tick of the file system's clock, of the same size, would look like none.
"""

from __future__ import annotations

import hashlib
import os
import re
import stat
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from io import FileIO
from pathlib import Path

from agent_bridge.memory.documents import DOCUMENTS, Document, parse_document
from agent_bridge.memory.fact import (
    MAX_BYTES,
    EmptyFact,
    Fact,
    FactProblem,
    OrderKey,
    is_fact_name,
    order_key,
    parse_fact,
)
from agent_bridge.memory.snapshot import Problem

MAX_DEPTH = 16
"""Directories within one another below the store."""

RACY_NS = 50_000_000
"""Nanoseconds between a file's time and its reading within which a change could go unseen."""

_UNSHOWABLE = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")

Signature = tuple[int, int, int, int]
"""mtime_ns, size, inode, ctime_ns."""


@dataclass(slots=True)
class Known:
    """What is known of one file: fact, document, problem, or nothing (nothing stands in it).

    `racy`: it may have changed unseen and is read again by the next scan.
    """

    signature: Signature
    fact: Fact | None = None
    document: Document | None = None
    problem: Problem | None = None
    racy: bool = False
    digest: str = ""
    order: OrderKey | None = None

    def says_the_same(self, other: Known) -> bool:
        """Whether both stand for the same content or the same problem."""
        return self.digest == other.digest and self.problem == other.problem


def is_same(before: Known | None, now: Known | None) -> bool:
    """Whether nothing changed between two looks at a file; None: it wasn't there."""
    return now is before or (now is not None and before is not None and now.says_the_same(before))


@dataclass(frozen=True, slots=True)
class Listing:
    """One walk: candidates (path below the store -> signature; real path where a link led), problems."""

    found: dict[str, Signature]
    links: dict[str, str]
    problems: tuple[Problem, ...]


def walk(root: str, trusted: Mapping[str, Known] | None = None) -> Listing:
    """All files below `root` (a real path) that can be facts or documents. A missing root is an empty one.

    `trusted`: a file of these that is still the same one is taken to be as known, which saves a look at it.
    """
    trusted = trusted or {}
    found: dict[str, Signature] = {}
    symlinks: list[tuple[str, str]] = []
    problems: list[Problem] = []
    pending = [("", root, 0)]
    while pending:
        prefix, directory, depth = pending.pop()
        try:
            with os.scandir(directory) as entries:
                for entry in entries:
                    name = entry.name
                    if name[0] == ".":
                        continue
                    if entry.is_symlink():
                        symlinks.append((prefix + name, entry.path))
                    elif entry.is_dir(follow_symlinks=False):
                        if is_fact_name(name):
                            problems.append(_misnamed(prefix + name))
                        if depth >= MAX_DEPTH:
                            problems.append(_too_deep(prefix + name))
                        else:
                            pending.append((f"{prefix}{name}/", entry.path, depth + 1))
                    elif is_fact_name(name):
                        known = trusted.get(prefix + name)
                        _take(entry, prefix + name, known, found, problems)
        except FileNotFoundError:
            continue  # removed while we walked, or no store yet
        except OSError as error:
            problems.append(_unreadable(prefix.rstrip("/") or ".", error))
    links: dict[str, str] = {}
    for path, link in symlinks:
        _follow(root, path, link, found, links, problems)
    return Listing(found, links, tuple(problems))


def read_all(place: Path) -> list[Known]:
    """What the files of the store at `place` hold, read afresh; nothing is written, not even a cache."""
    root = os.path.realpath(place)
    listing = walk(root)
    found = (read(root, path, listing.links.get(path), None) for path in sorted(listing.found))
    return [one for one in found if one is not None]


def _take(
    entry: os.DirEntry[str],
    path: str,
    trusted: Known | None,
    found: dict[str, Signature],
    problems: list[Problem],
) -> None:
    if trusted is not None and trusted.signature[2] == entry.inode():
        found[path] = trusted.signature
        return
    try:
        info = entry.stat(follow_symlinks=False)
    except FileNotFoundError:
        return
    if stat.S_ISREG(info.st_mode):
        found[path] = (info.st_mtime_ns, info.st_size, info.st_ino, info.st_ctime_ns)
    else:
        problems.append(_special(path, info.st_mode))


def _follow(
    root: str,
    path: str,
    link: str,
    found: dict[str, Signature],
    links: dict[str, str],
    problems: list[Problem],
) -> None:
    """A link to a fact that has its own place in the store adds nothing; one that leads out is reported."""
    try:
        real = os.path.realpath(link, strict=True)
        info = os.lstat(real)
    except OSError:
        if is_fact_name(path.rsplit("/", 1)[-1]):
            problems.append(Problem(path, "it is a symlink that leads nowhere", "Remove the link."))
        return
    directory = stat.S_ISDIR(info.st_mode)
    if not directory and not is_fact_name(path.rsplit("/", 1)[-1]):
        return
    if os.path.commonpath((root, real)) != root:
        problems.append(
            Problem(
                path, "it is a symlink that leads out of the store", "Put the file itself into the store."
            )
        )
        return
    if directory or os.path.relpath(real, root) in found:
        return
    if not stat.S_ISREG(info.st_mode):
        problems.append(_special(path, info.st_mode))
        return
    found[path] = (info.st_mtime_ns, info.st_size, info.st_ino, info.st_ctime_ns)
    links[path] = real


def read(root: str, path: str, real: str | None, before: Known | None) -> Known | None:
    """Read one candidate; None where it is gone. `before` saves parsing where the bytes are the same."""
    target = real or f"{root}/{path}"
    signature: Signature = (0, 0, 0, 0)
    try:
        if _UNSHOWABLE.search(path):
            raise FactProblem("its name holds characters that can't be shown", "Rename it.")
        started = time.time_ns()
        data, info = _bytes_of(target)
        signature = (info.st_mtime_ns, info.st_size, info.st_ino, info.st_ctime_ns)
        racy = abs(started - max(info.st_mtime_ns, info.st_ctime_ns)) < RACY_NS
        digest = hashlib.sha256(data).hexdigest()
        if before is not None and before.digest == digest:
            return replace(before, signature=signature, racy=racy)
        return _parsed(path, data, Known(signature, racy=racy, digest=digest))
    except FileNotFoundError:
        return None
    except FactProblem as error:
        return Known(signature, problem=Problem(_shown(path), error.reason, error.remedy), racy=True)
    except OSError as error:
        return Known(signature, problem=_unreadable(path, error), racy=True)


def is_plain(path: Path) -> bool:
    """Whether a regular file, or nothing, is at `path`: what may be read without a walk."""
    try:
        return stat.S_ISREG(path.lstat().st_mode)
    except FileNotFoundError:
        return True
    except OSError:
        return False


def _parsed(path: str, data: bytes, known: Known) -> Known:
    try:
        if path in DOCUMENTS:
            known.document = parse_document(path, data)
        else:
            known.fact = parse_fact(path, data)
            known.order = order_key(known.fact)
    except EmptyFact:
        pass  # nothing stands in it: neither a fact nor a problem
    except FactProblem as error:
        known.problem = Problem(path, error.reason, error.remedy)
    return known


def _bytes_of(path: str) -> tuple[bytes, os.stat_result]:
    """A regular file's bytes. It was one when it was listed; what it became since is looked at first."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
    with FileIO(descriptor, "rb") as file:
        info = os.fstat(descriptor)
        if not stat.S_ISREG(info.st_mode):
            raise FactProblem(f"it is {_kind(info.st_mode)}", "Move it out of the store.")
        if info.st_size > MAX_BYTES:
            raise FactProblem("it is larger than 1 MiB", "Split it, or move it out of the store.")
        return b"".join(_chunks(file)), info


def _chunks(file: FileIO) -> Iterator[bytes]:
    left = MAX_BYTES + 1
    while left > 0 and (chunk := file.read(left)):
        left -= len(chunk)
        yield chunk


def _kind(mode: int) -> str:
    names = {stat.S_IFIFO: "a FIFO", stat.S_IFSOCK: "a socket", stat.S_IFDIR: "a directory"}
    return names.get(stat.S_IFMT(mode), "a device")


def _special(path: str, mode: int) -> Problem:
    return Problem(_shown(path), f"it is {_kind(mode)}, not a file", "Move it out of the store.")


def _misnamed(path: str) -> Problem:
    reason = "it is a directory with the name of a fact; the facts in it are read"
    return Problem(_shown(path), reason, "Give it a name without .md.")


def _too_deep(path: str) -> Problem:
    return Problem(_shown(path), f"it lies deeper than {MAX_DEPTH} directories", "Move it up.")


def _unreadable(path: str, error: OSError) -> Problem:
    return Problem(_shown(path), f"it can't be read ({os.strerror(error.errno or 0)})", "Check its rights.")


def _shown(path: str) -> str:
    """A path as it can be printed: one line, valid Unicode."""
    return _UNSHOWABLE.sub(lambda match: f"\\u{ord(match[0]):04x}", path)
