"""The service in the hands of the system's own service manager: what all managers have in common.

One back end each: `install_systemd` (Linux), `install_launchd` (macOS). Both start from the file that is
shipped, systemd/agent-bridge.service or launchd/dev.agent-bridge.plist, and put in what is known only here:
the program's path and the environment.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
import unicodedata
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from agent_bridge.daemon import client, control
from agent_bridge.errors import AgentBridgeError, NotFoundError

PROGRAMS = ("agent-bridge", "oab", "memory-bridge")
"""The names under which the program is installed."""
_CARRIED = (
    "CLAUDE_CONFIG_DIR",
    "CODEX_HOME",
    "XDG_CACHE_HOME",
    "XDG_CONFIG_HOME",
    "XDG_DATA_HOME",
    "XDG_STATE_HOME",
)
_CARRIED_PREFIX = "AGENT_BRIDGE_"
_COMMAND_SECONDS = 30.0
_ANSWER_SECONDS = 10.0


class NoManagerError(AgentBridgeError):
    """Nothing here would start the service at login."""

    code = "no_manager"

    def __init__(self, why: str) -> None:
        super().__init__(
            "The service can't be installed here: no service manager takes it.",
            detail=why,
            remedy="Start it in the background instead, after each start of the machine: `agent-bridge up`.",
        )


class ManagerError(AgentBridgeError):
    """The service manager refused, or the service that it started doesn't run."""

    code = "service_manager"


@dataclass(frozen=True, slots=True)
class Installed:
    """An installed service: the manager's file, the process (None: not started yet), what to know of it."""

    file: Path
    pid: int | None
    remarks: tuple[str, ...]


class Manager(ABC):
    """A service manager that can keep the service of this user."""

    title: ClassVar[str]
    """As people call it."""

    @property
    @abstractmethod
    def file(self) -> Path:
        """The file that makes the service known to the manager."""

    @abstractmethod
    def install(self, program: Path, env: Mapping[str, str]) -> Installed:
        """Write the file, have the service started now and at each login, and see that it really runs.

        `program`: the absolute path of the entry point; `env`: where the carried variables are taken from.
        One that `up` started is ended first. Raises ManagerError.
        """

    @abstractmethod
    def uninstall(self) -> bool:
        """Stop the service and leave nothing of it with the manager; False when there was nothing."""

    @abstractmethod
    def start(self) -> None:
        """Start the installed service and wait until it is ready."""

    @abstractmethod
    def stop(self) -> None:
        """Stop it until the next login."""

    @abstractmethod
    def restart(self) -> None:
        """Stop and start it."""

    def is_installed(self) -> bool:
        """Whether the manager's file is there."""
        return os.path.lexists(self.file)

    def log_command(self, lines: int, *, follow: bool) -> list[str] | None:
        """The command that shows the last `lines` of the log; None: it is `log_file`."""
        del lines, follow
        return None


def find_manager() -> Manager:
    """The service manager of this user that answers; NoManagerError says why there is none."""
    if sys.platform == "darwin":
        from agent_bridge.daemon.install_launchd import Launchd

        return Launchd()
    from agent_bridge.daemon.install_systemd import find_systemd

    return find_systemd()


def installed_manager() -> Manager | None:
    """The manager in which the service is installed, if it answers."""
    try:
        manager = find_manager()
    except NoManagerError:
        return None
    return manager if manager.is_installed() else None


def entry_point() -> Path:
    """The absolute path of the program, as it was called; raises NotFoundError if it isn't installed.

    Symlinks are kept: ~/.local/bin/agent-bridge stays where it is when the tool behind it is upgraded.
    """
    called = Path(sys.argv[0])
    found = shutil.which(sys.argv[0]) if called.name in PROGRAMS else None
    beside = Path(sys.executable).with_name(PROGRAMS[0])
    for candidate in (Path(found) if found else beside, beside):
        if candidate.is_file() and os.access(candidate, os.X_OK):
            return Path(os.path.abspath(candidate))  # noqa: PTH100 - symlinks are to stay
    raise NotFoundError(
        "The program isn't installed, so no service can start it",
        path=beside,
        remedy="Install it, for example with `pipx install`, and run `agent-bridge service install` again.",
    )


def carried(env: Mapping[str, str], known: Mapping[str, str]) -> dict[str, str]:
    """What decides about places and settings in `env` and differs in the manager's environment `known`.

    Without it the service would look for other files than the command line. PATH is added where the
    manager's has no git. Raises ManagerError for a value that neither manager takes.
    """
    values = {
        name: value
        for name, value in sorted(env.items())
        if value and (name in _CARRIED or name.startswith(_CARRIED_PREFIX)) and known.get(name) != value
    }
    path = known.get("PATH", "/usr/bin:/bin")
    git = shutil.which("git", path=env.get("PATH"))
    if git is not None and shutil.which("git", path=path) is None:
        values["PATH"] = f"{path}:{Path(git).parent}"
    for name, value in values.items():
        if any(unicodedata.category(character) in ("Cc", "Cs") for character in value):
            raise ManagerError(
                f"{name} holds bytes that no service manager's file can hold, {value!r}.",
                remedy="Use a directory with a plain name.",
            )
    return values


def shipped(name: str) -> bytes:
    """The shipped file `name`: from the wheel, or from the source tree."""
    here = Path(__file__).resolve()
    in_wheel = here.parent / "units" / name
    if in_wheel.is_file():
        return in_wheel.read_bytes()
    folder = "launchd" if name.endswith(".plist") else "systemd"
    return (here.parents[3] / folder / name).read_bytes()


def run_command(
    command: Sequence[str], *, env: Mapping[str, str] | None = None, timeout: float | None = _COMMAND_SECONDS
) -> subprocess.CompletedProcess[str]:
    """Run a manager's command. Raises ManagerError when it can't be started or takes `timeout` seconds."""
    try:
        return subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            env=None if env is None else dict(env),
            timeout=timeout,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ManagerError(f"`{' '.join(command)}` failed.", detail=str(error)) from error


def told(environment: Mapping[str, str]) -> tuple[str, ...]:
    """A remark on the variables that were written into the manager's file; none without any."""
    names = ", ".join(environment)
    return (f"The service gets these as they are set here: {names}.",) if names else ()


def end_unmanaged() -> None:
    """End a service that runs without the manager (`up`), so that the manager's can take its place."""
    if control.down() is control.Stop.FAILED:
        raise ManagerError(
            "A service runs already, and its process can't be told for certain.",
            remedy="Look at it with `agent-bridge status`, end it, and try again.",
        )


def wait_for_answer(timeout: float = _ANSWER_SECONDS) -> dict[str, Any]:
    """The running service's status, waited for; raises what asking for it raised last."""
    deadline = time.monotonic() + timeout
    while True:
        try:
            return client.read_status()
        except AgentBridgeError:
            if time.monotonic() >= deadline:
                raise
        time.sleep(0.05)
