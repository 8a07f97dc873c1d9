"""Processes of this machine: what one is, and ending it without hitting another that got its number.

Sources: proc(5) on Linux; `ps` elsewhere (POSIX, with `lstart` and `ruid` as on macOS and Linux).
"""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from agent_bridge.errors import AgentBridgeError

_INITS = {
    "catatonit",
    "docker-init",
    "dumb-init",
    "init",
    "launchd",
    "openrc-init",
    "procd",
    "runit",
    "runsvdir",
    "s6-svscan",
    "systemd",
    "tini",
}
_NUMBERS = 1 << 31
_LOOK_SECONDS = 0.05
END_SECONDS = 5.0
"""How long a process may take to end."""
_STARTED_SLACK_MS = 2000
"""The kernel tells when it came up in whole seconds, `ps` when a process did."""


class NotInspectableError(AgentBridgeError):
    """The process is there, and the system doesn't tell about it."""

    code = "not_inspectable"


class NotEndedError(AgentBridgeError):
    """The process couldn't be told to end, or didn't."""

    code = "not_ended"


@dataclass(frozen=True, slots=True)
class Process:
    """A living process. `started_at`: wall time in ms, exact to a second or two; `command`: for display."""

    pid: int
    parent: int
    user: int
    started_at: int
    has_terminal: bool
    command: str
    is_adopted: bool = False
    """Whether its parent is gone, so that an init process stands in."""


def look(pid: int) -> Process | None:
    """The process `pid`; None if there is none, or only its remains.

    Raises NotInspectableError where there is one that can't be looked at.
    """
    if not 0 < pid < _NUMBERS:
        return None
    try:
        found = _from_proc(pid) if sys.platform == "linux" else _from_ps(pid)
    except (OSError, ValueError, IndexError, subprocess.SubprocessError) as error:
        raise NotInspectableError(f"Process {pid} can't be looked at.", detail=str(error)) from error
    if found is None and _exists(pid):
        raise NotInspectableError(f"Process {pid} can't be looked at.")
    return None if found is _REMAINS else found


def ancestors(pid: int) -> frozenset[int]:
    """The processes from which `pid` descends, as far as they can be looked at; itself included."""
    found = {pid}
    while pid > 1:
        try:
            process = look(pid)
        except NotInspectableError:
            break
        if process is None or process.parent in found:
            break
        pid = process.parent
        found.add(pid)
    return frozenset(found)


def end(process: Process, *, timeout: float | None = None) -> bool:
    """Ask `process` to end (SIGTERM) and wait until it has; False if it was gone already.

    Raises NotEndedError when it may not be told or is still there after `timeout` (END_SECONDS) seconds.
    """
    timeout = END_SECONDS if timeout is None else timeout
    handle = _handle(process.pid)
    try:
        # Only now, with the handle in hand, is the number certain to stay with what is looked at.
        now = look(process.pid)
        if now is None or abs(now.started_at - process.started_at) > _STARTED_SLACK_MS:
            return False
        _tell(process.pid, handle)
        if not _gone(process.pid, handle, timeout):
            raise NotEndedError(
                f"Process {process.pid} was told to end and is still there after {timeout:g} s.",
                remedy=f"Look at it: `ps -fp {process.pid}`.",
            )
    except ProcessLookupError:
        return False
    except PermissionError as error:
        raise NotEndedError(f"Process {process.pid} may not be told to end.", detail=str(error)) from error
    finally:
        if handle is not None:
            os.close(handle)
    return True


_REMAINS = Process(0, 0, 0, 0, has_terminal=False, command="")
"""A process that has ended and whose parent hasn't asked about it yet."""


def _from_proc(pid: int) -> Process | None:
    directory = Path("/proc") / str(pid)
    try:
        name, fields = _stat(directory)
        status = (directory / "status").read_text(encoding="utf-8", errors="replace")
        command = (directory / "cmdline").read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return None
    if fields[0] in ("Z", "X"):
        return _REMAINS
    # The directory's owner is root for a process that may not be dumped; its status tells the truth.
    users = next(line for line in status.splitlines() if line.startswith("Uid:")).split()
    parent = int(fields[1])
    return Process(
        pid=pid,
        parent=parent,
        user=int(users[1]),
        started_at=_booted_ms() + int(fields[19]) * 1000 // os.sysconf("SC_CLK_TCK"),
        has_terminal=fields[4] != "0",
        command=command.replace(b"\0", b" ").decode(errors="replace").strip() or name,
        is_adopted=_is_init(parent),
    )


def _stat(directory: Path) -> tuple[str, list[str]]:
    """Name and fields of /proc/PID/stat from the state on; the name may hold blanks and brackets itself."""
    text = (directory / "stat").read_text(encoding="utf-8", errors="replace")
    return text[text.index("(") + 1 : text.rindex(")")], text[text.rindex(")") + 1 :].split()


def _booted_ms() -> int:
    with Path("/proc/stat").open(encoding="ascii") as file:
        return next(int(line.split()[1]) * 1000 for line in file if line.startswith("btime"))


def _from_ps(pid: int) -> Process | None:
    """The same from `ps`, which is all that macOS offers without its own libraries."""
    told = _ps(pid, "ppid=,ruid=,tty=,stat=,lstart=,command=")
    if not told:
        return None
    parent, user, terminal, state, *rest = told.split(None, 9)
    if state.startswith("Z"):
        return _REMAINS
    started = time.mktime(time.strptime(" ".join(rest[:5]), "%a %b %d %H:%M:%S %Y"))
    return Process(
        pid=pid,
        parent=int(parent),
        user=int(user),
        started_at=int(started) * 1000,
        has_terminal=not terminal.startswith(("?", "-")),
        command=rest[5] if len(rest) > 5 else "",
        is_adopted=_is_init(int(parent)),
    )


def _ps(pid: int, columns: str) -> str:
    done = subprocess.run(
        ["ps", "-ww", "-o", columns, "-p", str(pid)],
        capture_output=True,
        text=True,
        errors="replace",
        env={**os.environ, "LC_ALL": "C"},
        timeout=10,
        check=False,
    )
    return done.stdout.strip()


def _is_init(pid: int) -> bool:
    """Whether `pid` takes in orphans: by its name, since a container's first process may be a real parent."""
    if sys.platform != "linux":
        return pid == 1
    try:
        return _stat(Path("/proc") / str(pid))[0] in _INITS
    except OSError:
        return False


def _exists(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _handle(pid: int) -> int | None:
    """A descriptor that stays with this very process; None where the system has none."""
    if not hasattr(os, "pidfd_open"):
        return None
    try:
        return os.pidfd_open(pid)
    except OSError:
        return None


def _tell(pid: int, handle: int | None) -> None:
    if handle is not None and hasattr(signal, "pidfd_send_signal"):
        signal.pidfd_send_signal(handle, signal.SIGTERM)
    else:
        os.kill(pid, signal.SIGTERM)


def _gone(pid: int, handle: int | None, timeout: float) -> bool:
    if handle is not None:
        return bool(select.select([handle], [], [], timeout)[0])
    deadline = time.monotonic() + timeout
    while look(pid) is not None:
        if time.monotonic() >= deadline:
            return False
        time.sleep(_LOOK_SECONDS)
    return True
