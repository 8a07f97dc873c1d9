"""Starts the service in the background: by systemd or launchd where it is installed there."""

from __future__ import annotations

import subprocess
import sys


class Starter:
    """One start after another. `failed`: how the last one ended where it failed, else "".

    Where the manager didn't do it, the next start is without it.
    """

    __slots__ = ("_process", "_words", "failed")

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._words = ""
        self.failed = ""

    @property
    def is_running(self) -> bool:
        """Whether a start is under way."""
        return self._process is not None

    def start(self) -> None:
        """Begin a start; it goes on when the shim ends."""
        # Neither the client's working directory nor its descriptors: the service outlives the client.
        words = ("up",) if self.failed else ("service", "start")
        command = [sys.executable, "-P", "-m", "agent_bridge.cli.entry", *words]
        self._words = " ".join(words)
        try:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                cwd="/",
                start_new_session=True,
            )
        except OSError as error:
            self.failed = error.strerror or str(error)

    def has_ended(self) -> bool:
        """Whether a start has ended since the last time; `failed` tells how."""
        if self._process is None or self._process.poll() is None:
            return False
        code = self._process.returncode
        self.failed = f"`agent-bridge {self._words}` ended with {code}" if code else ""
        self._process = None
        return True

    def forget(self) -> None:
        """Leave a start under way to itself: the shim ends."""
        if self._process is not None:
            self._process.returncode = 0  # Else Popen warns that it wasn't waited for.
