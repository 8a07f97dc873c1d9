"""Telling the service manager how it stands: sd_notify(3), on the standard library alone."""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping


class Notifier:
    """Sends datagrams to the manager; does nothing where there is none (a shell, launchd, `up`).

    The manager is found by NOTIFY_SOCKET; `@` at its start means an abstract socket. `watchdog_interval` is
    how often `watchdog` must be called, in seconds (half of WATCHDOG_USEC); None when nobody asks.
    """

    def __init__(self, env: Mapping[str, str] | None = None) -> None:
        environment = os.environ if env is None else env
        address = environment.get("NOTIFY_SOCKET", "")
        self._address = "\0" + address[1:] if address.startswith("@") else address
        self.watchdog_interval = _watchdog_interval(environment) if address else None

    def ready(self, status: str) -> None:
        """Everything is up to date, the service works."""
        self._send(f"READY=1\nSTATUS={status}")

    def status(self, text: str) -> None:
        """The line that `systemctl status` shows."""
        self._send(f"STATUS={text}")

    def watchdog(self) -> None:
        """The main loop has come round. Not waited for: a manager that is busy must not hold the loop up."""
        self._send("WATCHDOG=1", patience=0.0)

    def extend_start(self, seconds: float) -> None:
        """Starting takes longer: give it so many seconds from now on."""
        self._send(f"EXTEND_TIMEOUT_USEC={int(seconds * 1_000_000)}", patience=0.0)

    def stopping(self) -> None:
        """The service is about to end."""
        self._send("STOPPING=1")

    def _send(self, text: str, *, patience: float = 1.0) -> None:
        if not self._address:
            return
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
                sender.settimeout(patience)
                sender.sendto(text.encode(), self._address)
        except OSError:
            # The manager is being restarted, busy or gone, or no file descriptor is left for it; the service
            # goes on without it.
            return


def _watchdog_interval(environment: Mapping[str, str]) -> float | None:
    microseconds = environment.get("WATCHDOG_USEC", "")
    if not microseconds.isdecimal() or environment.get("WATCHDOG_PID", str(os.getpid())) != str(os.getpid()):
        return None
    return int(microseconds) / 2_000_000 or None
