"""The watcher for systems other than Linux: watchdog's own observer through its public interface."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from agent_bridge.watch.events import FileEvent, Interest, Kind, Sink

if TYPE_CHECKING:
    from watchdog.events import FileSystemEvent
    from watchdog.observers.api import ObservedWatch


class NativeWatcher:
    """watchdog's own observer through its public interface; FSEvents on macOS."""

    def __init__(self, sink: Sink) -> None:
        from watchdog.observers import Observer

        _pair_moves_at_once()
        self._sink = sink
        self._observer = Observer()
        self.name = type(self._observer).__name__
        self._watches: dict[Path, ObservedWatch] = {}
        self._log = _OverflowLog(self._overflow)
        logging.getLogger("watchdog").addHandler(self._log)
        self._observer.start()

    def watch(self, directory: Path, interest: Interest) -> None:
        self.unwatch(directory)
        handler = _NativeHandler(directory, interest, self._sink)
        # Observers follow no link at the end of a path; events then name the real one.
        real = os.path.realpath(directory)
        self._watches[directory] = self._observer.schedule(handler, real, event_filter=_native_filter())  # type: ignore[arg-type]

    def unwatch(self, directory: Path) -> None:
        watch = self._watches.pop(directory, None)
        if watch is not None:
            self._observer.unschedule(watch)

    def is_alive(self) -> bool:
        return self._observer.is_alive() and all(emitter.is_alive() for emitter in self._observer.emitters)

    def close(self) -> None:
        logging.getLogger("watchdog").removeHandler(self._log)
        self._observer.stop()
        self._observer.join(2.0)

    def _overflow(self) -> None:
        for directory in tuple(self._watches)[:1]:
            self._sink(FileEvent(Kind.OVERFLOW, directory, "", is_directory=True))


class _NativeHandler:
    """Takes watchdog's events for one directory."""

    def __init__(self, directory: Path, interest: Interest, sink: Sink) -> None:
        self._directory = directory
        self._real = os.path.realpath(directory)
        self._interest = interest
        self._sink = sink

    def dispatch(self, event: FileSystemEvent) -> None:
        if event.event_type == "moved":
            self._report(Kind.REMOVED, event.src_path, is_directory=event.is_directory)
            self._report(Kind.MOVED, event.dest_path, is_directory=event.is_directory)
            return
        kinds = {
            "created": Kind.CREATED,
            "modified": Kind.MODIFIED,
            "closed": Kind.CLOSED,
            "deleted": Kind.REMOVED,
        }
        self._report(
            kinds.get(event.event_type, Kind.ATTRIBUTES), event.src_path, is_directory=event.is_directory
        )

    def _report(self, kind: Kind, path: bytes | str, *, is_directory: bool) -> None:
        parent, name = os.path.split(os.fsdecode(path))
        if os.fsdecode(path) == self._real:
            self._sink(FileEvent(Kind.SELF, self._directory, "", is_directory=True))
        elif parent == self._real and self._interest.wants(name):
            self._sink(FileEvent(kind, self._directory, name, is_directory))


class _OverflowLog(logging.Handler):
    """Hears of lost events where watchdog tells its log only (7.1: "Inotify queue overflowed")."""

    def __init__(self, overflowed: Callable[[], None]) -> None:
        super().__init__(logging.WARNING)
        self._overflowed = overflowed

    def emit(self, record: logging.LogRecord) -> None:
        if "overflow" in record.getMessage().lower():
            self._overflowed()


def _native_filter() -> list[type[FileSystemEvent]]:
    """Everything but opening and reading: with those, watchdog's own walk of a tree floods its queue."""
    from watchdog import events

    return [
        events.FileCreatedEvent,
        events.FileModifiedEvent,
        events.FileClosedEvent,
        events.FileMovedEvent,
        events.FileDeletedEvent,
        events.FileAttribEvent,
        events.DirCreatedEvent,
        events.DirMovedEvent,
        events.DirDeletedEvent,
    ]


def _pair_moves_at_once() -> None:
    """Without this a file that leaves a watched directory holds up every later event for 0.5 s."""
    if sys.platform == "linux":
        from watchdog.observers.inotify_move_event_grouper import InotifyMoveEventGrouper

        InotifyMoveEventGrouper.delay = 0
