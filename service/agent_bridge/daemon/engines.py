"""The real engines, and the directories that each depends on."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from agent_bridge import git, paths
from agent_bridge.daemon.supervisor import Engine, Report
from agent_bridge.harnesses import all_harnesses
from agent_bridge.projection.presence import is_gone
from agent_bridge.projects import STORE_NAME, Project
from agent_bridge.watch.events import Interest
from agent_bridge.watch.watches import Place

if TYPE_CHECKING:
    from agent_bridge.config import Settings
    from agent_bridge.projection import engine as projection
    from agent_bridge.projection.survey import Survey

_LOCK_SECONDS = 2.0
"""A command that holds a project's lock for longer is waited for by trying again, not by standing still."""
_INSTRUCTION_DIRECTORIES = (".claude", ".claude/rules", ".opencode", ".gemini", ".agents", ".codex")
_DERIVED = frozenset({"index.json"})


class ProjectionEngines:
    """Makes the engines of `projection.engine`; each calls `step` between the steps of a pass."""

    def __init__(self, step: Callable[[], None]) -> None:
        self._step = step

    def of_project(self, project: Project, settings: Settings) -> Engine:
        """The engine of one project."""
        from agent_bridge.projection.engine import Engine as Projection

        return _Bound(Projection(project, _patient(settings), step=self._step), project)

    def of_user(self, settings: Settings) -> Engine:
        """The engine of the user's global store."""
        from agent_bridge.projection.engine import global_engine

        return _Bound(global_engine(_patient(settings), step=self._step), None)


class _Bound:
    """A projection engine with what the service must know besides: places, echoes, what Git is doing."""

    def __init__(self, engine: projection.Engine, project: Project | None) -> None:
        self._engine = engine
        self._project = project
        self._placed: tuple[Survey, tuple[Place, ...]] | None = None

    def reconcile(self, hint: frozenset[Path] = frozenset()) -> Report:
        return self._engine.reconcile(hint)

    def is_echo(self, path: Path) -> bool:
        if path.name in _DERIVED and path.parent == self._engine.store.root:
            return True
        return self._engine.is_echo(path)

    def busy(self) -> str | None:
        seen = self._engine.seen
        checkouts = seen.checkouts.values() if seen is not None else ()
        return next((doing for checkout in checkouts if (doing := git.activity(checkout))), None)

    def places(self) -> Iterable[Place]:
        if self._project is not None and is_gone(self._project.root):
            return (Place(self._project.root),)
        survey = self._engine.survey()
        if self._placed is None or self._placed[0] is not survey:
            self._placed = survey, tuple(self._places_of(survey))
        return self._placed[1]

    def _places_of(self, survey: Survey) -> Iterator[Place]:
        yield from _harness_places(survey)
        if self._project is None:
            yield Place(paths.global_store(), Interest.EVERYTHING, tree=True)
            return
        for site in survey.sites:
            yield Place(site.checkout)
            yield Place(site.checkout / STORE_NAME, Interest.EVERYTHING, tree=True)
            yield from (Place(site.checkout / name) for name in _INSTRUCTION_DIRECTORIES)
        if survey.checkout is not None:
            yield Place(survey.checkout.common_dir / "worktrees", Interest.EVERYTHING)


def _harness_places(survey: Survey) -> Iterable[Place]:
    for harness in all_harnesses():
        for site in survey.sites:
            yield from (Place(path) for path in harness.watch_places(site))


def _patient(settings: Settings) -> Settings:
    return settings.model_copy(update={"lock_timeout_s": min(_LOCK_SECONDS, settings.lock_timeout_s)})
