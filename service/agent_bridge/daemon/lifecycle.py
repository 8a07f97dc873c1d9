"""One service a user: a lock held for life, freed by the kernel at any death. The pid beside it informs."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from agent_bridge import __version__, paths
from agent_bridge.errors import AgentBridgeError

if TYPE_CHECKING:
    from filelock import FileLock

_PATIENCE = 1.0
"""Seconds to wait for the lock: `client.lock_is_held` has it for microseconds when it looks."""
LOCK_SECONDS = 60.0
"""Seconds between two looks whether the lock is still where another service would look for it."""


class AlreadyRunningError(AgentBridgeError):
    """Another process is the service."""

    code = "already_running"


class Instance:
    """The lock of the one service, from `take` to `give_up`."""

    def __init__(self) -> None:
        self._path = paths.service_lock()
        self._lock: FileLock | None = None
        self._mark: tuple[int, int] | None = None

    def take(self) -> None:
        """Raises AlreadyRunningError if another has it."""
        lock = _acquired(self._path)
        if self._lock is not None:
            self._lock.release()
        self._lock, self._mark = lock, _mark(self._path)
        _record()

    def keep(self) -> None:
        """Take it anew where its file was removed: a second service could take what lies there now.

        Raises AlreadyRunningError where one has done so."""
        if _mark(self._path) != self._mark:
            self.take()

    def give_up(self) -> None:
        """Leave it to the next one."""
        if self._lock is None:
            return
        if recorded_pid() == os.getpid():
            self._path.with_suffix(".json").unlink(missing_ok=True)
        self._lock.release()


@contextmanager
def single_instance() -> Iterator[Instance]:
    """Be the one service of this user while the block runs; AlreadyRunningError if another is."""
    instance = Instance()
    instance.take()
    try:
        yield instance
    finally:
        instance.give_up()


def _acquired(path: Path) -> FileLock:
    from filelock import FileLock, Timeout

    paths.ensure_private_dir(path.parent)
    lock = FileLock(path, timeout=_PATIENCE, mode=0o600)
    try:
        lock.acquire()
    except Timeout:
        holder = recorded_pid()
        raise AlreadyRunningError(
            "The service is running already.",
            path=path,
            detail=f"pid {holder}" if holder else "",
            remedy="Look at it with `agent-bridge status`, or end it with `agent-bridge down`.",
        ) from None
    return lock


def recorded_pid() -> int | None:
    """The pid that the holder of the lock wrote down; information only, never to be trusted by itself."""
    try:
        pid = json.loads(paths.service_lock().with_suffix(".json").read_bytes())["pid"]
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return pid if isinstance(pid, int) and pid > 1 else None


def _mark(path: Path) -> tuple[int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _record() -> None:
    target = paths.service_lock().with_suffix(".json")
    started = datetime.now(UTC).isoformat(timespec="seconds")
    text = json.dumps({"pid": os.getpid(), "started_at": started, "version": __version__})
    temporary = target.with_suffix(".json.tmp")
    temporary.touch(mode=0o600)
    temporary.write_text(text + "\n", encoding="utf-8")
    temporary.replace(target)
