"""The service as an agent of launchd, by launchd.plist(5) and launchctl(1). Tested as far as Linux can."""

from __future__ import annotations

import os
import plistlib
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

from agent_bridge import files, paths
from agent_bridge.daemon import client
from agent_bridge.daemon.install import (
    Installed,
    Manager,
    ManagerError,
    carried,
    end_unmanaged,
    run_command,
    shipped,
    told,
    wait_for_answer,
)
from agent_bridge.errors import AgentBridgeError

LABEL = "dev.agent-bridge"
PATH = "/usr/bin:/bin:/usr/sbin:/sbin"
"""What launchd gives an agent."""
_UNKNOWN = {3, 113}
"""`bootout`: no such process, no such service."""
_AGAIN = {5, 37}
"""`bootstrap`: an error without a name, which a bootout that is under way causes, and "in progress"."""
_TRIES = 6
_REST_SECONDS = 0.5
_BOOTOUT_SECONDS = 15.0


class Launchd(Manager):
    """launchd's domain of this user at the screen. `rest`: seconds between two tries."""

    title: ClassVar[str] = "launchd"

    def __init__(self, *, rest: float = _REST_SECONDS) -> None:
        self._domain = f"gui/{os.getuid()}"
        self._target = f"{self._domain}/{LABEL}"
        self._rest = rest

    @property
    def file(self) -> Path:
        """Below ~/Library/LaunchAgents, where launchd looks at each login."""
        return paths.home() / "Library/LaunchAgents" / f"{LABEL}.plist"

    def install(self, program: Path, env: Mapping[str, str]) -> Installed:
        """Write the plist and load it; where nobody is logged in at the screen, the next login does."""
        log = paths.log_file()
        paths.ensure_private_dir(log.parent)
        self.file.parent.mkdir(parents=True, exist_ok=True)
        environment = carried(env, {"PATH": PATH})
        remarks = told(environment)
        files.write_own(self.file, render(program, paths.home(), log, environment), mode=0o644)
        if not self._at_the_screen():
            return Installed(
                self.file,
                None,
                (
                    *remarks,
                    "Nobody is logged in at the screen, so it starts at the next login; "
                    "until then `agent-bridge up` runs it.",
                ),
            )
        self._unload()
        end_unmanaged()
        self._load()
        return Installed(
            self.file, self._check(log), (*remarks, "It runs while you are logged in at the screen.")
        )

    def uninstall(self) -> bool:
        """Unload the agent and remove its plist."""
        was_there = self.is_installed()
        self._unload()
        self.file.unlink(missing_ok=True)
        return was_there

    def start(self) -> None:
        """Start the agent, loading it first where it isn't."""
        if client.service_is_running() and not self._is_loaded():
            end_unmanaged()
        if self._is_loaded():
            self._must("kickstart", self._target)
        else:
            self._load()
        wait_for_answer()

    def stop(self) -> None:
        """Have it end by itself: it stays loaded, and its exit code 0 isn't answered by a restart."""
        if self._is_loaded():
            self._ask("kill", "SIGTERM", self._target)
        end_unmanaged()

    def restart(self) -> None:
        """Restart it."""
        if not self._is_loaded():
            self.start()
            return
        self._must("kickstart", "-k", self._target)
        wait_for_answer()

    def _load(self) -> None:
        # A former `unload -w` or `disable` outlives the file, and bootstrap then fails without a reason.
        self._ask("enable", self._target)
        for _ in range(_TRIES):
            done = self._ask("bootstrap", self._domain, str(self.file))
            if done.returncode not in _AGAIN:
                break
            time.sleep(self._rest)
        if done.returncode or not self._is_loaded():
            raise ManagerError(
                "launchd didn't take the service.",
                path=self.file,
                detail=done.stderr.strip() or f"exit code {done.returncode}",
                remedy="See whether it is switched off in System Settings, Login Items; "
                "`agent-bridge up` runs it without launchd.",
            )

    def _unload(self) -> None:
        """Unload what is loaded, and wait for it: launchd answers before it has done it."""
        done = self._ask("bootout", self._target)
        if done.returncode in _UNKNOWN:
            return
        deadline = time.monotonic() + _BOOTOUT_SECONDS
        while self._is_loaded():
            if time.monotonic() >= deadline:
                raise ManagerError("launchd didn't let go of the service.", detail=done.stderr.strip())
            time.sleep(self._rest)

    def _check(self, log: Path) -> int | None:
        try:
            status: dict[str, Any] = wait_for_answer()
        except AgentBridgeError as error:
            raise ManagerError(
                "launchd took the service, but it doesn't answer.",
                detail=str(error),
                path=log,
                remedy="Its log says why: `agent-bridge logs`.",
            ) from error
        pid = status.get("pid")
        return pid if isinstance(pid, int) else None

    def _at_the_screen(self) -> bool:
        return self._ask("print", self._domain).returncode == 0

    def _is_loaded(self) -> bool:
        return self._ask("print", self._target).returncode == 0

    def _must(self, *words: str) -> None:
        done = self._ask(*words)
        if done.returncode:
            raise ManagerError(f"`launchctl {' '.join(words)}` failed.", detail=done.stderr.strip())

    def _ask(self, *words: str) -> subprocess.CompletedProcess[str]:
        return run_command(["launchctl", *words])


def render(program: Path, home: Path, log: Path, environment: Mapping[str, str]) -> bytes:
    """The plist with everything written out: launchd expands nothing."""
    agent: dict[str, Any] = plistlib.loads(shipped(f"{LABEL}.plist"))
    agent |= {
        "ProgramArguments": [str(program), "service", "run"],
        "WorkingDirectory": str(home),
        "StandardOutPath": str(log),
        "StandardErrorPath": str(log),
    }
    if environment:
        agent["EnvironmentVariables"] = dict(environment)
    return plistlib.dumps(agent, sort_keys=False)
