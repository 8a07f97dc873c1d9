"""Whether the program that started the shim still lives: others may hold the pipe open after its death."""

from __future__ import annotations

import os

LOOK_S = 0.5
"""How often to look, where the kernel doesn't tell by itself."""


class Parent:
    """`descriptor` becomes readable at the parent's death; None where only looking helps."""

    __slots__ = ("_pid", "descriptor")

    def __init__(self) -> None:
        self._pid = os.getppid()
        self.descriptor: int | None = None
        try:
            self.descriptor = os.pidfd_open(self._pid)
        except (AttributeError, OSError):
            return  # Not Linux, or not allowed.

    def is_gone(self) -> bool:
        """Whether somebody else is the parent now."""
        return os.getppid() != self._pid
