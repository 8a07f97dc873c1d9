"""The stores of facts for the tools that agents call: which one a directory's is, and writing into it.

Facts that wait for the same store are written in one go, by one thread a store: with sixteen clients at once
the store is looked at once for sixteen facts.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal, TypeVar

from agent_bridge import git, paths, projects
from agent_bridge.config import Settings
from agent_bridge.daemon.mcp_projects import ProjectFinder
from agent_bridge.errors import AgentBridgeError, NotRunningError
from agent_bridge.mcp.ports import NoProject, Removed, StorePlace
from agent_bridge.memory.adding import Added
from agent_bridge.memory.draft import Draft
from agent_bridge.memory.search import Search
from agent_bridge.memory.store import Store
from agent_bridge.projection import forget as forgetting
from agent_bridge.projection.forget import Forgotten
from agent_bridge.projection.guard import guard
from agent_bridge.projection.presence import check_store

T = TypeVar("T")

MOST_IN_ONE_GO = 64
"""Facts that are written while the store's lock is held once; others want it too."""

_Waiting = tuple[Draft, "Future[Added]"]


@dataclass(slots=True)
class _Kept:
    """A store's place with its turn and what waits to be added. `is_free` guards `waiting`."""

    place: StorePlace
    turn: threading.RLock = field(default_factory=threading.RLock)
    waiting: list[_Waiting] = field(default_factory=list)
    is_free: threading.Lock = field(default_factory=threading.Lock)
    writer: ThreadPoolExecutor | None = None


class ServiceMemory:
    """`mcp.ports.MemoryPort`, by the user's own list of projects. Thread-safe."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._projects = ProjectFinder()
        self._kept: dict[Path, _Kept] = {}
        self._changing = threading.Lock()
        self._is_closed = False

    def project(self, start: Path | None) -> StorePlace | NoProject:
        """The store of the project that a directory lies in; see the port."""
        if start is None or not os.path.isdir(start):  # noqa: PTH112 (Path.is_dir raises)
            return NoProject("no-directory")
        known = self._projects.find(start)
        root = projects.locate(start) if known is None else known.root
        directory = root / projects.STORE_NAME
        check_store(directory)
        if known is not None and directory.is_dir():
            return self._at(directory, root)
        readable = self._unkept(directory, root) if directory.is_dir() else None
        if known is None and git.find_checkout(root) is None:
            return NoProject("no-repository", root, readable)
        return NoProject("not-set-up", root, readable)

    def everybodys(self) -> StorePlace:
        """The store of scope global; it needn't exist."""
        return self._at(paths.global_store(), None)

    def serialized(self, place: StorePlace, work: Callable[[], T]) -> T:
        """What `work` returns, run while nobody else in this process works on that store."""
        kept = self._kept.get(place.store.root)
        if kept is None:
            return work()
        with kept.turn:
            return work()

    def add(self, place: StorePlace, draft: Draft) -> Future[Added]:
        """Add a fact; see the port. Raises NotRunningError after `close`."""
        kept = self._kept[place.store.root]
        told: Future[Added] = Future()
        with kept.is_free:
            if self._is_closed:
                raise NotRunningError("The service is about to end", remedy="Try again in a moment.")
            if kept.writer is None:
                kept.writer = ThreadPoolExecutor(1, thread_name_prefix="mcp-memory")
            kept.waiting.append((draft, told))
            kept.writer.submit(self._write, kept)
        return told

    def remove(self, place: StorePlace, key: str) -> Removed:
        """Take a fact out as `agent-bridge rm` does; see the port."""

        def work() -> Removed:
            fact = place.store.find(key)
            done = forgetting.forget(_owned(place), fact, self._settings, now=datetime.now(UTC))
            return Removed(fact, _notes(done))

        return self.serialized(place, work)

    def apply(self, settings: Settings) -> None:
        """Take new settings; what waits to be written is written by them."""
        with self._changing:
            self._settings = settings
            for directory, kept in self._kept.items():
                kept.place = replace(kept.place, store=self._store(directory, kept.place.root))

    def close(self) -> None:
        """Wait until everything that was asked for is written; nothing is added after that."""
        self._is_closed = True
        for kept in list(self._kept.values()):
            with kept.is_free:  # who adds has either handed it over by now, or sees that it is too late
                writer = kept.writer
            if writer is not None:
                writer.shutdown()

    def _at(self, directory: Path, root: Path | None) -> StorePlace:
        with self._changing:
            kept = self._kept.get(directory)
            if kept is None:
                scope: Literal["project", "global"] = "global" if root is None else "project"
                place = StorePlace(scope, self._store(directory, root), Search(_cache_file(root)), root)
                kept = self._kept[directory] = _Kept(place)
            return kept.place

    def _unkept(self, directory: Path, root: Path) -> StorePlace:
        """A store of a project that isn't set up; nothing is written for it, not even a cache."""
        return StorePlace("project", self._store(directory, root), Search(None), root)

    def _store(self, directory: Path, root: Path | None) -> Store:
        return Store(
            directory,
            scope="global" if root is None else "project",
            state=paths.user_state() if root is None else paths.project_state(projects.id_for(root)),
            lock_timeout_s=self._settings.lock_timeout_s,
            threshold=self._settings.similarity,
        )

    def _write(self, kept: _Kept) -> None:
        """Add what waits by now; what came while this was written is the next turn's."""
        with kept.is_free:
            group, kept.waiting = kept.waiting[:MOST_IN_ONE_GO], kept.waiting[MOST_IN_ONE_GO:]
        group = [one for one in group if one[1].set_running_or_notify_cancel()]
        if not group:
            return
        try:
            with kept.turn:
                _ready(kept.place)
                done = kept.place.store.add_all([draft for draft, _ in group])
        except BaseException as error:
            for _, told in group:
                told.set_exception(error)
            if not isinstance(error, Exception):
                raise
            return
        for (_, told), one in zip(group, done, strict=True):
            if isinstance(one, AgentBridgeError):
                told.set_exception(one)
            else:
                told.set_result(one)


def _ready(place: StorePlace) -> None:
    """What a store needs before anything is written into it. Raises AgentBridgeError."""
    if place.root is not None:
        check_store(place.store.root)
        return
    place.store.create()
    if not projects.load_projects():
        guard(place.store)  # homes are kept in repositories too, and nobody else looks after it yet


def _cache_file(root: Path | None) -> Path:
    name = "global" if root is None else projects.id_for(root)
    return paths.cache_dir() / "search" / f"{name}.sqlite"


def _owned(place: StorePlace) -> forgetting.Place:
    """The place with who is served from it."""
    cache = _cache_file(place.root)
    if place.root is None:
        return forgetting.Place(place.store, None, cache, is_global=bool(projects.load_projects()))
    return forgetting.Place(place.store, projects.find_project(place.root), cache)


def _notes(done: Forgotten) -> tuple[str, ...]:
    """What is left of a fact, in sentences."""
    notes = [
        "It held a secret, so no copy was kept."
        if done.kept is None
        else "A copy of it is kept; `agent-bridge history` tells where."
    ]
    if done.in_git:
        notes.append("Git's history keeps what was committed of it; the removal is the user's to commit.")
    notes += [f"{path} still has it." for path in done.still_in]
    notes += [f"{path} says the same in words of its own." for path in done.said_by_others]
    notes += [f"The agents' files aren't in line yet: {trouble}" for trouble in done.troubles]
    return tuple(notes)
