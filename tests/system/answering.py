"""The manager that already serves the user who runs the tests: a desktop's, a hosted runner's.

The service gets a HOME of its own by a drop-in, so that nothing of the user's is read or changed; its unit
has to lie where the manager looks, and is taken away again.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

from system.seat import UNIT, Seat

_FOREIGN = ("AGENT_BRIDGE_", "CLAUDE", "CODEX", "GIT_", "OPENCODE", "GEMINI")
_FOREIGN_PLACES = ("XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME")


class OccupiedError(Exception):
    """The user has agent-bridge installed in this manager."""


class AnsweringManager(Seat):
    """The user's own manager, with a throw-away home for the service."""

    def __init__(self) -> None:
        self.program = Path(sys.prefix) / "bin/agent-bridge"
        self.home = Path(tempfile.mkdtemp(prefix="abhome", dir="/tmp")).resolve()
        self._dropin = Path()

    def __enter__(self) -> AnsweringManager:
        known = dict(line.partition("=")[::2] for line in self.systemctl("show-environment").splitlines())
        config = Path(known.get("XDG_CONFIG_HOME") or Path(known["HOME"]) / ".config")
        if self.systemctl("cat", UNIT, check=False):
            shutil.rmtree(self.home)
            raise OccupiedError
        self._dropin = config / "systemd/user" / f"{UNIT}.d"
        self.set_dropin("00-home", f"[Service]\nEnvironment=HOME={self.home}\n")
        return self

    def __exit__(self, *_: object) -> None:
        self.bridge("service", "uninstall", check=False)
        shutil.rmtree(self._dropin, ignore_errors=True)
        self.systemctl("daemon-reload", check=False)
        shutil.rmtree(self.home, ignore_errors=True)

    @property
    def units(self) -> Path:
        return self._dropin.parent

    def command(self, words: tuple[str, ...], env: Mapping[str, str]) -> list[str]:
        settings = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(_FOREIGN) and name not in _FOREIGN_PLACES
        } | {"HOME": str(self.home), "XDG_RUNTIME_DIR": _runtime()}
        clean = ["env", "-i", *(f"{name}={value}" for name, value in (settings | dict(env)).items())]
        return [*clean, "sh", "-c", 'cd && exec "$@"', "sh", *words]


def a_manager_answers() -> bool:
    """Whether this user has a manager that works."""
    if shutil.which("systemctl") is None:
        return False
    asked = subprocess.run(
        ["systemctl", "--user", "is-system-running"],
        env=os.environ | {"XDG_RUNTIME_DIR": _runtime()},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    return asked.stdout.strip() in ("running", "degraded")


def _runtime() -> str:
    return os.environ.get("XDG_RUNTIME_DIR") or f"/run/user/{os.getuid()}"
