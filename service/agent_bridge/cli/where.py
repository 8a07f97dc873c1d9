"""Which store a command speaks of: the project's, from a directory, or the user's global one."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from agent_bridge import paths, projects
from agent_bridge.errors import NotFoundError, RefusedError, UsageError
from agent_bridge.memory.fact import Fact
from agent_bridge.memory.store import Store

if TYPE_CHECKING:
    from agent_bridge.config import Settings


class ScopeName(StrEnum):
    """The two scopes, as they are typed."""

    project = "project"
    global_ = "global"


ScopeOption = Annotated[
    ScopeName | None, typer.Option("--scope", help="The project's memory, or the one for all your projects.")
]
ProjectOption = Annotated[
    Path | None,
    typer.Option("--project", metavar="DIR", help="A directory of the project (default: the current one)."),
]


@dataclass(frozen=True, slots=True)
class Place:
    """A store with its scope; `root` is the project's directory (None for scope global)."""

    scope: ScopeName
    store: Store
    directory: Path
    root: Path | None

    @property
    def exists(self) -> bool:
        """Whether there is anything to read."""
        return self.directory.is_dir()

    @property
    def cache_file(self) -> Path:
        """Where search keeps its index of this store."""
        name = "global" if self.root is None else projects.id_for(self.root)
        return paths.cache_dir() / "search" / f"{name}.sqlite"


def start_directory(directory: Path | None) -> Path:
    """`--project`, or the current directory. Raises UsageError where that isn't one."""
    try:
        start = Path.cwd() if directory is None else directory.expanduser()
    except (FileNotFoundError, RuntimeError) as error:
        raise UsageError(
            "The current directory doesn't exist any more." if directory is None else str(error)
        ) from error
    if not start.is_dir():
        raise UsageError("There is no such directory", path=start)
    return start


def project_place(directory: Path | None, settings: Settings | None = None) -> Place:
    """The store of the project that `directory` (default: the current one) lies in; it needn't exist.

    `settings` matter to writing only.
    """
    start = start_directory(directory)
    known = projects.find_project(start)
    root = projects.locate(start) if known is None else known.root
    state = paths.project_state(projects.id_for(root))
    store_directory = root / projects.STORE_NAME
    store = _store(ScopeName.project, store_directory, state, settings)
    return Place(ScopeName.project, store, store_directory, root)


def global_place(settings: Settings | None = None) -> Place:
    """The store of scope global; it needn't exist."""
    directory = paths.global_store()
    store = _store(ScopeName.global_, directory, paths.user_state(), settings)
    return Place(ScopeName.global_, store, directory, None)


def readable(scope: ScopeName | None, directory: Path | None) -> tuple[Place, ...]:
    """The existing stores that a reading command looks at: the project's, then the global one."""
    places = []
    if scope is not ScopeName.global_:
        places.append(project_place(directory))
    if scope is not ScopeName.project:
        places.append(global_place())
    return tuple(place for place in places if place.exists)


def writable(scope: ScopeName | None, directory: Path | None) -> Place:
    """The store that a new fact goes into. The global one is made when needed; a project asks for `init`.

    Raises RefusedError where the project has no store: nothing appears in a repository unasked.
    """
    from agent_bridge.config import load_settings  # late: it takes 0.1 s, and reading needs no settings
    from agent_bridge.projection.guard import guard
    from agent_bridge.projection.presence import check_store

    settings = load_settings()
    if scope is ScopeName.global_:
        place = global_place(settings)
        place.store.create()
        if not projects.load_projects():
            guard(place.store)  # homes are kept in repositories too, and nobody else looks after it yet
        return place
    place = project_place(directory, settings)
    check_store(place.directory)
    if not place.exists:
        raise RefusedError(
            "This project has no memory yet",
            path=place.root,
            remedy="Set it up with `agent-bridge init`, or use the memory of all projects: `--scope global`.",
        )
    return place


def holding(name: str, scope: ScopeName | None, directory: Path | None) -> tuple[Place, Fact]:
    """The fact called `name` (id, path or the unambiguous beginning of an id) and where it is.

    Without a scope the project's store comes first. Raises NotFoundError.
    """
    missing: NotFoundError | None = None
    for place in readable(scope, directory):
        try:
            return place, place.store.find(name)
        except NotFoundError as error:
            missing = missing or error
    raise missing or NotFoundError(f"There is no fact {name!r}.", remedy="`agent-bridge list` shows all.")


def _store(scope: ScopeName, directory: Path, state: Path, settings: Settings | None) -> Store:
    if settings is None:
        return Store(directory, scope=scope.value, state=state)
    return Store(
        directory,
        scope=scope.value,
        state=state,
        lock_timeout_s=settings.lock_timeout_s,
        threshold=settings.similarity,
    )
