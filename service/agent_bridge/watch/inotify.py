"""The watcher for Linux, on watchdog's inotify reader (`InotifyFD` of 7.1).

watchdog's observer and emitters stay out of it: they take a thread for each watch, hold every later event up
for 0.5 s when a file leaves the tree, say nothing of exhausted watches below a recursive one, and tell nobody
but their log of a queue overflow. The reader below them raises, tells, and needs one thread.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from agent_bridge.watch.events import FileEvent, Interest, Kind, Sink

if TYPE_CHECKING:
    from watchdog.observers.inotify_c import CallbackId, InotifyEvent, InotifyFD, Mask, WatchDescriptor


class InotifyWatcher:
    """Linux: one inotify instance, one thread, one watch a directory."""

    name = "inotify"

    def __init__(self, sink: Sink) -> None:
        from watchdog.observers.inotify_c import InotifyFD

        self._sink = sink
        self._reader = InotifyFD()
        self._watches: dict[Path, _InotifyWatch] = {}
        self._reader.start()

    def watch(self, directory: Path, interest: Interest) -> None:
        self.unwatch(directory)
        watch = _InotifyWatch(self._reader, directory, interest, self._sink)
        watch.start()
        self._watches[directory] = watch

    def unwatch(self, directory: Path) -> None:
        watch = self._watches.pop(directory, None)
        if watch is not None:
            watch.stop()

    def is_alive(self) -> bool:
        return self._reader.is_alive()

    def close(self) -> None:
        for watch in self._watches.values():
            watch.silence()
        self._watches.clear()
        self._reader.stop()
        self._reader.join(2.0)


class _InotifyWatch:
    """watchdog's callback for one directory: translates the kernel's masks (inotify(7))."""

    def __init__(self, reader: InotifyFD, directory: Path, interest: Interest, sink: Sink) -> None:
        self._reader = reader
        self._directory = directory
        self._interest = interest
        self._sink: Sink | None = sink
        self._descriptor: WatchDescriptor | None = None

    def start(self) -> None:
        descriptor = self._reader.add_callback(os.fsencode(self._directory), _mask(), self, self._id())
        if descriptor < 0:  # watchdog 7.1 swallows EACCES
            self._reader.remove_callbacks([(descriptor, self._id())])
            raise PermissionError(13, os.strerror(13), str(self._directory))
        self._descriptor = descriptor

    def stop(self) -> None:
        self.silence()
        if self._descriptor is not None:
            self._reader.remove_callbacks([(self._descriptor, self._id())])

    def silence(self) -> None:
        self._sink = None

    def on_event(self, event: InotifyEvent) -> None:
        name = os.fsdecode(event.name)
        if not name:
            if event.is_delete_self or event.is_move_self:
                self._report(Kind.SELF, "", is_directory=True)
        elif self._interest.wants(name):
            self._report(_kind(event), name, is_directory=event.is_directory)

    def on_watch_deleted(self, wd: WatchDescriptor) -> None:  # noqa: ARG002 (watchdog's signature)
        self._report(Kind.SELF, "", is_directory=True)

    def on_queue_overflow(self) -> None:
        self._report(Kind.OVERFLOW, "", is_directory=True)

    def _id(self) -> CallbackId:
        from watchdog.observers.inotify_c import CallbackId

        return CallbackId(id(self))

    def _report(self, kind: Kind, name: str, *, is_directory: bool) -> None:
        sink = self._sink
        if sink is not None:
            sink(FileEvent(kind, self._directory, name, is_directory))


def _mask() -> Mask:
    from watchdog.observers.inotify_c import InotifyConstants as C
    from watchdog.observers.inotify_c import Mask

    return Mask(
        C.IN_CREATE
        | C.IN_MODIFY
        | C.IN_ATTRIB
        | C.IN_CLOSE_WRITE
        | C.IN_MOVE
        | C.IN_DELETE
        | C.IN_DELETE_SELF
        | C.IN_MOVE_SELF
        | C.IN_ONLYDIR
    )


def _kind(event: InotifyEvent) -> Kind:
    if event.is_close_write:
        return Kind.CLOSED
    if event.is_moved_to:
        return Kind.MOVED
    if event.is_moved_from or event.is_delete:
        return Kind.REMOVED
    if event.is_create:
        return Kind.CREATED
    return Kind.ATTRIBUTES if event.is_attrib else Kind.MODIFIED
