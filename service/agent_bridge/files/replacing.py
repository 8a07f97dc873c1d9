"""Replacing and deleting files that others write too.

- *By exchange* (Linux). The new bytes are written beside the target, made durable, and swapped with it in
  one step. What came out is then looked at: if it isn't what was read, or somebody still has it open for
  writing, it is swapped back. So a save that lands between reading and replacing is never lost.
- *By rename* where the system can't exchange: compared right before, with a window of microseconds.
- *In place* where the file must stay the same one: it has several hard links, an owner that a new file
  couldn't have, or is a mount point. Old and new bytes are kept first (see `inplace`); a window of
  microseconds remains here too.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
import time
from collections.abc import Iterator
from pathlib import Path

from agent_bridge.errors import ConflictError, RefusedError
from agent_bridge.files import inplace, kernel
from agent_bridge.files.beside import keep, swap_name, write_beside
from agent_bridge.files.image import FileImage, holds, there
from agent_bridge.files.trouble import conflict, writing

_PATIENCE_S = 1.0
"""How long a save that is under way on a file that we have swapped may take to end."""


def replace(image: FileImage, data: bytes, *, mode: int = 0o644, keep_dir: Path, sync: bool = True) -> bool:
    """Put `data` where `image` was read; False (and nothing written) if it holds that already.

    `mode`: permission bits of a file that is created, whatever the umask; an existing one keeps its own, with
    owner, extended attributes and symlink. Missing parent directories are made (`missing_directories` tells
    which). `keep_dir`: private directory for bytes that must survive a kill. `sync`: survive a power cut too.
    Raises ConflictError if the file isn't as read any more (nothing is written), RefusedError if it is
    read-only or its directory can't be written; after any error the target is as it was.
    """
    if image.existed and image.data == data:
        return False
    with _vanishing(image.path):
        if not image.existed:
            _create(image, data, mode=mode, sync=sync)
            return True
        _check_unchanged(image)
        info = image.real.lstat()
        _check_writable(image, info)
        if info.st_nlink > 1 or not _owner_can_be_kept(info):
            inplace.write(image.real, image.data, data, keep_dir)
        else:
            _swap(image, data, info, keep_dir, sync=sync)
    return True


def delete(image: FileImage, *, keep_dir: Path | None = None) -> bool:
    """Remove the file that `image` was read from, if it is still as read; False if it is gone already.

    Raises ConflictError if it has changed (it stays), RefusedError for a symlink. `keep_dir` takes bytes
    that can't be put back because a new file has the name by then; without it they stay beside the file
    until `recover` finds them.
    """
    if not image.existed or not there(image.real):
        return False
    if image.path.is_symlink():
        raise RefusedError("This is a symlink, and what it leads to isn't ours to remove", path=image.path)
    with _vanishing(image.path):
        _check_unchanged(image)
        aside = swap_name(image.real, image.data, None)
        image.real.rename(aside)
        if _is_at_rest(aside, image.data, max_links=None):
            aside.unlink()
            return True
        put_back(aside, image.real, keep_dir)
        raise conflict(image.path)


def missing_directories(path: Path) -> tuple[Path, ...]:
    """The directories that creating `path` would make, outermost first."""
    missing: list[Path] = []
    for parent in path.parents:
        if there(parent):
            break
        missing.append(parent)
    return tuple(reversed(missing))


def put_back(aside: Path, real: Path, keep_dir: Path | None) -> None:
    """Give bytes their name again; if something else has it by now, keep them."""
    with contextlib.suppress(FileExistsError):
        if kernel.rename_new(aside, real):
            return
    if keep_dir is not None:
        keep(aside, real, keep_dir)


# Creating


def _create(image: FileImage, data: bytes, *, mode: int, sync: bool) -> None:
    if there(image.real):
        raise conflict(image.path)
    made = missing_directories(image.real)
    try:
        for directory in made:
            directory.mkdir(exist_ok=True)
            directory.chmod(0o700 | (mode & 0o044) | (mode & 0o044) >> 2)  # as open to others as the file
        temporary = write_beside(image.real, data, mode=mode, sync=sync)
        try:
            if not kernel.rename_new(temporary, image.real):
                _create_directly(image.real, data, mode)
        except FileExistsError:
            raise conflict(image.path) from None
        finally:
            temporary.unlink(missing_ok=True)
    except BaseException:
        for directory in reversed(made):
            with contextlib.suppress(OSError):  # never made, or somebody has put something there
                directory.rmdir()
        raise


def _create_directly(real: Path, data: bytes, mode: int) -> None:
    """For file systems that can neither rename without replacing nor link (FAT, some network ones)."""
    descriptor = os.open(real, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(descriptor)
    except BaseException:
        real.unlink(missing_ok=True)
        raise


# Swapping


def _swap(image: FileImage, data: bytes, info: os.stat_result, keep_dir: Path, *, sync: bool) -> None:
    aside = swap_name(image.real, image.data, data)
    temporary = write_beside(image.real, data, mode=stat.S_IMODE(info.st_mode), sync=sync, like=info)
    try:
        temporary.rename(aside)
        exchanged = _exchange(aside, image)
    except (OSError, ConflictError) as error:
        # Only these say that nothing was swapped. After an interruption nothing may be removed here.
        for path in (temporary, aside):
            path.unlink(missing_ok=True)
        if isinstance(error, OSError) and error.errno in (errno.EBUSY, errno.EXDEV):
            inplace.write(image.real, image.data, data, keep_dir)  # a single file can be a mount point
            return
        raise
    if not exchanged:
        return
    if _is_at_rest(aside, image.data, max_links=1):
        aside.unlink()
        return
    _swap_back(image, aside, data, keep_dir)


def _exchange(aside: Path, image: FileImage) -> bool:
    """Swap the two; False if the system can't, and the target was replaced instead."""
    _check_unchanged(image)  # making the new bytes durable took long: spare others a swap that is taken back
    try:
        if kernel.exchange(aside, image.real):
            return True
    except FileNotFoundError:
        raise conflict(image.path) from None
    aside.replace(image.real)
    return False


def _swap_back(image: FileImage, aside: Path, data: bytes, keep_dir: Path) -> None:
    """`aside` holds somebody's newer save: give it its name again, then look at what comes out in turn."""
    try:
        kernel.exchange(aside, image.real)
    except FileNotFoundError:
        # Removed in between, as an editor does that is about to write the file anew.
        put_back(aside, image.real, keep_dir)
        raise conflict(image.path) from None
    _wait_for_rest(aside)
    if holds(aside, data):
        aside.unlink()
        raise conflict(image.path)
    # Yet another save went to the name while our bytes had it: the later one stands, the earlier is kept.
    kernel.exchange(aside, image.real)
    _wait_for_rest(aside)
    kept = keep(aside, image.real, keep_dir)
    raise conflict(image.path, f"An earlier save of it is kept in {kept}.")


def _is_at_rest(aside: Path, data: bytes, *, max_links: int | None) -> bool:
    """Whether what lies aside is a file that still holds `data`, with nobody about to write to it."""
    try:
        descriptor = os.open(aside, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return False
    with os.fdopen(descriptor, "rb") as file:
        info = os.fstat(descriptor)
        if not stat.S_ISREG(info.st_mode) or (max_links is not None and info.st_nlink > max_links):
            return False
        lease = kernel.Lease(descriptor)
        taken = lease.take()
        if taken is False and kernel.leases_work(aside.parent):
            return False
        try:
            return file.read(len(data) + 1) == data and (taken is not True or lease.intact())
        finally:
            lease.drop()


def _wait_for_rest(aside: Path) -> None:
    end = time.monotonic() + _PATIENCE_S
    while kernel.being_written(aside) and time.monotonic() < end:
        time.sleep(0.005)


# Whether it may be


@contextlib.contextmanager
def _vanishing(path: Path) -> Iterator[None]:
    """As `writing`, where a file or directory that goes away under our hands is a change like any other."""
    with writing(path):
        try:
            yield
        except FileNotFoundError:
            raise conflict(path) from None


def _check_unchanged(image: FileImage) -> None:
    with contextlib.suppress(FileNotFoundError, NotADirectoryError):
        if Path(os.path.realpath(image.path)) == image.real and holds(image.real, image.data):
            return
    raise conflict(image.path)


def _check_writable(image: FileImage, info: os.stat_result) -> None:
    # Renaming would get round a file's own rights; a file without any w bit was made so on purpose.
    if not info.st_mode & 0o222 or not os.access(image.real, os.W_OK):
        raise RefusedError(
            "This file is read-only",
            path=image.path,
            remedy="Make it writable if agent-bridge may change it.",
        )


def _owner_can_be_kept(info: os.stat_result) -> bool:
    if os.geteuid() == 0:
        return True
    return info.st_uid == os.geteuid() and info.st_gid in (os.getegid(), *os.getgroups())
