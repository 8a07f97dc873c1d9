"""Our own log file, for where nobody keeps what the service says: launchd throws it away unless it is given
absolute paths, which a plist that works for every user can't hold."""

from __future__ import annotations

import os
import shutil
import stat
import sys
from pathlib import Path

from agent_bridge import paths

KEPT_BYTES = 5 * 1024 * 1024
"""At a start, a longer file is put aside as `.1`, in place of the last one."""


def keep_own_log() -> bool:
    """Send standard output and error to our own file if error goes to /dev/null; whether it was so.

    At the file descriptors, so that what the interpreter and libraries say at a crash is in it too.
    """
    path = paths.log_file()
    if not _goes_nowhere(2):
        if path.exists() and os.path.samestat(path.stat(), os.fstat(2)):
            put_aside_when_long()  # opened by launchd or `up`
        return False
    paths.ensure_private_dir(path.parent)
    put_aside_when_long()
    descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        sys.stdout.flush()
        sys.stderr.flush()
        os.dup2(descriptor, 2)
        if _goes_nowhere(1):
            os.dup2(descriptor, 1)
    finally:
        os.close(descriptor)
    return True


def put_aside_when_long() -> None:
    """Empty a log file that has grown long, keeping a copy: whoever has it open appends to it as before."""
    path = paths.log_file()
    if path.is_file() and path.stat().st_size > KEPT_BYTES:
        shutil.copy(path, path.with_name(path.name + ".1"))
        os.truncate(path, 0)


def _goes_nowhere(descriptor: int) -> bool:
    try:
        found = os.fstat(descriptor)
        nowhere = Path(os.devnull).stat()
    except OSError:
        return False
    return stat.S_ISCHR(found.st_mode) and found.st_rdev == nowhere.st_rdev
