"""One thread that hears of changes in flat directories: what every kind of watcher can do."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Protocol

from agent_bridge.watch.events import Interest, Sink


class Watcher(Protocol):
    """Watches single directories, never what lies below them."""

    @property
    def name(self) -> str:
        """How it learns of changes: `inotify`, or the native observer's name."""

    def watch(self, directory: Path, interest: Interest) -> None:
        """Report changes in `directory` from now on; raises OSError when the system refuses."""

    def unwatch(self, directory: Path) -> None:
        """Report no more from `directory`; it may be gone, or never have been watched."""

    def is_alive(self) -> bool:
        """Whether events still come."""

    def close(self) -> None:
        """Stop; nothing is reported afterwards."""


def open_watcher(sink: Sink) -> Watcher:
    """The best watcher of this system. Raises OSError (EMFILE: no inotify instance left)."""
    if sys.platform == "linux":
        from agent_bridge.watch.inotify import InotifyWatcher

        return InotifyWatcher(sink)
    from agent_bridge.watch.native import NativeWatcher

    return NativeWatcher(sink)
