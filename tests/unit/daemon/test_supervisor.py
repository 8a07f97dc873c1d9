"""Which engines there are, what they are told, and how they did."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from agent_bridge.config import Settings, load_settings
from agent_bridge.daemon.supervisor import USER, Engine, Supervisor
from agent_bridge.errors import LockTimeoutError
from agent_bridge.projects import Project
from agent_bridge.watch.watches import Place


@dataclass
class Report:
    wrote: tuple[Path, ...] = ()
    waiting: str | None = None
    index_due: float | None = None
    shared: int = 2
    problems: tuple[str, ...] = ()


@dataclass
class Scripted:
    """An engine that answers what it was given, in turn."""

    answers: list[Report | Exception] = field(default_factory=list)
    hints: list[frozenset[Path]] = field(default_factory=list)

    def reconcile(self, hint: frozenset[Path] = frozenset()) -> Report:
        self.hints.append(hint)
        answer = self.answers.pop(0) if self.answers else Report()
        if isinstance(answer, Exception):
            raise answer
        return answer

    def is_echo(self, path: Path) -> bool:
        return False

    def places(self) -> Iterator[Place]:
        yield Place(Path("/shared"))

    def busy(self) -> str | None:
        return None


@dataclass
class Engines:
    made: dict[str, Scripted] = field(default_factory=dict)

    def of_project(self, project: Project, settings: Settings) -> Engine:
        self.made[project.id] = Scripted()
        return self.made[project.id]

    def of_user(self, settings: Settings) -> Engine | None:
        self.made[USER] = Scripted()
        return self.made[USER]


A = Project("a", Path("/a"))
B = Project("b", Path("/b"))
X, Y = Path("/a/.memory/x.md"), Path("/a/.memory/y.md")


@pytest.fixture
def engines() -> Engines:
    return Engines()


@pytest.fixture
def supervisor(engines: Engines, sealed_home: Path) -> Supervisor:
    return Supervisor(engines, load_settings())


def keys(supervisor: Supervisor) -> list[str]:
    return [unit.key for unit in supervisor.units]


def test_units_follow_the_list_and_keep_what_they_know(supervisor: Supervisor, engines: Engines) -> None:
    assert [unit.key for unit in supervisor.load([A])] == [USER, "a"]
    kept = engines.made["a"]
    assert [unit.key for unit in supervisor.load([A, B])] == ["b"]
    assert engines.made["a"] is kept
    supervisor.load([B])
    assert keys(supervisor) == [USER, "b"]


def test_a_project_that_was_set_up_again_gets_a_new_engine(supervisor: Supervisor, engines: Engines) -> None:
    supervisor.load([A])
    old = engines.made["a"]
    supervisor.load([Project("a", Path("/a"), environment={"CODEX_HOME": "/elsewhere"})])
    assert engines.made["a"] is not old


def test_new_settings_make_every_engine_new(supervisor: Supervisor, engines: Engines) -> None:
    supervisor.load([A])
    old = engines.made["a"]
    assert len(supervisor.load([A], load_settings())) == 2
    assert engines.made["a"] is not old


def test_the_generation_grows_with_completed_passes_only(supervisor: Supervisor, engines: Engines) -> None:
    _user, unit = supervisor.load([A])
    engines.made["a"].answers = [Report(), ValueError("broken"), Report()]
    generations = []
    for _ in range(3):
        supervisor.reconcile(unit)
        generations.append(unit.generation)
    assert generations == [1, 1, 2]


def test_hints_that_no_pass_covered_are_given_again(supervisor: Supervisor, engines: Engines) -> None:
    _user, unit = supervisor.load([A])
    engines.made["a"].answers = [ValueError("broken"), Report(waiting="rebase"), Report(), Report()]
    for hint in ([X], [Y], [Y], [Y]):
        supervisor.reconcile(unit, hint)
    assert engines.made["a"].hints == [{X}, {X, Y}, {X, Y}, {Y}]


def test_without_a_hint_everything_is_looked_at(supervisor: Supervisor, engines: Engines) -> None:
    _user, unit = supervisor.load([A])
    engines.made["a"].answers = [ValueError("broken")]
    supervisor.reconcile(unit, [X])
    supervisor.reconcile(unit)
    assert engines.made["a"].hints[-1] == frozenset()


def test_a_locked_project_is_no_failure_but_to_be_tried_again(
    supervisor: Supervisor, engines: Engines
) -> None:
    _user, unit = supervisor.load([A])
    engines.made["a"].answers = [LockTimeoutError("held by another")]
    supervisor.reconcile(unit, [X])
    assert unit.retry
    assert not unit.error
    supervisor.reconcile(unit, [X])
    assert not unit.retry


def test_a_failure_is_told_in_one_sentence_and_ends_with_success(
    supervisor: Supervisor, engines: Engines
) -> None:
    _user, unit = supervisor.load([A])
    engines.made["a"].answers = [ValueError("broken")]
    supervisor.reconcile(unit)
    assert supervisor.reasons() == ["/a: ValueError: broken"]
    assert supervisor.describe([])[0][0]["state"] == "failed"
    supervisor.reconcile(unit)
    assert supervisor.reasons() == []
    described = supervisor.describe([])[0][0]
    assert described["state"] == "ok"
    assert described["facts"] == {"shared": 2, "private": 0, "withheld": 0}


def test_a_unit_that_was_removed_is_left_alone(supervisor: Supervisor, engines: Engines) -> None:
    _user, unit = supervisor.load([A])
    supervisor.load([])
    supervisor.reconcile(unit)
    assert not engines.made["a"].hints


def test_an_index_that_is_always_due_does_not_spin(supervisor: Supervisor, engines: Engines) -> None:
    _user, unit = supervisor.load([A])
    engines.made["a"].answers = [Report(index_due=time.time() - 100)]
    supervisor.reconcile(unit)
    assert unit.index_due is not None
    assert unit.index_due > time.monotonic() + 0.1


def test_a_shared_place_has_several_owners(supervisor: Supervisor) -> None:
    supervisor.find_places(supervisor.load([A, B]))
    assert [unit.key for unit in supervisor.owners(Path("/shared"))] == [USER, "a", "b"]
    assert supervisor.owners(Path("/elsewhere")) == []
