"""Reading and replacing files so that nobody's bytes are lost, whoever writes and whenever we die.

`read_image` and `replace` belong together: a file is read, spliced in memory, and put back only if it still
holds what was read. A caller that gets ConflictError reads again and tries once more.

How a file is replaced:

- *By exchange* (Linux). The new bytes are written beside the target, made durable, and swapped with it in
  one step. What came out is then looked at: if it isn't what was read, or somebody still has it open for
  writing, it is swapped back. So a save that lands between reading and replacing is never lost.
- *By rename* where the system can't exchange: compared right before, with a window of microseconds.
- *In place* where the file must stay the same one: it has several hard links, another owner, or is a mount
  point. Old and new bytes are kept first (see `inplace`).

Files beside a target are named `.<name>.<8 hex>.agent-bridge.tmp`; while one may hold the user's bytes, also
by what it replaces and what it brings, so that `recover` can tell after a kill whose bytes it holds.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import os
import stat
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from agent_bridge import inplace, kernel
from agent_bridge.errors import AgentBridgeError, ConflictError, LockTimeoutError, RefusedError
from agent_bridge.kernel import TEMPORARY_SUFFIX

DEFAULT_LIMIT = 16 * 1024 * 1024
"""Bytes of the largest file that is read."""

_LONGEST_NAME_KEPT = 100
_READ_TRIES = 5


@dataclass(frozen=True, slots=True)
class FileImage:
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


def read_image(path: Path, *, within: Path | None = None, limit: int = DEFAULT_LIMIT) -> FileImage:
    """Read a regular file whole, through symlinks.

    `within`: the real file must lie below this directory. `limit`: bytes. Raises RefusedError for a dangling
    symlink, a loop, a symlink that leads out, a directory, FIFO, socket or device (none is opened), a file
    over the limit, one that changes all the time, and where the rights are missing.
    """
    try:
        real = _real(path, within)
        if real is None:
            return _missing(path, within)
        for _ in range(_READ_TRIES):
            image = _read_once(path, real, limit)
            if image is not None:
                return image
    except FileNotFoundError:
        return _missing(path, within)
    except PermissionError as error:
        raise RefusedError(
            "This file can't be read for lack of rights",
            path=path,
            detail=str(error),
            remedy="Check its rights.",
        ) from error
    except OSError as error:
        raise _unreadable(path, error) from error
    raise ConflictError("This file changes all the time", path=path, remedy="Try again when it is at rest.")


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
    with _plain_errors(image.path):
        if not image.existed:
            _create(image, data, mode, sync)
            return True
        _check_unchanged(image)
        info = image.real.lstat()
        _check_writable(image, info)
        if info.st_nlink > 1 or not _owner_can_be_kept(info):
            inplace.write(image.real, image.data, data, keep_dir)
        else:
            _swap(image, data, info, keep_dir, sync)
    return True


def delete(image: FileImage, *, keep_dir: Path | None = None) -> bool:
    """Remove the file that `image` was read from, if it is still as read; False if it is gone already.

    Raises ConflictError if it has changed (it stays), RefusedError for a symlink. `keep_dir` takes bytes
    that can't be put back because a new file has the name by then; without it they stay beside the file.
    """
    if not image.existed or not os.path.lexists(image.real):
        return False
    if image.path.is_symlink():
        raise RefusedError("This is a symlink, and what it leads to isn't ours to remove", path=image.path)
    with _plain_errors(image.path):
        _check_unchanged(image)
        aside = _temporary(image.real, image.data, None)
        image.real.rename(aside)
        if _is_as_read(aside, image, max_links=None):
            aside.unlink()
            return True
        _put_back(aside, image.real, keep_dir)
        raise _conflict(image.path)


def missing_directories(path: Path) -> tuple[Path, ...]:
    """The directories that creating `path` would make, outermost first."""
    missing = []
    for parent in path.parents:
        if os.path.lexists(parent):
            break
        missing.append(parent)
    return tuple(reversed(missing))


def write_own(path: Path, data: bytes, *, mode: int = 0o600, sync: bool = True) -> None:
    """Replace a file of ours (state, cache) in one step, with its private directory if that is missing.

    `sync`: survive a power cut. A symlink is followed. Raises AgentBridgeError with path and reason.
    """
    real = Path(os.path.realpath(path))
    with _plain_errors(path):
        real.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        temporary = _written(real, data, mode, sync)
        try:
            temporary.replace(real)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise


def recover(keep_dir: Path, directories: Iterable[Path]) -> list[str]:
    """Repair what a killed process left behind; a plain sentence for each one that touched a user's file.

    Finishes or undoes in-place writes by the journal in `keep_dir`, then clears our temporary files out of
    `directories` (flat). One that holds a save of the user's, caught inside an exchange, is put back; where
    the file has changed since, the save is kept in `keep_dir` and named. Call it under the lock that guards
    the writes of those files: it takes every temporary file for an orphan.
    """
    done = inplace.recover(keep_dir)
    for directory in dict.fromkeys(directories):
        try:
            names = sorted(name for name in os.listdir(directory) if _is_temporary(name))  # noqa: PTH208
        except OSError:
            continue  # gone, or not ours to read: then we left nothing there
        for name in names:
            done += _recover_one(directory / name, keep_dir)
    return done


class Locking(contextlib.AbstractContextManager[None]):
    """What `locked` returns: entering waits for the lock, leaving frees it."""

    def __init__(self, path: Path, timeout: float, purpose: str) -> None:
        from filelock import FileLock

        self._holder = path.with_name(path.name + ".holder")
        self._path, self._timeout, self._purpose = path, timeout, purpose
        self._lock = FileLock(path, timeout=timeout, mode=0o600, poll_interval=0.01)

    def __enter__(self) -> None:
        from filelock import Timeout

        with _plain_errors(self._path):
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            try:
                self._lock.acquire()
            except Timeout:
                raise LockTimeoutError(
                    f"Somebody else has held this lock for {self._timeout:g} s",
                    path=self._path,
                    detail=_describe_holder(self._holder),
                    remedy="Wait for it to end, or end it.",
                ) from None
            holder = {"pid": os.getpid(), "purpose": self._purpose, "since": int(time.time())}
            try:
                write_own(self._holder, json.dumps(holder).encode(), sync=False)
            except BaseException:
                self._lock.release()
                raise

    def __exit__(self, *_: object) -> None:
        try:
            self._holder.unlink(missing_ok=True)
        finally:
            self._lock.release()


def locked(path: Path, *, timeout: float, purpose: str) -> Locking:
    """Hold an OS lock on `path` for a `with` block; the kernel frees it when its holder dies.

    `timeout` in seconds, 0 tries once. Pid, purpose and time of the holder stand in `<path>.holder`, for
    people: they never decide anything. Raises LockTimeoutError, which names the holder.
    """
    return Locking(path, timeout, purpose)


# Reading


def _real(path: Path, within: Path | None) -> Path | None:
    """The real path of an existing file, None if there is none; refuses what `read_image` refuses."""
    if not _there(path):
        return None
    try:
        real = Path(os.path.realpath(path, strict=True))
    except FileNotFoundError:
        if not _there(path):
            return None
        raise RefusedError(
            "This symlink leads nowhere",
            path=path,
            detail=f"It points to {path.readlink() if path.is_symlink() else 'a missing file'}.",
            remedy="Remove it or create its target.",
        ) from None
    _check_within(path, real, within)
    return real


def _unreadable(path: Path, error: OSError) -> RefusedError:
    if error.errno == errno.ELOOP:
        return RefusedError("This symlink leads back to itself", path=path, remedy="Remove it.")
    return RefusedError("This file can't be read", path=path, detail=str(error))


def _there(path: Path) -> bool:
    """Whether the name exists, be it a dangling symlink. Unlike os.path.lexists it doesn't swallow errors."""
    try:
        path.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    return True


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
            remedy="Replace the symlink by a file if agent-bridge shall use it.",
        )


def _read_once(path: Path, real: Path, limit: int) -> FileImage | None:
    """The image, or None if the file changed while it was read."""
    _check_regular(path, real.stat())  # before opening: opening a FIFO or device can have effects
    descriptor = os.open(real, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NOCTTY)
    with os.fdopen(descriptor, "rb") as file:
        before = os.fstat(descriptor)
        _check_regular(path, before)
        if before.st_size > limit:
            raise RefusedError(
                f"This file has {before.st_size:,} bytes; more than {limit:,} aren't read", path=path
            )
        data = file.read(limit + 1)
        after = os.fstat(descriptor)
    if (before.st_size, before.st_mtime_ns) != (after.st_size, after.st_mtime_ns) or len(
        data
    ) != after.st_size:
        return None
    mode = stat.S_IMODE(after.st_mode)
    return FileImage(path, real, data, mode, after.st_nlink, (after.st_dev, after.st_ino), existed=True)


def _check_regular(path: Path, info: os.stat_result) -> None:
    if not stat.S_ISREG(info.st_mode):
        kinds = {stat.S_IFDIR: "a directory", stat.S_IFIFO: "a FIFO", stat.S_IFSOCK: "a socket"}
        kind = kinds.get(stat.S_IFMT(info.st_mode), "a device")
        raise RefusedError(f"This is {kind}, not a file", path=path, remedy="Move it out of the way.")


# Replacing


def _create(image: FileImage, data: bytes, mode: int, sync: bool) -> None:  # noqa: FBT001
    if os.path.lexists(image.real):
        raise _conflict(image.path)
    made = _make_directories(image.real, mode)
    try:
        temporary = _written(image.real, data, mode, sync)
        try:
            if not kernel.rename_new(temporary, image.real):
                _create_directly(image.real, data, mode)
        except FileExistsError:
            raise _conflict(image.path) from None
        finally:
            temporary.unlink(missing_ok=True)
    except BaseException:
        _remove_directories(made)
        raise


def _make_directories(path: Path, mode: int) -> tuple[Path, ...]:
    """Make what `missing_directories` tells, as open to others as a file of `mode`, whatever the umask."""
    made = missing_directories(path)
    try:
        for directory in made:
            directory.mkdir(exist_ok=True)
            directory.chmod(0o700 | (mode & 0o044) | (mode & 0o044) >> 2)
    except BaseException:
        _remove_directories(made)
        raise
    return made


def _remove_directories(directories: tuple[Path, ...]) -> None:
    for directory in reversed(directories):
        with contextlib.suppress(OSError):  # never made, or somebody has put something there
            directory.rmdir()


def _create_directly(real: Path, data: bytes, mode: int) -> None:
    """For file systems that can neither rename without replacing nor link (FAT, some network ones)."""
    descriptor = os.open(real, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(descriptor)
            _set_mode(descriptor, mode)
    except BaseException:
        real.unlink(missing_ok=True)
        raise


def _swap(image: FileImage, data: bytes, info: os.stat_result, keep_dir: Path, sync: bool) -> None:  # noqa: FBT001
    written = _written(image.real, data, stat.S_IMODE(info.st_mode), sync, like=info, attributes=image.real)
    aside = _temporary(image.real, image.data, data)
    try:
        written.rename(aside)
        try:
            exchanged = kernel.exchange(aside, image.real)
        except FileNotFoundError:
            raise _conflict(image.path) from None
        if not exchanged:
            _check_unchanged(image)
            aside.replace(image.real)
            return
    except OSError as error:
        _remove(written, aside)
        if error.errno not in (errno.EBUSY, errno.EXDEV):
            raise
        inplace.write(image.real, image.data, data, keep_dir)  # a file that is a mount point
        return
    except BaseException:
        _remove(written, aside)
        raise
    if _is_as_read(aside, image, max_links=1):
        aside.unlink()
        return
    _swap_back(image, aside, data, keep_dir)


def _swap_back(image: FileImage, aside: Path, data: bytes, keep_dir: Path) -> None:
    """`aside` holds somebody's newer save: give it its name again, then look at what comes out in turn."""
    try:
        kernel.exchange(aside, image.real)
    except FileNotFoundError:
        # Removed in between, as an editor does that is about to write the file anew.
        _put_back(aside, image.real, keep_dir)
        raise _conflict(image.path) from None
    if _holds(aside, data):
        aside.unlink()
        raise _conflict(image.path)
    # Yet another save went to the name while our bytes had it: the later one stands, the earlier is kept.
    kernel.exchange(aside, image.real)
    kept = _keep(aside, image.real, keep_dir)
    raise _conflict(image.path, f"An earlier save of it is kept in {kept}.")


def _is_as_read(aside: Path, image: FileImage, *, max_links: int | None) -> bool:
    """Whether what lies aside is the file that was read, unchanged, with nobody about to write to it."""
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
            unchanged = file.read(len(image.data) + 1) == image.data
            return unchanged and (taken is not True or lease.intact())
        finally:
            lease.drop()


def _check_unchanged(image: FileImage) -> None:
    try:
        if Path(os.path.realpath(image.path)) == image.real and _holds(image.real, image.data):
            return
    except OSError:
        pass
    raise _conflict(image.path)


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


def _written(
    real: Path,
    data: bytes,
    mode: int,
    sync: bool,  # noqa: FBT001
    *,
    like: os.stat_result | None = None,
    attributes: Path | None = None,
) -> Path:
    """A temporary file beside `real` that holds `data`; nothing is left behind if that fails."""
    temporary = real.with_name(f".{_stem(real.name)}.{os.urandom(4).hex()}{TEMPORARY_SUFFIX}")
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    descriptor = os.open(temporary, flags, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as file:
            if like is not None and (like.st_uid, like.st_gid) != _owner(descriptor):
                os.fchown(descriptor, like.st_uid, like.st_gid)
            file.write(data)
            file.flush()
            if attributes is not None:
                kernel.copy_attributes(attributes, descriptor)
            _set_mode(descriptor, mode)
            if sync:
                os.fsync(descriptor)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    return temporary


def _owner(descriptor: int) -> tuple[int, int]:
    info = os.fstat(descriptor)
    return info.st_uid, info.st_gid


def _set_mode(descriptor: int, mode: int) -> None:
    if stat.S_IMODE(os.fstat(descriptor).st_mode) != mode:
        os.fchmod(descriptor, mode)


# Names beside a target, and what they tell after a kill


def _temporary(real: Path, before: bytes, after: bytes | None) -> Path:
    """The name for bytes that leave `real` and those that replace them (None: it is deleted)."""
    marks = f"{_mark(before)}-{'deleted' if after is None else _mark(after)}"
    return real.with_name(f".{_stem(real.name)}.{marks}.{os.urandom(4).hex()}{TEMPORARY_SUFFIX}")


def _mark(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:16]


def _stem(name: str) -> str:
    """The target's name, or as much of it as leaves room for the rest, with a hash to find it by."""
    encoded = os.fsencode(name)
    if len(encoded) <= _LONGEST_NAME_KEPT:
        return name
    return f"{encoded[:_LONGEST_NAME_KEPT].decode(errors='ignore')}~{_mark(encoded)}"


def _is_temporary(name: str) -> bool:
    return name.startswith(".") and name.endswith(TEMPORARY_SUFFIX)


def _recover_one(aside: Path, keep_dir: Path) -> list[str]:
    try:
        image = read_image(aside)
        if aside.is_symlink() or not image.existed:
            return []
        marks = _marks(aside.name)
        if marks is None or _mark(image.data) == marks.after:
            aside.unlink()  # our own bytes, whole or not, that never got their name
            return []
        target = _target(aside.parent, marks.stem)
        if target is None:
            return _recover_into_gap(aside, marks, keep_dir)
        if _mark(image.data) == marks.before:
            aside.unlink()  # what was replaced, as intended
            return []
        current = read_image(target)
        if _mark(current.data) == marks.after and kernel.exchange(aside, target):
            if _mark(read_image(aside).data) == marks.after:
                aside.unlink()
                return [f"{target}: a save that an interrupted write had caught is back in its place."]
            kernel.exchange(aside, target)
        kept = _keep(aside, target, keep_dir)
        return [f"{target}: a save that an interrupted write had caught is kept in {kept}."]
    except (OSError, RefusedError) as error:
        return [f"{aside}: left behind by an interrupted write, and can't be cleared: {error}"]


def _recover_into_gap(aside: Path, marks: _Marks, keep_dir: Path) -> list[str]:
    """The target is gone. An interrupted deletion is undone; after a replacement somebody removed it."""
    target = aside.with_name(marks.stem)
    if marks.after == "deleted" and len(os.fsencode(marks.stem)) <= _LONGEST_NAME_KEPT:
        _put_back(aside, target, keep_dir)
        return [f"{target}: an interrupted deletion is undone."]
    if _mark(aside.read_bytes()) == marks.before:
        aside.unlink()
        return []
    kept = _keep(aside, target, keep_dir)
    return [f"{target}: it is gone; a save of it that was caught is kept in {kept}."]


@dataclass(frozen=True, slots=True)
class _Marks:
    stem: str
    before: str
    after: str


def _marks(name: str) -> _Marks | None:
    """What a name says about the bytes, or None for a temporary file that only ever held ours."""
    parts = name[1 : -len(TEMPORARY_SUFFIX)].rsplit(".", 2)
    if len(parts) != 3:
        return None
    before, dash, after = parts[1].partition("-")
    if not dash or len(before) != 16 or (len(after) != 16 and after != "deleted"):
        return None
    return _Marks(parts[0], before, after)


def _target(directory: Path, stem: str) -> Path | None:
    if os.path.lexists(directory / stem):
        return directory / stem
    return next((path for path in directory.iterdir() if _stem(path.name) == stem), None)


def _put_back(aside: Path, real: Path, keep_dir: Path | None) -> None:
    try:
        if kernel.rename_new(aside, real):
            return
    except FileExistsError:
        pass
    if keep_dir is not None:
        _keep(aside, real, keep_dir)


def _keep(aside: Path, real: Path, keep_dir: Path) -> Path:
    """Move bytes that no longer have a place to the kept files; the path there."""
    kept = keep_dir / f"{_stem(real.name)}.{os.urandom(4).hex()}.kept"
    write_own(kept, aside.read_bytes())
    aside.unlink()
    return kept


def _holds(path: Path, data: bytes) -> bool:
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
    with os.fdopen(descriptor, "rb") as file:
        return stat.S_ISREG(os.fstat(descriptor).st_mode) and file.read(len(data) + 1) == data


def _remove(*paths: Path) -> None:
    for path in paths:
        path.unlink(missing_ok=True)


# Errors


def _conflict(path: Path, detail: str = "Nothing was written.") -> ConflictError:
    return ConflictError(
        "This file changed while agent-bridge was about to write it",
        path=path,
        detail=detail,
        remedy="Try again.",
    )


@contextlib.contextmanager
def _plain_errors(path: Path) -> Iterator[None]:
    """Turn the system's errors into ours, with path, reason and what to do."""
    try:
        yield
    except PermissionError as error:
        raise RefusedError(
            "This file can't be written for lack of rights",
            path=path,
            detail=f"{error.strerror}: {error.filename}",
            remedy="Check the rights of the file and of its directory.",
        ) from error
    except OSError as error:
        if error.errno == errno.EROFS:
            raise RefusedError("This file is on a read-only file system", path=path) from error
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise AgentBridgeError(
                "There is no room left to write this file",
                path=path,
                remedy="Make room; nothing was changed.",
            ) from error
        raise AgentBridgeError("This file can't be written", path=path, detail=str(error)) from error


def _describe_holder(path: Path) -> str:
    try:
        holder = json.loads(path.read_bytes())
        since = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(holder["since"]))
        return f"Process {int(holder['pid'])} has it since {since}, to {holder['purpose']}."
    except (OSError, ValueError, TypeError, KeyError, OverflowError):
        return "Its holder hasn't said who it is."
