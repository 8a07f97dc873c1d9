"""The main loop: one thread that takes events, decides when to act, and acts.

Everything that happens arrives as a message in one queue: events from the watcher's thread, names of due
jobs from the scheduler's, signals. Between messages the loop sleeps until its next own deadline. It alone
calls the engines, and it alone tells the service manager that the service lives.
"""

from __future__ import annotations

import queue
import stat
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from agent_bridge import paths
from agent_bridge.daemon.describe import describe_watching, reasons_to_poll
from agent_bridge.daemon.jobs import Jobs, utc
from agent_bridge.daemon.orders import Order, StopOrdered
from agent_bridge.daemon.pulse import Pulse
from agent_bridge.daemon.status import State, StatusBoard, empty_document
from agent_bridge.daemon.supervisor import Supervisor, Unit
from agent_bridge.errors import AgentBridgeError
from agent_bridge.log import get_logger
from agent_bridge.projects import Project, load_projects
from agent_bridge.watch.events import FileEvent, Kind
from agent_bridge.watch.settle import Settler
from agent_bridge.watch.watches import Difference, Place, WatchSet

if TYPE_CHECKING:
    from agent_bridge.config import Settings

RECONCILE = "reconcile"
"""The job that compares everything."""
_CLOCK_JUMP = 5.0
_SUSPECT_SECONDS = 0.5
_PATIENT_LOOK = 5.0

_log = get_logger("service")


@dataclass(frozen=True, slots=True)
class DueJob:
    """The scheduler says that a job's time has come."""

    name: str


Message = FileEvent | Order | DueJob
Inbox = queue.SimpleQueue[Message]


class Reactor:
    """The service's main loop over its parts; `run` returns when an Order.STOP came."""

    def __init__(
        self,
        *,
        inbox: Inbox,
        settings: Settings,
        reload_settings: Callable[[], Settings],
        supervisor: Supervisor,
        watches: WatchSet,
        jobs: Jobs,
        board: StatusBoard,
        pulse: Pulse,
    ) -> None:
        self._inbox = inbox
        self._settings = settings
        self._reload_settings = reload_settings
        self._supervisor = supervisor
        self._watches = watches
        self._jobs = jobs
        self._board = board
        self._pulse = pulse
        self._settler = _settler(settings)
        self._list = Place(paths.projects_file().parent)
        self._stopping = False
        self._trouble: dict[str, str] = {}
        self._suspects: dict[Path, float] = {}
        self._overflows = 0
        self._missed = 0
        self._last_full_check: float | None = None
        self._next_root_check = 0.0
        self._next_git_poll = 0.0
        self._next_patient_look = 0.0
        self._clock_offset = time.time() - time.monotonic()
        self._in_work = 0
        board.queue_length = lambda: inbox.qsize() + len(self._settler) + self._in_work

    def run(self) -> None:
        """Reconcile everything, say that the service is ready, then follow events until told to stop."""
        try:
            self._first_pass()
            while not self._stopping:
                self._take_messages()
                self._act()
        except StopOrdered:
            _log.info("stopped between two steps of a pass")
        self._publish(State.STOPPING)

    def _first_pass(self) -> None:
        """One pass over every unit. A locked one is waited for as long as a command would wait, no longer:
        the other projects' events lie still meanwhile."""
        patient_until = time.monotonic() + self._settings.lock_timeout_s
        self._load_projects(reconcile_new=True)
        while left := [unit for unit in self._supervisor.units if unit.retry]:
            if time.monotonic() >= patient_until:
                break
            for unit in left:
                self._reconcile(unit)
        self._last_full_check = time.time()
        self._jobs.add(RECONCILE, self._settings.reconcile_interval_s, self._full_check)
        self._jobs.start()
        self._pulse.starting = False
        self._publish()
        count = sum(unit.project is not None for unit in self._supervisor.units)
        self._pulse.ready(f"Watching {count} projects.")
        _log.info("ready", projects=count, watcher=self._watches.backend)

    def _take_messages(self) -> None:
        """Sleep until a message comes or something is due, then take all messages that are there."""
        timeout = self._next_deadline() - time.monotonic()
        try:
            self._take(self._inbox.get(timeout=max(0.0, timeout)))
        except queue.Empty:
            return
        self._take_waiting_messages()

    def _take_waiting_messages(self) -> None:
        while True:
            try:
                self._take(self._inbox.get_nowait())
            except queue.Empty:
                return

    def _take(self, message: Message) -> None:
        match message:
            case FileEvent(kind=Kind.OVERFLOW):
                self._overflowed()
            case FileEvent(kind=Kind.SELF):
                self._watches.distrust(message.directory)
                self._next_root_check = 0.0
            case FileEvent():
                self._suspects.pop(message.path, None)
                self._settler.add(message, time.monotonic())
            case DueJob(name=name):
                self._run_job(name)
            case Order.STOP:
                self._stopping = True
            case Order.RELOAD:
                self._reload()

    def _act(self) -> None:
        """Do what is due now."""
        self._pulse.beat()
        now = time.monotonic()
        self._check_clock()
        settled = self._settler.take(now, is_empty=_is_empty)
        changed = Difference(settled)
        if now >= self._next_root_check:
            self._next_root_check = now + self._settings.root_check_s
            changed |= self._check_roots()
        self._judge_suspects(now)
        self._in_work = len(changed.paths)
        did = self._pass_on(changed)
        # Listing a large store takes longer than projecting a save, so what is known is told first.
        did |= self._pass_on(self._found_beside(settled))
        did |= self._look_again(now)
        if did:
            self._publish()
        self._in_work = 0

    def _next_deadline(self) -> float:
        now = time.monotonic()
        deadlines = [self._next_root_check, now + self._pulse.interval]
        settled = self._settler.due()
        if settled is not None:
            deadlines.append(settled)
        deadlines += self._suspects.values()
        for unit in self._supervisor.units:
            if unit.waiting or unit.retry:
                deadlines.append(self._next_git_poll)
            if unit.index_due is not None:
                deadlines.append(unit.index_due)
        return min(deadlines)

    def _found_beside(self, settled: frozenset[Path]) -> Difference:
        """What else differs in the directories of these paths; their new state is known from now on."""
        found = self._watches.compare({path.parent for path in settled})
        return Difference(found.paths - settled, found.unannounced - settled)

    def _check_roots(self) -> Difference:
        if not self._watches.is_alive():
            _log.warning("the watcher died; building another")
            self._trouble["watcher"] = "The file watcher died and was built anew."
            self._watches.rebuild()
            return self._watches.compare_all()
        return self._watches.check_roots() | self._watches.compare_polled()

    def _pass_on(self, changed: Difference) -> bool:
        """Tell the units what changed; whether any was told."""
        if not changed.paths:
            return False
        if paths.projects_file() in changed.paths:
            self._load_projects(reconcile_new=True)
        hints: dict[str, set[Path]] = {}
        for path in changed.paths:
            for unit in self._owners(path):
                if not unit.engine.is_echo(path):
                    hints.setdefault(unit.key, set()).add(path)
        told = [unit for unit in self._supervisor.units if unit.key in hints]
        for unit in told:
            self._reconcile(unit, hints[unit.key])
        if any(path.suffix != ".md" for unit in told for path in hints[unit.key]):
            # What was saved between the pass and the watch is announced by nobody.
            new = self._arm(told)
            for unit in told:
                if any(place.path in new for place in unit.places):
                    self._reconcile(unit)
        return bool(told) or paths.projects_file() in changed.paths

    def _owners(self, path: Path) -> list[Unit]:
        for directory in (path.parent, path):
            place = self._watches.place_of(directory)
            if place is not None:
                return self._supervisor.owners(place.path)
        return []

    def _look_again(self, now: float) -> bool:
        """What no event asks for: Git may be done, a lock free, an index due."""
        poll = now >= self._next_git_poll
        if poll:
            self._next_git_poll = now + self._settings.git_poll_s
        did = False
        for unit in tuple(self._supervisor.units):
            due = unit.index_due is not None and now >= unit.index_due
            if due or (poll and (unit.retry or (unit.waiting and self._git_is_done(unit, now)))):
                self._reconcile(unit)
                did = True
        return did

    def _git_is_done(self, unit: Unit, now: float) -> bool:
        """Whether a waiting unit is worth a pass: Git ended, or it waits for what only a pass sees."""
        if unit.engine.busy() is not None:
            unit.git_was_busy = True
            return False
        if not unit.git_was_busy and now < self._next_patient_look:
            return False
        unit.git_was_busy = False
        self._next_patient_look = now + _PATIENT_LOOK
        return True

    def _full_check(self) -> None:
        """The job: what was amiss counts as mended by now, unless it shows again."""
        for passing in ("missed", "overflow", "watcher"):
            self._trouble.pop(passing, None)
        self._watches.retry()
        self._compare_everything()

    def _compare_everything(self) -> None:
        """Compare and reconcile everything. What no event announced is suspected to have been missed."""
        self._take_waiting_events()
        found = self._watches.check_roots(every=True) | self._watches.compare_all()
        deadline = time.monotonic() + _SUSPECT_SECONDS
        for path in found.unannounced:
            if path not in self._settler:
                self._suspects[path] = deadline
        self._load_projects()
        for unit in tuple(self._supervisor.units):
            self._reconcile(unit)
        # A harness may have got another home, a repository another worktree.
        self._arm(self._supervisor.units)
        self._last_full_check = time.time()
        self._publish()

    def _take_waiting_events(self) -> None:
        later: list[Message] = []
        while True:
            try:
                message = self._inbox.get_nowait()
            except queue.Empty:
                break
            if isinstance(message, FileEvent) and message.kind is not Kind.OVERFLOW:
                self._take(message)
            else:
                later.append(message)
        for message in later:
            self._inbox.put(message)

    def _judge_suspects(self, now: float) -> None:
        missed = [path for path, deadline in self._suspects.items() if deadline <= now]
        if not missed:
            return
        for path in missed:
            del self._suspects[path]
        self._missed += len(missed)
        self._trouble["missed"] = (
            f"{len(missed)} changes were found by comparing that no event had announced."
        )
        _log.warning("changes were missed; building another watcher", count=len(missed), first=str(missed[0]))
        self._watches.rebuild()
        self._publish()

    def _overflowed(self) -> None:
        self._overflows += 1
        self._suspects.clear()
        # Among what was lost may be that a watched directory was replaced.
        self._watches.rebuild()
        self._trouble["overflow"] = "The system's event queue overflowed; everything was compared."
        _log.warning("events were lost; comparing everything")
        self._publish()
        self._compare_everything()
        self._suspects.clear()

    def _check_clock(self) -> None:
        offset = time.time() - time.monotonic()
        if abs(offset - self._clock_offset) > _CLOCK_JUMP:
            _log.info("the clock jumped; comparing everything", seconds=round(offset - self._clock_offset, 1))
            self._compare_everything()
        self._clock_offset = offset

    def _run_job(self, name: str) -> None:
        try:
            self._jobs.run(name)
        except Exception:  # noqa: BLE001 (a job's failure must not end the service)
            _log.exception("job failed", job=name)

    def _reload(self) -> None:
        _log.info("reloading")
        try:
            self._settings = self._reload_settings()
        except AgentBridgeError as error:
            self._trouble["settings"] = f"The settings could not be read again: {error}"
            _log.error("settings not reloaded", error=str(error))
            self._publish()
            return
        self._trouble.pop("settings", None)
        self._settler = _settler(self._settings)
        self._jobs.add(RECONCILE, self._settings.reconcile_interval_s, self._full_check)
        self._watches.polling = self._settings.polling
        self._watches.rebuild()
        self._load_projects(settings=self._settings)
        self._full_check()

    def _load_projects(self, *, settings: Settings | None = None, reconcile_new: bool = False) -> None:
        try:
            projects: Iterable[Project] = load_projects()
        except AgentBridgeError as error:
            self._trouble["projects"] = str(error)
            _log.error("list of projects not read", error=str(error))
            projects = [unit.project for unit in self._supervisor.units if unit.project is not None]
        else:
            self._trouble.pop("projects", None)
        new = self._supervisor.load(projects, settings)
        self._arm(())
        for unit in new:
            # Watched before it is looked at, so that nothing falls between.
            self._arm([unit])
            if reconcile_new:
                self._reconcile(unit)
                self._publish()

    def _arm(self, units: Iterable[Unit]) -> frozenset[Path]:
        """Watch what the units depend on now, other places than before; those that are new and exist."""
        return self._watches.want([self._list, *self._supervisor.find_places(units)])

    def _reconcile(self, unit: Unit, hint: Iterable[Path] = ()) -> None:
        self._pulse.step()
        self._supervisor.reconcile(unit, hint)

    def _publish(self, state: State | None = None) -> None:
        projects, user = self._supervisor.describe(self._watches.reports())
        reasons = [*self._trouble.values(), *reasons_to_poll(self._watches), *self._supervisor.reasons()]
        if state is None:
            state = State.STARTING if self._pulse.starting else State.DEGRADED if reasons else State.OK
        document = empty_document(state) | {
            "reasons": reasons,
            "projects": projects,
            "global": user,
            "watch": describe_watching(self._watches, overflows=self._overflows, missed=self._missed),
            "jobs": self._jobs.describe(),
            "last_full_check": utc(self._last_full_check),
        }
        self._board.publish(document)


def _settler(settings: Settings) -> Settler:
    return Settler(quiet=settings.quiet_ms / 1000, burst=settings.burst_ms / 1000)


def _is_empty(path: Path) -> bool:
    try:
        found = path.stat()
    except OSError:
        return False
    return stat.S_ISREG(found.st_mode) and found.st_size == 0
