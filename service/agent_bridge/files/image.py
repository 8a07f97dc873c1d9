"""A file as it was read: its bytes, and what must stay true of it when it is replaced."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path
from typing import NamedTuple

from agent_bridge.errors import ConflictError, RefusedError

DEFAULT_LIMIT = 16 * 1024 * 1024
"""Bytes of the largest file that is read."""

_READ_TRIES = 5
_OPEN_FOR_READING = os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NOCTTY


class FileImage(NamedTuple):  # as fast to import as it is to make, which a dataclass isn't
    """A file as it was read. A missing one has `existed` False and no bytes.

    `path` is the name asked for, `real` the file behind it (symlinks followed), `mode` the permission bits,
    `inode` (device, inode), (0, 0) when missing.
    """

    path: Path
    real: Path
    data: bytes
    mode: int
    nlink: int
    inode: tuple[int, int]
    existed: bool


def read_image(
    path: Path, *, within: Path | None = None, limit: int = DEFAULT_LIMIT, plain: bool = False
) -> FileImage:
    """Read a regular file whole, through symlinks.

    `within`: the real file must lie below this directory. `plain`: the name itself must be no symlink, for a
    file that is ours, which could lead to one that isn't. `limit`: bytes. Raises RefusedError for a dangling
    symlink, a loop, a symlink that leads out, a directory, FIFO, socket or device (none is opened), a file
    over the limit and where rights are missing; ConflictError for one that changes all the time.
    """
    try:
        for _ in range(_READ_TRIES):
            if plain and path.is_symlink():
                raise RefusedError(
                    "This is a symlink, not a file of its own",
                    path=path,
                    detail=f"It leads to {path.readlink()}, which would be overwritten.",
                    remedy="Remove it.",
                )
            real = _real(path)
            if real is None:
                return _missing(path, within)
            _check_within(path, real, within)
            image = _read_once(path, real, limit)
            if image is not None:
                return image
    except FileNotFoundError:
        return _missing(path, within)
    except OSError as error:
        raise _unreadable(path, error) from error
    raise ConflictError("This file changes all the time", path=path, remedy="Try again when it is at rest.")


def holds(path: Path, data: bytes) -> bool:
    """Whether `path` is a regular file, no symlink, with exactly these bytes."""
    descriptor = os.open(path, _OPEN_FOR_READING)
    with os.fdopen(descriptor, "rb") as file:
        return stat.S_ISREG(os.fstat(descriptor).st_mode) and file.read(len(data) + 1) == data


def there(path: Path) -> bool:
    """Whether the name exists, be it a dangling symlink. Unlike os.path.lexists it swallows no errors."""
    try:
        path.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    return True


def _real(path: Path) -> Path | None:
    """The real path of an existing file; None if the name doesn't exist."""
    if not there(path):
        return None
    try:
        return Path(os.path.realpath(path, strict=True))
    except FileNotFoundError:
        if not path.is_symlink():
            return None
        raise RefusedError(
            "This symlink leads nowhere",
            path=path,
            detail=f"It points to {path.readlink()}.",
            remedy="Remove it, or create what it points to.",
        ) from None


def _missing(path: Path, within: Path | None) -> FileImage:
    real = Path(os.path.realpath(path.parent)) / path.name
    _check_within(path, real, within)
    return FileImage(path, real, b"", 0, 0, (0, 0), existed=False)


def _check_within(path: Path, real: Path, within: Path | None) -> None:
    if within is not None and not real.is_relative_to(os.path.realpath(within)):
        raise RefusedError(
            "This path leads out of where it should stay",
            path=path,
            detail=f"It leads to {real}, which isn't below {within}.",
            remedy="Put a file in the place of the symlink if agent-bridge shall use it.",
        )


def _read_once(path: Path, real: Path, limit: int) -> FileImage | None:
    """The image, or None if the file changed while it was read."""
    _check_regular(path, real.stat())  # before opening: opening a FIFO or a device can have effects
    descriptor = os.open(real, _OPEN_FOR_READING)
    with os.fdopen(descriptor, "rb") as file:
        before = os.fstat(descriptor)
        _check_regular(path, before)
        if before.st_size > limit:
            raise RefusedError(
                f"This file has {before.st_size:,} bytes; more than {limit:,} aren't read", path=path
            )
        data = file.read(before.st_size + 1)
        after = os.fstat(descriptor)
    if (before.st_size, before.st_mtime_ns, len(data)) != (after.st_size, after.st_mtime_ns, after.st_size):
        return None
    mode = stat.S_IMODE(after.st_mode)
    return FileImage(path, real, data, mode, after.st_nlink, (after.st_dev, after.st_ino), existed=True)


def _check_regular(path: Path, info: os.stat_result) -> None:
    if not stat.S_ISREG(info.st_mode):
        kinds = {stat.S_IFDIR: "a directory", stat.S_IFIFO: "a FIFO", stat.S_IFSOCK: "a socket"}
        kind = kinds.get(stat.S_IFMT(info.st_mode), "a device")
        raise RefusedError(f"This is {kind}, not a file", path=path, remedy="Move it out of the way.")


def _unreadable(path: Path, error: OSError) -> RefusedError:
    if error.errno == errno.ELOOP:
        return RefusedError("This symlink leads back to itself", path=path, remedy="Remove it.")
    if isinstance(error, PermissionError):
        return RefusedError(
            "This file can't be read for lack of rights",
            path=path,
            detail=str(error),
            remedy="Check its rights and those of its directory.",
        )
    return RefusedError("This file can't be read", path=path, detail=str(error))
