"""The watched directories: armed, checked by device and inode, compared with what is known of them."""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

from agent_bridge.files.filesystems import read_mounts, remote_type
from agent_bridge.watch.events import Interest, Sink
from agent_bridge.watch.listing import (
    Identity,
    Listing,
    changed_names,
    identity,
    list_directory,
    may_be_silent,
)
from agent_bridge.watch.observer import Watcher

_NOWHERE: Identity = (-1, -1)
TREE_LIMIT = 100
"""Directories of one tree that are watched; those beyond are polled."""


@dataclass(frozen=True, slots=True)
class Place:
    """A directory to watch, which need not exist yet."""

    path: Path
    interest: Interest = Interest.SETTINGS
    tree: bool = False
    """With the directories below it; only for small trees."""


class WatchState(enum.Enum):
    """How a directory is looked after."""

    WATCHED = "watching"
    POLLED = "polled"
    MISSING = "missing"


@dataclass(frozen=True, slots=True)
class WatchReport:
    """One directory: `backend` is the watcher's name or `polling`, `reason` says why it is polled."""

    path: Path
    place: Path
    backend: str
    state: WatchState
    reason: str


@dataclass(frozen=True, slots=True)
class Difference:
    """Paths that comparing found changed; `unannounced` are those that an event should have told."""

    paths: frozenset[Path] = frozenset()
    unannounced: frozenset[Path] = frozenset()

    def __or__(self, other: Difference) -> Difference:
        return Difference(self.paths | other.paths, self.unannounced | other.unannounced)


@dataclass(slots=True)
class _Watched:
    place: Place
    identity: Identity | None = None
    listing: Listing | None = None
    state: WatchState = WatchState.MISSING
    reason: str = ""


@dataclass(slots=True)
class WatchSet:
    """Keeps the wanted places watched through one watcher, and falls back to comparing where that can't be.

    `open_watcher` makes a watcher for a sink and may raise OSError; `polling` leaves it out altogether. Used
    by one thread. `rebuilt` counts new watchers after the first, `problem` says why there is none.
    """

    sink: Sink
    open_watcher: Callable[[Sink], Watcher]
    polling: bool = False
    rebuilt: int = 0
    problem: str = ""
    _watcher: Watcher | None = None
    _places: dict[Path, Place] = field(default_factory=dict)
    _watched: dict[Path, _Watched] = field(default_factory=dict)
    _looked_at: list[Path] | None = None

    def want(self, places: Iterable[Place]) -> frozenset[Path]:
        """Watch exactly these places from now on; what they hold now counts as known.

        Returns those that exist and were not watched so: who has looked at them before has to look again.
        """
        if self._watcher is None and not self.problem:
            self._open()
        self._places = _merged(places)
        for path in [
            path for path, watched in self._watched.items() if watched.place.path not in self._places
        ]:
            self._forget(path)
        new = set()
        for place in self._places.values():
            known = self._watched.get(place.path)
            if known is None or known.place != place:
                self._arm(place.path, place)
                if self._watched[place.path].identity is not None:
                    new.add(place.path)
        return frozenset(new)

    def place_of(self, directory: Path) -> Place | None:
        """The wanted place that a watched directory belongs to."""
        watched = self._watched.get(directory)
        return watched.place if watched is not None else None

    def compare(self, directories: Iterable[Path]) -> Difference:
        """Compare directories with what is known of them, and know the new state from now on."""
        found = Difference()
        for directory in directories:
            watched = self._watched.get(directory)
            if watched is not None:
                found |= self._compare(directory, watched)
        return found

    def compare_all(self) -> Difference:
        """Compare every directory; the full check."""
        return self.compare(tuple(self._watched))

    def compare_polled(self) -> Difference:
        """Compare those directories that no watcher looks after."""
        return self.compare(
            tuple(path for path, watched in self._watched.items() if watched.state is WatchState.POLLED)
        )

    def check_roots(self, *, every: bool = False) -> Difference:
        """Look whether each directory is still the one that was armed; arm what was replaced or came.

        Unless `every` is set those are left out whose watched parent announces that they come and go.
        """
        found = Difference()
        if self._looked_at is None:
            # Once a second for every root: worth remembering.
            self._looked_at = [path for path in self._watched if not self._parent_tells(path)]
        for path in tuple(self._watched) if every else self._looked_at:
            watched = self._watched.get(path)
            if watched is not None and identity(path) != watched.identity:
                found |= self._replaced(path, watched)
        return found

    def distrust(self, directory: Path) -> None:
        """Take a directory for replaced at the next look: a new one may have got the old one's inode."""
        watched = self._watched.get(directory)
        if watched is not None and watched.identity is not None:
            watched.identity = _NOWHERE
            self._looked_at = None

    def is_alive(self) -> bool:
        """Whether the watcher still works; True where none is wanted or possible."""
        return self._watcher is None or self._watcher.is_alive()

    def rebuild(self) -> None:
        """A new watcher with new watches; what was known stays known, so comparing finds what was lost."""
        self._close()
        self._open()
        self.rebuilt += 1
        for path, watched in tuple(self._watched.items()):
            if watched.identity is not None:
                self._watch(path, watched)

    def retry(self) -> None:
        """Try again to watch what is polled: watches or instances may have become free."""
        if self._watcher is None and not self.polling:
            self._open()
        for path, watched in tuple(self._watched.items()):
            if watched.state is WatchState.POLLED and watched.identity is not None:
                self._watch(path, watched)

    def reports(self) -> tuple[WatchReport, ...]:
        """All directories and how they are looked after."""
        name = self._watcher.name if self._watcher is not None else "polling"
        return tuple(
            WatchReport(
                path,
                watched.place.path,
                "polling" if watched.state is WatchState.POLLED else name,
                watched.state,
                watched.reason,
            )
            for path, watched in self._watched.items()
        )

    @property
    def backend(self) -> str:
        """The watcher's name, or `polling`."""
        return self._watcher.name if self._watcher is not None else "polling"

    def close(self) -> None:
        """Stop watching."""
        self._close()

    def _parent_tells(self, path: Path) -> bool:
        """Whether a directory needn't be looked at, as the watch on its parent announces what happens to it.

        A root that holds facts is looked at all the same: something may be mounted over it.
        """
        watched, parent = self._watched[path], self._watched.get(path.parent)
        if parent is None or parent.state is WatchState.POLLED:
            return False
        if watched.state is WatchState.MISSING:
            # Where the parent is missing too, it brings this one along when it comes.
            wanted = parent.place.interest.wants(path.name) and path.name not in (parent.listing or {})
            return wanted and (parent.state is WatchState.WATCHED or self._parent_tells(path.parent))
        if watched.identity == _NOWHERE or (
            path == watched.place.path and watched.place.interest is Interest.EVERYTHING
        ):
            return False
        entry = (parent.listing or {}).get(path.name)
        return entry is not None and not entry.silent

    def _open(self) -> None:
        if self.polling:
            return
        try:
            self._watcher = self.open_watcher(self.sink)
            self.problem = ""
        except OSError as error:
            self.problem = f"no file watcher could be made ({error.strerror or error}); comparing instead"

    def _close(self) -> None:
        watcher, self._watcher = self._watcher, None
        if watcher is not None:
            watcher.close()

    def _arm(self, path: Path, place: Place) -> None:
        """Watch first and list afterwards, so that nothing falls between."""
        watched = _Watched(place, identity(path))
        self._watched[path] = watched
        self._looked_at = None
        if watched.identity is None:
            return
        self._watch(path, watched)
        watched.listing = list_directory(path, place.interest)
        self._arm_below(path, watched)

    def _arm_below(self, path: Path, watched: _Watched) -> None:
        """Watch what lies below and belongs to the tree, or is wanted by itself and was missing."""
        for name, entry in (watched.listing or {}).items():
            if not entry.is_directory:
                continue
            known = self._watched.get(path / name)
            if known is not None and known.state is WatchState.MISSING:
                self._arm(path / name, known.place)
            elif known is None and watched.place.tree and not entry.silent:
                self._arm(path / name, watched.place)

    def _watch(self, path: Path, watched: _Watched) -> None:
        reason = self._why_poll(path, watched)
        if not reason and self._watcher is not None:
            try:
                self._watcher.watch(path, watched.place.interest)
            except OSError as error:
                reason = f"can't be watched: {error.strerror or error}"
        watched.reason = reason
        watched.state = WatchState.POLLED if reason else WatchState.WATCHED
        self._looked_at = None

    def _why_poll(self, path: Path, watched: _Watched) -> str:
        if self._watcher is None:
            return self.problem or "polling is set"
        remote = remote_type(path, read_mounts())
        if remote is not None:
            return f"{remote} doesn't report changes made elsewhere"
        siblings = sum(other.place.path == watched.place.path for other in self._watched.values())
        return f"more than {TREE_LIMIT} directories" if siblings > TREE_LIMIT else ""

    def _compare(self, path: Path, watched: _Watched) -> Difference:
        before = watched.listing
        after = list_directory(path, watched.place.interest) if watched.identity is not None else None
        watched.listing = after
        names = changed_names(before, after)
        if any(path / name in self._watched for name in names):
            self._looked_at = None
        told = watched.state is WatchState.WATCHED
        found = Difference(
            frozenset(path / name for name in names),
            frozenset(path / name for name in names if told and not may_be_silent(name, before, after)),
        )
        for name in names:
            below = self._watched.get(path / name)
            if below is not None:
                found |= self._replaced(path / name, below)
        known = set(self._watched)
        self._arm_below(path, watched)
        for new in self._watched.keys() - known:
            found |= Difference(self._everything(new))
        return found

    def _replaced(self, path: Path, watched: _Watched) -> Difference:
        """The path leads elsewhere than it did: what lay there and what lies there now both changed."""
        if identity(path) == watched.identity:
            return Difference()
        before = self._everything(path)
        for below in [other for other in self._watched if other != path and other.is_relative_to(path)]:
            if self._watched[below].place.path == watched.place.path:
                before |= self._everything(below)
                self._forget(below)
        self._forget(path)
        if path == watched.place.path or identity(path) is not None:
            self._arm(path, watched.place)
        after = {found for found in self._watched if found == path or found.is_relative_to(path)}
        return Difference(before.union(*(self._everything(found) for found in after), {path}))

    def _everything(self, path: Path) -> frozenset[Path]:
        watched = self._watched.get(path)
        listing = watched.listing if watched is not None else None
        return frozenset(path / name for name in listing or ())

    def _forget(self, path: Path) -> None:
        self._watched.pop(path, None)
        self._looked_at = None
        if self._watcher is not None:
            self._watcher.unwatch(path)


def _merged(places: Iterable[Place]) -> dict[Path, Place]:
    """One place a path: the widest of those asked for."""
    merged: dict[Path, Place] = {}
    for place in places:
        known = merged.get(place.path, place)
        everything = Interest.EVERYTHING in (place.interest, known.interest)
        merged[place.path] = Place(
            place.path,
            Interest.EVERYTHING if everything else Interest.SETTINGS,
            place.tree or known.tree,
        )
    return merged
