"""Overwriting a file that must stay the same one (hard links, foreign owner, mount point), repairably.

Before the first byte is touched, old and new bytes are made durable in a journal, the file
`<keep_dir>/inplace-<8 hex>.journal`: a line of JSON `{"path", "before", "after", "sha256"}` (lengths in
bytes; hash of all that follows), the old bytes, the new bytes. It goes when the write is done. `recover`
finds it after a kill, and puts the old bytes back if what it finds is a mixture of the two, nothing else.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
from pathlib import Path
from typing import NamedTuple

from agent_bridge.errors import AgentBridgeError, ConflictError
from agent_bridge.files import kernel


def write(real: Path, before: bytes, after: bytes, keep_dir: Path) -> None:
    """Overwrite `real`, which holds `before`, with `after`.

    Raises ConflictError if it holds anything else or somebody has it open for writing, OSError if it can't
    be written; in both cases it is as it was. If even that can't be restored (no room on a copy-on-write
    file system), AgentBridgeError names the journal, and `recover` does it later.
    """
    conflict = ConflictError(
        "This file changed while agent-bridge was about to write it",
        path=real,
        detail="Nothing was written.",
        remedy="Try again.",
    )
    if kernel.being_written(real):
        raise conflict
    descriptor = os.open(real, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
    with os.fdopen(descriptor, "r+b", buffering=0) as file:
        journal = _record(real, before, after, keep_dir)
        if file.read(len(before) + 1) != before:
            journal.unlink()
            raise conflict
        try:
            _overwrite(descriptor, before, after)
        except OSError as error:
            try:
                _restore(descriptor, before)
            except OSError:
                raise AgentBridgeError(
                    "This file could be written only in part",
                    path=real,
                    detail=f"{error.strerror}. Its former bytes are safe in {journal}.",
                    remedy="Make room, then run `agent-bridge sync`: it puts them back.",
                ) from error
            journal.unlink()
            raise
        journal.unlink()


def recover(keep_dir: Path) -> list[str]:
    """Repair what interrupted writes left half done; a plain sentence for each file that needed it."""
    done = []
    for path in sorted(keep_dir.glob("inplace-*.journal")):
        try:
            done += _recover_one(path)
        except OSError as error:
            done.append(f"{path}: an interrupted write can't be repaired yet: {error}")
    return done


class _Journal(NamedTuple):
    real: Path
    before: bytes
    after: bytes


def _record(real: Path, before: bytes, after: bytes, keep_dir: Path) -> Path:
    keep_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
    path = keep_dir / f"inplace-{os.urandom(4).hex()}.journal"
    header = {
        "path": str(real),
        "before": len(before),
        "after": len(after),
        "sha256": _hash(before + after),
    }
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(json.dumps(header).encode() + b"\n" + before + after)
            file.flush()
            os.fsync(descriptor)
        _sync_directory(keep_dir)
    except BaseException:
        path.unlink(missing_ok=True)
        raise
    return path


def _overwrite(descriptor: int, before: bytes, after: bytes) -> None:
    # What makes the file longer comes first: if there is no room for it, cutting it off undoes everything.
    if len(after) > len(before):
        _write_at(descriptor, after[len(before) :], len(before))
        os.fsync(descriptor)  # some file systems say only now that there is no room
    _write_at(descriptor, after[: len(before)], 0)
    os.ftruncate(descriptor, len(after))
    os.fsync(descriptor)


def _restore(descriptor: int, before: bytes) -> None:
    os.lseek(descriptor, 0, os.SEEK_SET)
    os.ftruncate(descriptor, min(os.fstat(descriptor).st_size, len(before)))
    if os.pread(descriptor, len(before) + 1, 0) != before:
        _write_at(descriptor, before, 0)
    os.fsync(descriptor)


def _write_at(descriptor: int, data: bytes, offset: int) -> None:
    view = memoryview(data)
    while view:
        written = os.pwrite(descriptor, view, offset)
        view, offset = view[written:], offset + written


def _recover_one(path: Path) -> list[str]:
    journal = _parse(path.read_bytes())
    if journal is None:
        path.unlink()  # never finished: then its file wasn't touched yet
        return []
    try:
        descriptor = os.open(journal.real, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        if error.errno not in (errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.EISDIR, errno.ENXIO):
            raise
        path.unlink()  # removed or replaced by something else: somebody's later word
        return []
    with os.fdopen(descriptor, "r+b", buffering=0):
        longest = max(len(journal.before), len(journal.after))
        current = os.pread(descriptor, longest + 1, 0)
        if current in (journal.before, journal.after):
            path.unlink()
            return []
        if _is_mixture(current, journal.before, journal.after):
            _restore(descriptor, journal.before)
            path.unlink()
            return [f"{journal.real}: an interrupted write is undone."]
    kept = path.with_suffix(".kept")
    path.rename(kept)
    return [
        f"{journal.real}: changed by others after an interrupted write; the bytes before it are in {kept}."
    ]


def _parse(data: bytes) -> _Journal | None:
    line, _, rest = data.partition(b"\n")
    with contextlib.suppress(ValueError, KeyError, TypeError, AttributeError):
        header = json.loads(line)
        if _hash(rest) == header["sha256"] and len(rest) == header["before"] + header["after"]:
            return _Journal(Path(header["path"]), rest[: header["before"]], rest[header["before"] :])
    return None


def _is_mixture(current: bytes, before: bytes, after: bytes) -> bool:
    """Whether each byte is the old or the new one of its place: what a torn write leaves, and no editor."""
    if not min(len(before), len(after)) <= len(current) <= max(len(before), len(after)):
        return False
    return all(byte in (*before[at : at + 1], *after[at : at + 1]) for at, byte in enumerate(current))


def _hash(data: bytes) -> str:
    import hashlib  # late: only the few files that are written in place need it

    return hashlib.sha256(data).hexdigest()


def _sync_directory(directory: Path) -> None:
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
