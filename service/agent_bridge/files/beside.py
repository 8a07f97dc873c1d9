"""Files that lie beside a target while it is replaced, and what their names tell after a kill.

`.<name>.<8 hex>.agent-bridge.tmp` has only ever held our bytes, perhaps not all of them.
`.<name>.<before>-<after>.<8 hex>.agent-bridge.tmp` lies beside a target about to be swapped: it held all of
the new bytes first, and holds what was at the target afterwards. `before` and `after` are the first 16 hex
digits of the SHA-256 of the bytes read and of those brought, so that `recovery` can tell whose they are;
`after` is `deleted` where the target is removed. Of a long name only the beginning and a hash is used.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from agent_bridge.files import kernel
from agent_bridge.files.kernel import TEMPORARY_SUFFIX
from agent_bridge.files.trouble import writing

DELETED = "deleted"
LONGEST_NAME_KEPT = 100
"""Bytes of a target's name that its temporary names hold in full; 255 is the limit of a whole name."""

_MARK_LENGTH = 16


class Marks(NamedTuple):
    """What a name beside a target tells: the target (see `stem`), its bytes before and after."""

    stem: str
    before: str
    after: str


def write_beside(
    real: Path, data: bytes, *, mode: int, sync: bool, like: os.stat_result | None = None
) -> Path:
    """A temporary file beside `real` that holds `data`; nothing is left behind if that fails.

    `like`: the status of `real`, if its owner and extended attributes are to be kept too.
    """
    temporary = real.with_name(f".{stem(real.name)}.{_random()}{TEMPORARY_SUFFIX}")
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    descriptor = os.open(temporary, flags, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as file:
            if like is not None:
                _keep_owner(descriptor, like)
                kernel.copy_attributes(real, descriptor)
            file.write(data)
            file.flush()
            if stat.S_IMODE(os.fstat(descriptor).st_mode) != mode:
                os.fchmod(descriptor, mode)
            if sync:
                os.fsync(descriptor)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    return temporary


def sync_all(paths: Iterable[Path]) -> None:
    """Let files and their directories survive a power cut; one that is gone by now is left out."""
    written = list(paths)
    for path in (*written, *dict.fromkeys(path.parent for path in written)):
        try:
            descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            continue
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def write_own(path: Path, data: bytes, *, mode: int = 0o600, sync: bool = True) -> None:
    """Replace a file of ours (state, cache) in one step; a missing directory is made private.

    `sync`: survive a power cut. A symlink is followed. Raises AgentBridgeError with path and reason.
    """
    real = Path(os.path.realpath(path))
    with writing(path):
        real.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        temporary = write_beside(real, data, mode=mode, sync=sync)
        try:
            temporary.replace(real)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise


def keep(aside: Path, real: Path, keep_dir: Path) -> Path:
    """Move bytes of the user's that no longer have a place to `keep_dir`; the path there."""
    kept = keep_dir / f"{stem(real.name)}.{_random()}.kept"
    write_own(kept, aside.read_bytes())
    aside.unlink()
    return kept


def swap_name(real: Path, before: bytes, after: bytes | None) -> Path:
    """A name beside `real` for bytes that change places with it. `after` None: it is deleted."""
    marks = f"{mark(before)}-{DELETED if after is None else mark(after)}"
    return real.with_name(f".{stem(real.name)}.{marks}.{_random()}{TEMPORARY_SUFFIX}")


def is_temporary(name: str) -> bool:
    """Whether a file's name is one of those that this module gives."""
    return name.startswith(".") and name.endswith(TEMPORARY_SUFFIX)


def marks_of(name: str) -> Marks | None:
    """What the name of a temporary file tells; None for one that only ever held our bytes."""
    parts = name[1 : -len(TEMPORARY_SUFFIX)].rsplit(".", 2)
    if len(parts) != 3:
        return None
    before, dash, after = parts[1].partition("-")
    if not dash or len(before) != _MARK_LENGTH or (len(after) != _MARK_LENGTH and after != DELETED):
        return None
    return Marks(parts[0], before, after)


def mark(data: bytes) -> str:
    """What stands for some bytes in a name."""
    import hashlib  # late: reading needs none

    return hashlib.sha256(data).hexdigest()[:_MARK_LENGTH]


def stem(name: str) -> str:
    """What stands for a target's name in a temporary one: itself, or its beginning and a hash."""
    encoded = os.fsencode(name)
    if len(encoded) <= LONGEST_NAME_KEPT:
        return name
    return f"{encoded[:LONGEST_NAME_KEPT].decode(errors='ignore')}~{mark(encoded)}"


def _keep_owner(descriptor: int, like: os.stat_result) -> None:
    info = os.fstat(descriptor)
    if (info.st_uid, info.st_gid) != (like.st_uid, like.st_gid):
        os.fchown(descriptor, like.st_uid, like.st_gid)


def _random() -> str:
    return os.urandom(4).hex()
