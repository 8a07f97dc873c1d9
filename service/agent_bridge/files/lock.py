"""Locks between processes. The OS lock is the truth; who holds it is written down for people only."""

from __future__ import annotations

import contextlib
import json
import os
import time
from pathlib import Path

from agent_bridge.errors import LockTimeoutError
from agent_bridge.files.trouble import writing

_POLL_S = 0.01


def locked(path: Path, *, timeout: float, purpose: str) -> Locking:
    """Hold an OS lock on `path` for a `with` block; the kernel frees it when its holder dies.

    `timeout` in seconds, 0 tries once. `purpose` completes "to ...". Pid, purpose and time of the holder
    stand in `<path>.holder`. Raises LockTimeoutError, which names the holder.
    """
    return Locking(path, timeout, purpose)


class Locking(contextlib.AbstractContextManager[None]):
    """What `locked` returns: entering waits for the lock, leaving frees it."""

    def __init__(self, path: Path, timeout: float, purpose: str) -> None:
        from filelock import FileLock  # late: it costs 70 ms, and reading needs no lock

        self._path, self._timeout, self._purpose = path, timeout, purpose
        self._holder = path.with_name(path.name + ".holder")
        self._lock = FileLock(path, timeout=timeout, mode=0o600, poll_interval=_POLL_S)

    def __enter__(self) -> None:
        from filelock import Timeout

        with writing(self._path):
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            try:
                self._lock.acquire()
            except Timeout:
                raise LockTimeoutError(
                    f"Somebody else has held this lock for {self._timeout:g} s",
                    path=self._path,
                    detail=_describe(self._holder),
                    remedy="Wait for it to end, or end it.",
                ) from None
            holder = {"pid": os.getpid(), "purpose": self._purpose, "since": int(time.time())}
            with contextlib.suppress(OSError):  # information only: a full disk mustn't stop an ejection
                _write_private(self._holder, json.dumps(holder))

    def __exit__(self, *_: object) -> None:
        try:
            with contextlib.suppress(OSError):
                self._holder.unlink(missing_ok=True)
        finally:
            self._lock.release()


def _write_private(holder: Path, text: str) -> None:
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
    with os.fdopen(os.open(holder, flags, 0o600), "w", encoding="ascii") as file:
        file.write(text)


def _describe(holder: Path) -> str:
    try:
        known = json.loads(holder.read_bytes())
        since = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(known["since"]))
        return f"Process {int(known['pid'])} has held it since {since}, to {known['purpose']}."
    except (OSError, ValueError, TypeError, KeyError, OverflowError):
        return "Its holder hasn't said who it is."
