"""The engine: keeps one owner's projections equal to its store; used by the service and by commands alike.

`reconcile` is the whole of it. With a hint (files of the store that changed) it reads just those, projects,
and only then compares everything else; without one it looks at everything afresh, unless nothing can have
changed since it last did (`signs`).
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from agent_bridge import files, git, paths
from agent_bridge.config import Settings
from agent_bridge.errors import AgentBridgeError
from agent_bridge.harnesses import in_use
from agent_bridge.harnesses.base import Notice
from agent_bridge.memory.fact import Fact
from agent_bridge.memory.snapshot import Problem, Snapshot
from agent_bridge.memory.store import Store
from agent_bridge.projection import (
    hook_context,
    hook_settings,
    housekeeping,
    mcp_settings,
    opencode_plugin,
    review,
    skill,
)
from agent_bridge.projection.derived import DerivedFiles
from agent_bridge.projection.ledger import Ledger
from agent_bridge.projection.native_live import NativeLive
from agent_bridge.projection.plan import Wanted, distinct
from agent_bridge.projection.presence import Presence, check_store
from agent_bridge.projection.projector import Outcome, Projector
from agent_bridge.projection.removed_worktrees import bring_home
from agent_bridge.projection.retire import former_carriers
from agent_bridge.projection.signs import Signs, signs
from agent_bridge.projection.survey import Survey, survey_project, survey_user
from agent_bridge.projection.worktrees import adopt_from_worktrees
from agent_bridge.projects import Project

_FIRST_READ = 4
"""So many changed files are read before the store is compared as a whole; of more, comparing is cheaper."""

_LOOK_AFRESH_S = 1800.0
"""Seconds after which everything is looked at afresh, whatever the signs say."""


@dataclass(frozen=True, slots=True)
class Report:
    """What is true after a pass.

    `project` is a project's id or "global". `generation` grows by one with every pass that ended.
    `wrote` are the files of others that changed in this pass. `waiting` says why tracked files wait for
    Git (None: nothing waits). `left_out` maps a file to the ids that its budget left out, and
    a harness for which there is no file to all of them. `index_due` is the
    wall-clock time (seconds since 1970) at which MEMORY.md or index.json wants another pass, None: never.
    `duration_ms` covers the pass, `projected_ms` the time until the blocks stood.
    """

    project: str
    generation: int
    wrote: tuple[Path, ...]
    waiting: str | None
    problems: tuple[Problem, ...]
    notices: tuple[Notice, ...]
    candidates: int
    facts: int
    shared: int
    private: int
    withheld: int
    left_out: dict[str, tuple[str, ...]]
    duration_ms: float
    projected_ms: float
    index_due: float | None


@dataclass(frozen=True, slots=True)
class _Rest:
    """What the last full pass left: nothing to do. `at` by the wall clock; `digest` of the store."""

    at: float
    digest: str
    signs: Signs
    report: Report


class Engine:
    """One project's engine, or with `project` None the user's, which projects the global store."""

    def __init__(
        self,
        project: Project | None,
        settings: Settings,
        *,
        wall: Callable[[], float] = time.time,
        step: Callable[[], None] = lambda: None,
    ) -> None:
        """`wall`: the clock, in seconds since 1970. `step` is called between the steps of a pass (one file,
        one fact) and may end it by raising."""
        self.project = project
        self._settings = settings
        self._wall = wall
        self._step = step
        self._presence = Presence(project)
        self._recovered = False
        self._began = False
        state = paths.user_state() if project is None else project.state
        self.state = state
        self.store = (
            Store(paths.global_store(), scope="global", state=state, step=step)
            if project is None
            else Store(project.store, scope="project", state=state, step=step)
        )
        self.ledger = Ledger(state)
        self._projector = Projector(self.ledger, state, step)
        self._survey: Survey | None = None
        self._rest: _Rest | None = None
        self._index_stamp: tuple[int, int, int] | None = None
        self._generation = 0
        self._indexed = ""
        self._told: tuple[Notice, ...] = ()
        self._failed = False
        self._lost: tuple[Notice, ...] = ()
        self._derived = DerivedFiles(self.store.root, self.ledger, grace=settings.claude_index_grace_s)
        self._native = NativeLive(project, self.store, settings)
        self._excluder = housekeeping.Excluder(project, self.ledger)

    @property
    def lock(self) -> Path:
        """What everything holds that writes for this owner."""
        return self.state / "lock"

    def reconcile(self, hint: frozenset[Path] = frozenset()) -> Report:
        """One pass. `hint`: absolute paths that changed; empty means look at everything.

        Raises AgentBridgeError only where nothing could be done at all (lock, ledger, the store's root), and
        EjectedError or GoneError where nothing may be written back (`presence`).
        """
        # A look from just before the first pass, to know what to watch, serves that pass too.
        first, self._began = not self._began, True
        started = time.monotonic()
        if not hint and self._rest is not None and self._is_still(self._rest):
            return self._still_so(self._rest.report, started)
        with files.locked(self.lock, timeout=self._settings.lock_timeout_s, purpose="projection"):
            self._presence.check()
            self.ledger.entries()  # unreadable, it stops everything here: nothing is written unrecorded
            self._rest = None
            inside = frozenset(path for path in hint if path.is_relative_to(self.store.root))
            full = inside != hint or not hint
            survey = self._looked(fresh=full and not first)
            self._step()
            self._recover()
            outcome, snapshot = self._project_first(survey, inside)
            adopted = self._adopt(survey) if full else ()
            whole = self.store.scan()
            if snapshot is None or whole.digest != snapshot.digest:
                outcome = self._project(survey, whole).after(outcome)
            if full:
                self._retire(survey, whole, outcome)
                in_use.record(self.state, survey.sites[0].used)
            projected = time.monotonic()
            due, kept = self._keep_house(survey, whole, outcome, full=full)
            gone = housekeeping.tell_missing_store(self.project)
            self._generation += 1
            at_rest = (
                not hint and due is None and not (gone or outcome.waiting or outcome.notices or self._failed)
            )
            seen = self._signs(survey) if at_rest else None
        notices = (*gone, *survey.notices, *outcome.notices, *adopted, *kept)
        report = self._report(whole, outcome, notices, due=due, started=started, projected=projected)
        self._rest = None if seen is None else _Rest(self._wall(), whole.digest, seen, report)
        return report

    def settle(self) -> None:
        """Write index.json, where it is stale; for when things have been quiet for a second."""
        snapshot = self.store.scan()
        if snapshot.digest != self._indexed:
            with files.locked(self.lock, timeout=self._settings.lock_timeout_s, purpose="index"):
                self._presence.check()
                self._write_json(snapshot)

    def is_echo(self, path: Path) -> bool:
        """Whether a changed file holds just what we wrote there last."""
        if not self._projector.knows(Path(os.path.realpath(path))):
            return False
        try:
            image = files.read_image(path)
        except AgentBridgeError:
            return False
        return image.existed and self._projector.wrote(image.real, image.data)

    def survey(self) -> Survey:
        """What was seen at the last full look."""
        return self._looked(fresh=False)

    @property
    def seen(self) -> Survey | None:
        """The last survey, however old."""
        return self._survey

    def _report(
        self,
        snapshot: Snapshot,
        outcome: Outcome,
        notices: Iterable[Notice],
        *,
        due: float | None,
        started: float,
        projected: float,
    ) -> Report:
        return Report(
            project="global" if self.project is None else self.project.id,
            generation=self._generation,
            wrote=tuple(dict.fromkeys(outcome.wrote)),
            waiting=outcome.waiting,
            problems=snapshot.problems,
            notices=tuple(dict.fromkeys(notices)),
            candidates=review.count_candidates(self.state),
            facts=len(snapshot.facts),
            shared=len(snapshot.shared),
            private=len(snapshot.private),
            withheld=len(snapshot.withheld),
            left_out=outcome.left_out,
            duration_ms=(time.monotonic() - started) * 1000,
            projected_ms=(projected - started) * 1000,
            index_due=due,
        )

    def _still_so(self, report: Report, started: float) -> Report:
        self._generation += 1
        took = (time.monotonic() - started) * 1000
        return replace(report, generation=self._generation, wrote=(), duration_ms=took, projected_ms=0.0)

    def _is_still(self, rest: _Rest) -> bool:
        """Whether everything is as it was when there was nothing left to do."""
        if self._survey is None or not 0 <= self._wall() - rest.at < _LOOK_AFRESH_S:
            return False
        return self.store.scan().digest == rest.digest and self._signs(self._survey) == rest.signs

    def _signs(self, survey: Survey) -> Signs:
        ours = [self._derived.index, self._derived.json, self.ledger.kept]
        ours += [review.candidates_directory(self.state), *hook_context.present(self.state)]
        seen = signs(survey, [*ours, *(Path(entry.path) for entry in self.ledger.entries())])
        return (*seen, *self._native.signature(survey))

    def _looked(self, *, fresh: bool) -> Survey:
        stamp = self._stamp()
        if self._survey is None or fresh or stamp != self._index_stamp:
            if self.project is None:
                self._survey = survey_user(self._settings)
            else:
                self._survey = survey_project(self.project, self._settings)
            self._index_stamp = self._stamp()
        return self._survey

    def _stamp(self) -> tuple[int, int, int] | None:
        checkout = None if self._survey is None else self._survey.checkout
        return None if checkout is None else git.index_stamp(checkout)

    def _project(self, survey: Survey, snapshot: Snapshot) -> Outcome:
        if self.project is not None:
            check_store(self.project.store)  # again: it may have become a link before it was read
        wanted = self._wanted(survey, snapshot)
        outcome = self._projector.project(survey.layout.targets, wanted, survey.checkouts)
        if wanted.facts:
            ids = tuple(fact.id for fact in wanted.facts)
            outcome.left_out.update(dict.fromkeys(survey.unserved, ids))
        return outcome

    def _retire(self, survey: Survey, snapshot: Snapshot, outcome: Outcome) -> None:
        """Take our block out of files that were carriers once and are none any more."""
        former = former_carriers(self.ledger, survey)
        done = self._projector.project(former, self._wanted(survey, snapshot), survey.checkouts)
        outcome.wrote += done.wrote
        outcome.notices += done.notices
        outcome.waiting = outcome.waiting or done.waiting

    def _wanted(self, survey: Survey, snapshot: Snapshot) -> Wanted:
        # The user's own files may hold what is private to the user, unless Git holds them; a project's are
        # shared with others.
        held = self.project is not None or any(target.tracked for target in survey.layout.targets)
        shown = snapshot.shared if held else snapshot.readable
        return Wanted(snapshot.documents, distinct(shown), survey.heard)

    def _project_first(self, survey: Survey, changed: frozenset[Path]) -> tuple[Outcome, Snapshot | None]:
        """Read and project what is known to have changed, before everything else is compared."""
        snapshot: Snapshot | None = None
        if len(changed) <= _FIRST_READ:
            for path in changed:
                snapshot = self.store.refresh(path)
        return (Outcome() if snapshot is None else self._project(survey, snapshot)), snapshot

    def _recover(self) -> None:
        """Once: repair what a killed process left behind; under the lock, so nobody else is writing."""
        if self._recovered:
            return
        places = {Path(entry.path).parent for entry in self.ledger.entries()}
        done = self.store.recover()
        done += files.recover(self.ledger.kept, sorted(place for place in places if place.is_dir()))
        self._lost = tuple(Notice("warning", "recovered", sentence) for sentence in done)
        self._recovered = True

    def _adopt(self, survey: Survey) -> tuple[Notice, ...]:
        """Take over what was saved elsewhere, before the store is read: the same pass projects it."""
        native = self._native.adopt(survey, self._now())
        if self.project is None:
            return native
        return (
            *native,
            *adopt_from_worktrees(self.project, self.store, survey),
            *bring_home(self.project, self.store, survey.checkout),
        )

    def _keep_house(
        self, survey: Survey, snapshot: Snapshot, outcome: Outcome, *, full: bool
    ) -> tuple[float | None, tuple[Notice, ...]]:
        """What follows a projection: excludes, MEMORY.md, hooks; in a full pass index.json and our keys too.

        Returns when the next pass is due, by the wall clock (None: when something changes).
        """
        due: float | None = None
        self._failed = False
        self._step()
        try:
            self._excluder.keep(survey, snapshot, full=full)
            indexable = self._indexable(snapshot, self._derived.index)
            due = self._derived.write_index(indexable, snapshot.problems, now=self._now())
            outcome.left_out.update(self._prepare_hooks(survey, snapshot))
            if full:
                self._told = self._look_around(survey, snapshot)
                self._write_json(snapshot)
            elif snapshot.digest != self._indexed:
                quiet = self._wall() + self._settings.index_delay_s
                due = quiet if due is None else min(due, quiet)
        except AgentBridgeError as error:
            self._failed = True
            return due, (*self._told, Notice("warning", error.code, error.sentence()))
        return due, self._told

    def _prepare_hooks(self, survey: Survey, snapshot: Snapshot) -> dict[str, tuple[str, ...]]:
        """Have ready what hooks tell; what they have no room for."""
        if self.project is None:
            return {}
        # The files are the user's own, so what is private to the user is part of it.
        wanted = Wanted(snapshot.documents, distinct(snapshot.readable), survey.heard)
        return hook_context.keep(self.state, survey.hooked, wanted, self._settings.block_budget)

    def _look_around(self, survey: Survey, snapshot: Snapshot) -> tuple[Notice, ...]:
        notices = housekeeping.check_keys(self.ledger) + housekeeping.check_links(self.ledger, self.store)
        notices += opencode_plugin.keep_current(self.ledger) + skill.keep_current(self.ledger)
        if self.project is not None:
            tracked = self._excluder.tracked
            notices += housekeeping.tell_git(self.project, survey, snapshot, tracked, self._wall())
            notices += opencode_plugin.keep_seeded(
                Ledger(paths.user_state()),
                self.ledger,
                (site.checkout for site in survey.sites),
                lambda: self._excluder.keep(survey, snapshot),
            )
            notices += hook_settings.keep(
                self.project, self.ledger, survey.hooked, lambda: self._looked(fresh=True).hooked
            )
            notices += mcp_settings.withdraw_approvals(self.project, self.ledger, survey.mcp)
            replaced = housekeeping.keep_copies(self.project, tracked, self._now(), self._step)
            self._lost = tuple(dict.fromkeys((*self._lost, *replaced)))
        kept = sorted(self.ledger.kept.glob("*.kept"))
        if kept:
            text = f"{len(kept)} save(s) that were caught in a write lie in {self.ledger.kept}."
            notices.append(Notice("warning", "kept-saves", text, kept[0]))
        return (*notices, *self._lost, *self._derived.lost)

    def _now(self) -> datetime:
        return datetime.fromtimestamp(self._wall(), UTC)

    def _indexable(self, snapshot: Snapshot, place: Path) -> tuple[Fact, ...]:
        """The facts for a derived file: private ones only where Git doesn't track that file."""
        return snapshot.shared if self._excluder.tracks(place) else snapshot.readable

    def _write_json(self, snapshot: Snapshot) -> None:
        self._derived.write_json(self._indexable(snapshot, self._derived.json))
        self._indexed = snapshot.digest


def global_engine(settings: Settings, *, step: Callable[[], None] = lambda: None) -> Engine:
    """The engine of the user's global store."""
    return Engine(None, settings, step=step)
