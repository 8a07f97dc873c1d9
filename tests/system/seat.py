"""A user with a systemd manager, as the tests see one."""

from __future__ import annotations

import json
import subprocess
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

PATIENCE = 20.0
UNIT = "agent-bridge.service"


class Seat(ABC):
    """`home` and `program` are paths as the user sees them; `program` is the installed entry point."""

    home: Path
    program: Path

    @abstractmethod
    def command(self, words: tuple[str, ...], env: Mapping[str, str]) -> list[str]:
        """What runs `words` as the user, with the manager's environment and `env`."""

    @property
    @abstractmethod
    def units(self) -> Path:
        """Where the manager looks for the user's units."""

    def set_dropin(self, name: str, text: str | None) -> None:
        """Add to the unit as an administrator would (`systemctl edit`); None takes it back."""
        path = self.units / f"{UNIT}.d" / f"{name}.conf"
        if text is None:
            self.run("sh", "-c", 'rm -f "$1"; rmdir "$(dirname "$1")"', "sh", str(path), check=False)
        else:
            self.write(path, text)
        self.systemctl("daemon-reload")

    def run(
        self, *words: str, env: Mapping[str, str] | None = None, check: bool = True
    ) -> subprocess.CompletedProcess[str]:
        """Run a command to its end; with `check` its failure fails the test."""
        done = subprocess.run(
            self.command(words, env or {}),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert not check or done.returncode == 0, f"{words}: {done.returncode}\n{done.stdout}{done.stderr}"
        return done

    def begin(self, *words: str, env: Mapping[str, str] | None = None) -> subprocess.Popen[str]:
        """Start a command and go on; it can be spoken to by its pipes."""
        return subprocess.Popen(
            self.command(words, env or {}), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def bridge(
        self, *words: str, env: Mapping[str, str] | None = None, check: bool = True
    ) -> subprocess.CompletedProcess[str]:
        """Run agent-bridge."""
        return self.run(str(self.program), *words, env=env, check=check)

    def make_project(self, name: str) -> Path:
        """A Git repository below the user's home, after `init`."""
        root = self.home / name
        self.run("git", "init", "-q", str(root))
        self.bridge("init", "--yes", "--project", str(root))
        return root

    def systemctl(self, *words: str, check: bool = True) -> str:
        """Ask the user manager; its answer."""
        return self.run("systemctl", "--user", "--no-pager", *words, check=check).stdout.strip()

    def shown(self, name: str, unit: str = UNIT) -> str:
        """A property of the unit."""
        return self.systemctl("show", f"--property={name}", "--value", unit)

    def kill(self, name: str, pid: str) -> None:
        """Send a signal, by the shell: not every system has a program for it."""
        self.run("sh", "-c", f'kill -{name} "$1"', "sh", pid)

    def status(self) -> dict[str, Any]:
        """The service's own status; {} while it doesn't answer."""
        done = self.bridge("status", "--json", check=False)
        data = json.loads(done.stdout)["data"] if done.stdout else None
        return data if isinstance(data, dict) else {}

    def journal(self, *words: str) -> list[dict[str, Any]]:
        """The unit's journal entries, newest last."""
        asked = self.run("journalctl", "--user", "--unit", UNIT, "--output", "json", *words)
        return [json.loads(line) for line in asked.stdout.splitlines()]

    def write(self, path: Path, text: str) -> None:
        """Write a file as the user."""
        script = 'mkdir -p "$(dirname "$1")" && cat >"$1"'
        with self.begin("sh", "-c", script, "sh", str(path)) as writer:
            writer.communicate(text)
        assert writer.returncode == 0

    def read(self, path: Path) -> str:
        """Read a file as the user; "" where there is none."""
        return self.run("cat", str(path), check=False).stdout

    def wait(self, what: str, fits: Callable[[], object], timeout: float = PATIENCE) -> None:
        """Wait until `fits`; the unit's state and log are told when it never does."""
        deadline = time.monotonic() + timeout
        while not fits():
            if time.monotonic() >= deadline:
                told = self.run("systemctl", "--user", "--no-pager", "status", UNIT, check=False)
                raise AssertionError(f"never came true: {what}\n{told.stdout}{told.stderr}")
            time.sleep(0.05)
