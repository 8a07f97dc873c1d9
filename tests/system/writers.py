"""Watches who writes: one inotify queue over lock directories and targets keeps the order of everything.

A holder writes its name beside the lock (`lock.holder`) after it has the lock and removes it before it lets
go. So holders must come one after the other, and what is written into a target must fall within one.
"""

from __future__ import annotations

import ctypes
import os
import select
import struct
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

_CLOSE_WRITE, _MOVED_TO, _CREATE, _DELETE, _MODIFY, _OVERFLOW = 0x8, 0x80, 0x100, 0x200, 0x2, 0x4000
_HEADER = struct.Struct("iIII")
HOLDER = "lock.holder"


@dataclass
class Writers:
    """`holders` counts how often the lock was taken, `writes` what was seen written under it."""

    lock_directory: Path
    targets: Mapping[Path, frozenset[str]]
    """Directories, and the names in each that only a holder may write; their temporary files too."""
    holders: int = 0
    writes: int = 0
    faults: list[str] = field(default_factory=list)
    _held: bool = False

    def __enter__(self) -> Writers:
        libc = ctypes.CDLL(None, use_errno=True)
        self._queue = libc.inotify_init1(os.O_CLOEXEC | os.O_NONBLOCK)
        mask = _CLOSE_WRITE | _MOVED_TO | _CREATE | _DELETE | _MODIFY
        self._places: dict[int, Path] = {}
        for place in (self.lock_directory, *self.targets):
            watch = libc.inotify_add_watch(self._queue, os.fsencode(place), mask)
            assert watch > 0, os.strerror(ctypes.get_errno())
            self._places[watch] = place
        self._wake_read, self._wake_write = os.pipe()
        self._thread = threading.Thread(target=self._follow)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        os.write(self._wake_write, b"!")
        self._thread.join()
        for descriptor in (self._queue, self._wake_read, self._wake_write):
            os.close(descriptor)

    def _follow(self) -> None:
        while True:
            ready, _, _ = select.select([self._queue, self._wake_read], [], [])
            if self._queue in ready:
                self._take(os.read(self._queue, 1 << 20))
            elif self._wake_read in ready:
                return

    def _take(self, data: bytes) -> None:
        at = 0
        while at < len(data):
            watch, mask, _, length = _HEADER.unpack_from(data, at)
            at += _HEADER.size
            name = os.fsdecode(data[at : at + length].rstrip(b"\0"))
            at += length
            if mask & _OVERFLOW:
                self.faults.append("the observer's queue overflowed")
            elif self._places[watch] == self.lock_directory and name == HOLDER:
                self._holder(mask)
            elif self._concerns(self._places[watch], name):
                self._write(self._places[watch] / name)

    def _holder(self, mask: int) -> None:
        if mask & _CLOSE_WRITE:
            if self._held:
                self.faults.append("somebody took the lock while it was held")
            self._held = True
            self.holders += 1
        elif mask & _DELETE:
            if not self._held:
                self.faults.append("a lock was let go that nobody held")
            self._held = False

    def _write(self, path: Path) -> None:
        self.writes += 1
        if not self._held:
            self.faults.append(f"{path} was written without the lock")

    def _concerns(self, place: Path, name: str) -> bool:
        names = self.targets.get(place, frozenset())
        return name in names or any(name.startswith(f".{one}.") for one in names)
