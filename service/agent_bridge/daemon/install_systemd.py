"""The service as a unit of the user's systemd manager (systemctl(1), systemd.unit(5)). Proved with 252."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

from agent_bridge import files, paths
from agent_bridge.daemon.install import (
    Installed,
    Manager,
    ManagerError,
    NoManagerError,
    carried,
    end_unmanaged,
    run_command,
    shipped,
    told,
    wait_for_answer,
)
from agent_bridge.errors import AgentBridgeError

UNIT = "agent-bridge.service"
_LINGERING = Path("/var/lib/systemd/linger")
_MANAGERS_STATES = {"running", "degraded", "starting", "initializing", "maintenance"}
_EXEC_START = "ExecStart="


class Systemd(Manager):
    """The user's systemd manager; `known` is its environment."""

    title: ClassVar[str] = "systemd"

    def __init__(self, known: Mapping[str, str]) -> None:
        self._known = known

    @property
    def file(self) -> Path:
        """In the manager's own configuration directory, which needn't be this shell's."""
        return paths.config_dir(self._places()).parent / "systemd/user" / UNIT

    def install(self, program: Path, env: Mapping[str, str]) -> Installed:
        """Write the unit, load, enable and start it, and ask its socket whether it is there."""
        environment = carried(env, self._known)
        text = render(shipped(UNIT).decode(), program, environment)
        if self.file.is_symlink():
            self.file.unlink()  # enabled as it stood in some checkout, which isn't ours to overwrite
        files.write_own(self.file, text.encode(), mode=0o644)
        self._must("daemon-reload")
        self._must("enable", UNIT)
        if not self._main_pid():
            end_unmanaged()
        self._restart()
        return Installed(self.file, self._check(), (*told(environment), lingering()))

    def uninstall(self) -> bool:
        """Stop and disable the unit, and remove it with the links to it."""
        was_there = self.is_installed()
        if was_there:
            systemctl("disable", "--now", UNIT, timeout=None)
        for path in (self.file, self.file.parent / "default.target.wants" / UNIT):
            path.unlink(missing_ok=True)
        self._must("daemon-reload")
        self._ask("reset-failed", UNIT)
        return was_there

    def start(self) -> None:
        """Start the unit; returns when it is ready."""
        if not self._main_pid():
            end_unmanaged()
        self._ask("reset-failed", UNIT)
        self._started("start")

    def stop(self) -> None:
        """Stop the unit, and a service that runs beside it."""
        done = systemctl("stop", UNIT, timeout=None)
        if done.returncode:
            raise ManagerError("systemd couldn't stop the service.", detail=done.stderr.strip())
        end_unmanaged()

    def restart(self) -> None:
        """Restart the unit; returns when it is ready."""
        if not self._main_pid():
            end_unmanaged()
        self._restart()

    def log_command(self, lines: int, *, follow: bool) -> list[str] | None:
        """The journal, of this unit alone."""
        command = ["journalctl", "--user", "--unit", UNIT, "--output", "cat", "--lines", str(lines)]
        return [*command, "--follow"] if follow else [*command, "--no-pager"]

    def _restart(self) -> None:
        self._ask("reset-failed", UNIT)
        self._started("restart")

    def _started(self, verb: str) -> None:
        done = systemctl(verb, UNIT, timeout=None)  # systemd's own time-outs end it
        if done.returncode:
            raise ManagerError(
                f"systemd couldn't {verb} the service.",
                detail=f"{done.stderr.strip()}\n{self._last_words()}".strip(),
                remedy="Its log says why: `agent-bridge logs`.",
            )

    def _check(self) -> int:
        """The pid of the unit's process, if it is the one that answers on the status socket."""
        managed = self._main_pid()
        try:
            status: dict[str, Any] = wait_for_answer()
        except AgentBridgeError as error:
            raise ManagerError(
                "systemd says that the service runs, but it doesn't answer.",
                detail=f"{error}\n{self._last_words()}".strip(),
                path=paths.status_socket(),
            ) from error
        if not managed or status.get("pid") != managed:
            raise ManagerError(
                "Another service answers than the one that systemd started.",
                detail=f"systemd's has pid {managed}, the one that answers {status.get('pid')}",
                remedy="End the other one with `agent-bridge down`, then install again.",
            )
        return managed

    def _main_pid(self) -> int:
        shown = self._ask("show", "--property=MainPID", "--value", UNIT).stdout.strip()
        return int(shown) if shown.isdecimal() else 0

    def _last_words(self) -> str:
        command = self.log_command(5, follow=False)
        return run_command(command, env=_environment()).stdout.strip() if command else ""

    def _must(self, *words: str) -> None:
        done = self._ask(*words)
        if done.returncode:
            raise ManagerError(f"`systemctl --user {' '.join(words)}` failed.", detail=done.stderr.strip())

    def _ask(self, *words: str) -> subprocess.CompletedProcess[str]:
        return systemctl(*words)

    def _places(self) -> dict[str, str]:
        return {name: self._known[name] for name in ("HOME", "XDG_CONFIG_HOME") if name in self._known}


def find_systemd() -> Systemd:
    """The user's manager; NoManagerError if none answers."""
    if shutil.which("systemctl") is None:
        raise NoManagerError("There is no systemd (`systemctl` isn't on PATH).")
    state = systemctl("is-system-running")
    if state.stdout.strip() not in _MANAGERS_STATES:
        why = state.stderr.strip() or state.stdout.strip() or "no answer"
        raise NoManagerError(f"No systemd manager of this user answers: {why}")
    return Systemd(_parse(systemctl("show-environment").stdout))


def systemctl(*words: str, timeout: float | None = 30.0) -> subprocess.CompletedProcess[str]:
    """Run `systemctl --user`."""
    return run_command(["systemctl", "--user", "--no-pager", *words], env=_environment(), timeout=timeout)


def render(unit: str, program: Path, environment: Mapping[str, str]) -> str:
    """The unit with the program's path for the shipped one, and a line for each variable behind it."""
    lines = []
    for line in unit.splitlines():
        if not line.startswith(_EXEC_START):
            lines.append(line)
            continue
        lines.append(f"{_EXEC_START}{quoted(str(program))} service run")
        if environment:
            lines.append("# What was set when the service was installed and the manager doesn't know.")
        lines += [f"Environment={quoted(f'{name}={value}')}" for name, value in environment.items()]
    return "\n".join(lines) + "\n"


def quoted(word: str) -> str:
    """`word` as one word of a unit file (systemd.syntax(7)); nothing in it is expanded."""
    return '"' + word.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%") + '"'


def lingering() -> str:
    """A sentence on whether the service runs without a login."""
    import pwd

    user = pwd.getpwuid(os.getuid()).pw_name
    asked = None
    if shutil.which("loginctl"):
        asked = run_command(["loginctl", "show-user", user, "--property=Linger", "--value"]).stdout.strip()
    if asked == "yes" or (asked != "no" and (_LINGERING / user).exists()):
        return "Lingering is on: the service runs from the start of the machine, logged in or not."
    return (
        "Lingering is off: the service starts at your login and ends with your last logout. "
        "`loginctl enable-linger` changes that."
    )


def _environment() -> dict[str, str]:
    """This process's, with the way to the manager where su, cron or ssh left it out."""
    runtime = f"/run/user/{os.getuid()}"
    return {"XDG_RUNTIME_DIR": runtime, **os.environ} if Path(runtime).is_dir() else dict(os.environ)


def _parse(shown: str) -> dict[str, str]:
    """The manager's environment, of which only plain values matter: odd ones are shown quoted, $'…'."""
    pairs = (line.partition("=") for line in shown.splitlines())
    return {name: value for name, _, value in pairs if not value.startswith("$'")}
