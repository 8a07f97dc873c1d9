"""What the operating system offers for replacing files, and Python's library doesn't reach.

Linux: renameat2(2) with RENAME_EXCHANGE and RENAME_NOREPLACE, and read leases (fcntl(2), F_SETLEASE).
Elsewhere, or on file systems without them, each function says that it is unsupported.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import functools
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path

TEMPORARY_SUFFIX = ".agent-bridge.tmp"
"""How the name of each temporary file of ours ends."""

_AT_FDCWD = -100
_RENAME_NOREPLACE = 1
_RENAME_EXCHANGE = 2
_UNSUPPORTED = (errno.EINVAL, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP)


def exchange(first: Path, second: Path) -> bool:
    """Swap two names in one step; False where that is unsupported. Raises OSError for anything else."""
    return _renameat2(first, second, _RENAME_EXCHANGE)


def rename_new(source: Path, target: Path) -> bool:
    """Give `source` the name `target` unless something has it; False where that is unsupported.

    Raises FileExistsError if `target` exists, whatever it is.
    """
    if _renameat2(source, target, _RENAME_NOREPLACE):
        return True
    try:
        os.link(source, target, follow_symlinks=False)
    except FileExistsError:
        raise
    except OSError as error:
        if error.errno in (errno.EPERM, *_UNSUPPORTED):
            return False
        raise
    source.unlink()
    return True


class Lease:
    """A read lease on an open file: it can be had only while nobody has the file open for writing."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def take(self) -> bool | None:
        """True: taken. False: somebody has the file open for writing. None: there are no leases here."""
        setlease = getattr(fcntl, "F_SETLEASE", None)
        if setlease is None:
            return None
        try:
            # A broken lease sends SIGIO, which ends a process that doesn't expect it; SIGURG is ignored.
            fcntl.fcntl(self._descriptor, fcntl.F_SETSIG, signal.SIGURG)
            fcntl.fcntl(self._descriptor, setlease, fcntl.F_RDLCK)
        except OSError as error:
            return False if error.errno == errno.EAGAIN else None
        return True

    def intact(self) -> bool:
        """Whether nobody has tried to open the file for writing since `take` answered True."""
        return fcntl.fcntl(self._descriptor, fcntl.F_GETLEASE) == fcntl.F_RDLCK

    def drop(self) -> None:
        """Let writers in again; harmless without a lease."""
        setlease = getattr(fcntl, "F_SETLEASE", None)
        if setlease is not None:
            with contextlib.suppress(OSError):
                fcntl.fcntl(self._descriptor, setlease, fcntl.F_UNLCK)


def being_written(path: Path) -> bool:
    """Whether somebody has this file open for writing, as far as the system tells."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        lease = Lease(descriptor)
        taken = lease.take()
        lease.drop()
    finally:
        os.close(descriptor)
    return taken is False and leases_work(path.parent)


def leases_work(directory: Path) -> bool:
    """Whether a file that nobody can have open for writing gets a lease: some file systems never give one."""
    probe = directory / f".{os.urandom(4).hex()}{TEMPORARY_SUFFIX}"
    try:
        os.close(os.open(probe, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
        descriptor = os.open(probe, os.O_RDONLY | os.O_CLOEXEC)
        try:
            lease = Lease(descriptor)
            taken = lease.take()
            lease.drop()
        finally:
            os.close(descriptor)
    except OSError:
        return False
    finally:
        probe.unlink(missing_ok=True)
    return taken is True


def copy_attributes(source: Path, target: int) -> None:
    """Copy extended attributes, ACLs among them, from `source` to an open file, as far as allowed."""
    if not hasattr(os, "listxattr"):
        return
    try:
        names = os.listxattr(source)
    except OSError:
        return
    for name in names:
        # Some can't be copied by an ordinary user (security.*, trusted.*) or to another file system.
        with contextlib.suppress(OSError):
            os.setxattr(target, name, os.getxattr(source, name))


def _renameat2(source: Path, target: Path, flags: int) -> bool:
    call = _renameat2_call()
    if call is None:
        return False
    code = call(os.fsencode(source), os.fsencode(target), flags)
    if code == 0:
        return True
    if code in _UNSUPPORTED:
        return False
    raise OSError(code, os.strerror(code), str(source), None, str(target))


@functools.cache
def _renameat2_call() -> Callable[[bytes, bytes, int], int] | None:
    if not sys.platform.startswith("linux"):
        return None
    import ctypes

    function = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)  # glibc 2.28, musl 1.2.6
    if function is None:
        return None
    function.argtypes = (ctypes.c_int, ctypes.c_char_p, ctypes.c_int, ctypes.c_char_p, ctypes.c_uint)
    function.restype = ctypes.c_int

    def call(source: bytes, target: bytes, flags: int) -> int:
        if function(_AT_FDCWD, source, _AT_FDCWD, target, flags) == 0:
            return 0
        return ctypes.get_errno()

    return call
