"""One engine a project, one for the user; each on its own: what fails in one doesn't touch the others."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from agent_bridge.daemon.jobs import utc
from agent_bridge.daemon.status import plain
from agent_bridge.errors import AgentBridgeError, LockTimeoutError
from agent_bridge.log import get_logger
from agent_bridge.projection.presence import EjectedError
from agent_bridge.projects import Project
from agent_bridge.watch.watches import Place, WatchReport, WatchState

if TYPE_CHECKING:
    from agent_bridge.config import Settings

USER = "global"
"""The key of what concerns the user rather than one project."""

_LEAST_REST = 0.25
"""Seconds between passes that nothing but an index asks for, however often it asks."""

_log = get_logger("supervisor")


class Report(Protocol):
    """What a pass says of itself (`projection.engine.Report`); the rest is read by name: it may grow."""

    @property
    def wrote(self) -> tuple[Path, ...]:
        """Files of others that changed."""

    @property
    def waiting(self) -> str | None:
        """Why tracked files wait for Git."""

    @property
    def index_due(self) -> float | None:
        """When (time.time()) another pass over everything is wanted without any change."""


class Engine(Protocol):
    """Makes one project's projections right, or the user's."""

    def reconcile(self, hint: frozenset[Path] = frozenset()) -> Report:
        """Compare and write what differs. `hint` are paths that changed; empty means look at everything."""

    def is_echo(self, path: Path) -> bool:
        """Whether `path` holds exactly what the last pass wrote there, so that its event tells nothing."""

    def places(self) -> Iterable[Place]:
        """Directories in which a change matters, existing or not."""

    def busy(self) -> str | None:
        """What Git is doing in this project right now; cheap."""


class Engines(Protocol):
    """Makes engines."""

    def of_project(self, project: Project, settings: Settings) -> Engine:
        """The engine of one project."""

    def of_user(self, settings: Settings) -> Engine | None:
        """The engine of the user scope, where there is one."""


@dataclass(slots=True)
class Unit:
    """One engine and how it did. `owed` are hints that no completed pass has covered."""

    key: str
    project: Project | None
    engine: Engine
    places: tuple[Place, ...] = ()
    generation: int = 0
    report: Report | None = None
    error: str | None = None
    last_pass: dict[str, Any] | None = None
    last_projection: dict[str, Any] | None = None
    owed: set[Path] = field(default_factory=set)
    retry: bool = False
    """The project's lock was held by somebody else; to be tried again soon."""
    git_was_busy: bool = False
    passed_at: float = 0.0
    """When (time.monotonic()) the last pass ended, well or not."""

    @property
    def waiting(self) -> str | None:
        """Why this unit's tracked files wait for Git."""
        return self.report.waiting if self.report is not None else None

    @property
    def index_due(self) -> float | None:
        """When (time.monotonic()) this unit wants another pass without any change."""
        due = self.report.index_due if self.report is not None and self.error is None else None
        if due is None:
            return None
        return max(time.monotonic() + due - time.time(), self.passed_at + _LEAST_REST)


class Supervisor:
    """Keeps the units in step with the list of projects, and runs their passes."""

    def __init__(self, engines: Engines, settings: Settings) -> None:
        self._engines = engines
        self._settings = settings
        self._units: dict[str, Unit] = {}
        self._failed_to_start: dict[str, tuple[Project | None, str]] = {}

    @property
    def units(self) -> Collection[Unit]:
        """All units, the user's first."""
        return self._units.values()

    def load(self, projects: Iterable[Project], settings: Settings | None = None) -> list[Unit]:
        """Have units for exactly these projects and the user; the new ones are returned, not yet reconciled.

        New `settings` make every unit new.
        """
        if settings is not None:
            self._settings = settings
            self._units.clear()
        wanted: dict[str, Project | None] = {USER: None} | {project.id: project for project in projects}
        if len(wanted) == 1:
            # The user's own files are written only where a project was set up.
            wanted.clear()
        self._failed_to_start.clear()
        for key in [
            key for key, unit in self._units.items() if key not in wanted or unit.project != wanted[key]
        ]:
            del self._units[key]
        return [unit for key in wanted if key not in self._units and (unit := self._start(key, wanted[key]))]

    def find_places(self, units: Iterable[Unit]) -> list[Place]:
        """Ask these units anew which directories they depend on; all units' places."""
        for unit in units:
            try:
                unit.places = tuple(unit.engine.places())
            except Exception as error:  # noqa: BLE001 (one project's failure must not stop the others)
                self._fail(unit, error)
        return [place for unit in self._units.values() for place in unit.places]

    def owners(self, place: Path) -> list[Unit]:
        """The units that depend on a watched place."""
        return [unit for unit in self._units.values() if any(wanted.path == place for wanted in unit.places)]

    def reconcile(self, unit: Unit, hint: Iterable[Path] = ()) -> None:
        """Run one pass of one unit; without a hint it looks at everything.

        Its failure is noted in the unit and told to the log only.
        """
        if self._units.get(unit.key) is not unit:
            return
        paths = frozenset(hint)
        unit.owed |= paths
        started = time.monotonic()
        try:
            report = unit.engine.reconcile(frozenset(unit.owed) if paths else frozenset())
        except EjectedError:
            # Taken out while this pass waited for the lock.
            del self._units[unit.key]
            return
        except LockTimeoutError as error:
            unit.retry = True
            _log.info("the project is locked; trying again", project=_name(unit), error=str(error))
            return
        except Exception as error:  # noqa: BLE001 (one project's failure must not stop the others)
            self._fail(unit, error)
            return
        self._note(unit, report, started)

    def describe(self, watches: Iterable[WatchReport]) -> tuple[list[dict[str, Any]], dict[str, Any] | None]:
        """The status of all projects, and of the user scope."""
        by_place: dict[Path, list[WatchReport]] = {}
        for watch in watches:
            by_place.setdefault(watch.place, []).append(watch)
        described = {unit.key: _describe(unit, by_place) for unit in self._units.values()}
        for key, (project, error) in self._failed_to_start.items():
            root = {"id": key, "root": str(project.root)} if project else {}
            described[key] = root | {"generation": 0, "state": "failed", "error": error}
        user = described.pop(USER, None)
        return list(described.values()), user

    def reasons(self) -> list[str]:
        """Why the units aren't well; [] when they are."""
        failed = [f"{_name(unit)}: {unit.error}" for unit in self._units.values() if unit.error]
        unmade = [
            f"{project.root if project else USER}: {why}" for project, why in self._failed_to_start.values()
        ]
        return failed + unmade

    def _start(self, key: str, project: Project | None) -> Unit | None:
        try:
            if project is None:
                engine = self._engines.of_user(self._settings)
            else:
                engine = self._engines.of_project(project, self._settings)
        except Exception as error:  # noqa: BLE001 (one project's failure must not stop the others)
            self._failed_to_start[key] = (project, _sentence(error))
            _log.exception("engine failed to start", project=str(project.root) if project else USER)
            return None
        if engine is None:
            return None
        self._units[key] = Unit(key, project, engine)
        return self._units[key]

    def _note(self, unit: Unit, report: Report, started: float) -> None:
        unit.passed_at = ended = time.monotonic()
        unit.git_was_busy = bool(report.waiting) and (unit.git_was_busy or unit.waiting is None)
        unit.error = None
        unit.retry = False
        unit.report = report
        unit.generation += 1
        if not report.waiting:
            unit.owed.clear()
        unit.last_pass = {"at": utc(time.time()), "ms": round((ended - started) * 1000, 3)}
        if report.wrote:
            unit.last_projection = unit.last_pass | {"paths": [str(path) for path in report.wrote]}
            _log.info("projected", project=_name(unit), files=len(report.wrote), ms=unit.last_pass["ms"])

    def _fail(self, unit: Unit, error: Exception) -> None:
        sentence = _sentence(error)
        # The same failure each minute would fill the journal.
        if sentence != unit.error:
            _log.error("pass failed", project=_name(unit), error=sentence, exc_info=error)
        unit.error = sentence
        unit.passed_at = time.monotonic()
        unit.last_pass = {"at": utc(time.time()), "ms": None}


def _name(unit: Unit) -> str:
    return str(unit.project.root) if unit.project is not None else USER


def _sentence(error: Exception) -> str:
    return str(error) if isinstance(error, AgentBridgeError) else f"{type(error).__name__}: {error}"


def _describe(unit: Unit, by_place: dict[Path, list[WatchReport]]) -> dict[str, Any]:
    report = unit.report
    state = (
        "failed" if unit.error else "starting" if report is None else "waiting" if report.waiting else "ok"
    )
    root = {"id": unit.key, "root": str(unit.project.root)} if unit.project is not None else {}
    return root | {
        "generation": unit.generation,
        "state": state,
        "facts": {
            "shared": _count(report, "shared"),
            "private": _count(report, "private"),
            "withheld": _count(report, "withheld"),
        },
        "last_projection": unit.last_projection,
        "last_pass": unit.last_pass,
        "waiting": report.waiting if report is not None else None,
        "error": unit.error,
        "problems": plain(getattr(report, "problems", ())),
        "notices": plain(getattr(report, "notices", ())),
        "candidates": _count(report, "candidates"),
        "left_out": plain(getattr(report, "left_out", ())),
        "watches": [
            {
                "path": str(watch.path),
                "backend": watch.backend,
                "state": watch.state.value,
                "reason": watch.reason,
            }
            for watch in _watches(unit, by_place)
        ],
    }


def _watches(unit: Unit, by_place: Mapping[Path, Sequence[WatchReport]]) -> list[WatchReport]:
    """What is watched for a unit, each once though several harnesses want the same directory."""
    found = [watch for place in unit.places for watch in by_place.get(place.path, ())]
    told = [one for one in found if one.state is not WatchState.MISSING or _must_exist(one.path, unit)]
    return list({(one.path, one.state, one.reason): one for one in told}.values())


def _must_exist(path: Path, unit: Unit) -> bool:
    return unit.project is not None and path in (unit.project.root, unit.project.store)


def _count(report: Report | None, name: str) -> int:
    value = getattr(report, name, 0)
    return value if isinstance(value, int) else len(value)
