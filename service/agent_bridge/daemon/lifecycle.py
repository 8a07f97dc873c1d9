"""One service a user: a lock held for life, freed by the kernel at any death. The pid beside it informs."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime

from agent_bridge import __version__, paths
from agent_bridge.errors import AgentBridgeError

_PATIENCE = 1.0
"""Seconds to wait for the lock: `client.lock_is_held` has it for microseconds when it looks."""


class AlreadyRunningError(AgentBridgeError):
    """Another process is the service."""

    code = "already_running"


@contextmanager
def single_instance() -> Iterator[None]:
    """Be the one service of this user while the block runs; AlreadyRunningError if another is."""
    from filelock import FileLock, Timeout

    path = paths.service_lock()
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
    try:
        _record()
        yield
    finally:
        paths.service_lock().with_suffix(".json").unlink(missing_ok=True)
        lock.release()


def recorded_pid() -> int | None:
    """The pid that the holder of the lock wrote down; information only, never to be trusted by itself."""
    try:
        pid = json.loads(paths.service_lock().with_suffix(".json").read_bytes())["pid"]
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return pid if isinstance(pid, int) and pid > 1 else None


def _record() -> None:
    target = paths.service_lock().with_suffix(".json")
    started = datetime.now(UTC).isoformat(timespec="seconds")
    text = json.dumps({"pid": os.getpid(), "started_at": started, "version": __version__})
    temporary = target.with_suffix(".json.tmp")
    temporary.touch(mode=0o600)
    temporary.write_text(text + "\n", encoding="utf-8")
    temporary.replace(target)
