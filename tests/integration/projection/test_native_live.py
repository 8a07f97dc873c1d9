"""What a harness writes in its own memory is taken over while the engine runs, once, and where it belongs."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from agent_bridge import paths
from agent_bridge.config import Settings
from agent_bridge.harnesses.base import NativeItem
from agent_bridge.harnesses.codex import Codex
from agent_bridge.memory.store import Store
from agent_bridge.projection import judged, native_import, review, setup
from agent_bridge.projection.engine import Engine, Report, global_engine
from agent_bridge.projects import Project

from .conftest import git


@pytest.fixture
def notes(sealed_home: Path) -> Path:
    """Codex's directory of notes; it is there before the project is set up."""
    place = sealed_home / ".codex/memories/extensions/ad_hoc/notes"
    place.mkdir(parents=True)
    return place


@pytest.fixture
def served(notes: Path, project: Project, settings: Settings) -> Engine:
    """The project's engine after its first pass."""
    assert notes.is_dir()
    engine = Engine(project, settings)
    engine.reconcile()
    engine.reconcile()
    return engine


def _note(
    notes: Path, text: str, directory: Path | None = None, name: str = "2026-01-02T03-04-05-a.md"
) -> None:
    head = f"cwd: {directory}\n\n" if directory else ""
    (notes / name).write_text(f"{head}{text}\n")


def _bodies(engine: Engine) -> list[str]:
    return [fact.body for fact in engine.store.scan().facts]


def test_a_new_note_becomes_a_fact_of_its_project_and_reaches_the_agents(served: Engine, notes: Path) -> None:
    assert served.project is not None
    _note(notes, "The harbour is in the north.", served.project.root)
    report = served.reconcile()
    (fact,) = served.store.scan().facts
    assert (fact.body, fact.source) == ("The harbour is in the north.", "codex")
    assert fact.created_at == "2026-01-02T03:04:05.000Z"
    written = (served.store.root / fact.path).read_text()
    assert 'origin: "~/.codex/memories/extensions/ad_hoc/notes/2026-01-02T03-04-05-a.md"' in written
    assert "The harbour is in the north." in (served.project.root / "AGENTS.md").read_text()
    assert _told(report) == ["1 memory was taken over from codex."]


def _told(report: Report) -> list[str]:
    return [notice.text for notice in report.notices if notice.code in ("adopted", "candidates")]


def test_it_is_taken_once_and_does_not_come_back_when_it_was_deleted(served: Engine, notes: Path) -> None:
    assert served.project is not None
    _note(notes, "The harbour is in the north.", served.project.root)
    served.reconcile()
    served.store.remove(served.store.scan().facts[0].id)
    for _ in range(2):
        served.reconcile()
        assert _bodies(served) == []
    _note(notes, "The harbour is in the north.", served.project.root, "2026-02-02T03-04-05-b.md")
    served.reconcile()
    assert _bodies(served) == []
    _note(notes, "Ships wait outside.", served.project.root, "2026-02-03T03-04-05-c.md")
    served.reconcile()
    assert _bodies(served) == ["Ships wait outside."]


def test_what_is_like_a_fact_waits_for_review(served: Engine, notes: Path) -> None:
    assert served.project is not None
    known = served.store.add("The harbour is in the north of the town.").fact
    _note(notes, "The harbour is in the south of the town.", served.project.root)
    report = served.reconcile()
    assert _bodies(served) == [known.body]
    (candidate,) = review.load_candidates(served.state)
    assert (candidate.similar, candidate.score, candidate.source) == (known.id, 0.75, "codex")
    assert candidate.created_at == "2026-01-02T03:04:05Z"
    assert report.candidates == 1


def test_a_rejected_text_does_not_come_back(served: Engine, notes: Path, settings: Settings) -> None:
    assert served.project is not None
    text = "The harbour is in the south of the town."
    judged.record(served.state, [text], judged.Verdict.REJECTED, now=native_import.utc_now())
    _note(notes, text, served.project.root)
    served.reconcile()
    assert _bodies(served) == []
    assert review.load_candidates(served.state) == []


def test_what_belongs_to_no_directory_goes_to_the_users_store(
    served: Engine, notes: Path, settings: Settings
) -> None:
    _note(notes, "I like tea.")
    served.reconcile()
    assert _bodies(served) == []
    user = global_engine(settings)
    user.reconcile()
    assert [(fact.body, fact.source) for fact in user.store.scan().facts] == [("I like tea.", "codex")]


def test_what_belongs_elsewhere_is_held_until_its_project_is_set_up(
    served: Engine, notes: Path, settings: Settings, sealed_home: Path
) -> None:
    other = sealed_home / "other"
    other.mkdir()
    git(other, "init", "-q")
    _note(notes, "The other harbour is in the west.", other)
    served.reconcile()
    global_engine(settings).reconcile()
    assert _bodies(served) == []
    (notes / "2026-01-02T03-04-05-a.md").unlink()
    assert len(list(native_import.held_directory().iterdir())) == 1
    found = setup.describe(other)
    setup.init(found, settings)
    store = Store(found.store, state=found.state)
    assert [(fact.body, fact.source) for fact in store.scan().facts] == [
        ("The other harbour is in the west.", "codex")
    ]
    assert list(native_import.held_directory().iterdir()) == []


def test_the_engines_of_two_projects_each_take_their_own(
    served: Engine, notes: Path, settings: Settings, sealed_home: Path
) -> None:
    assert served.project is not None
    other = sealed_home / "other"
    other.mkdir()
    git(other, "init", "-q")
    found = setup.describe(other)
    setup.init(found, settings)
    _note(notes, "Here.", served.project.root)
    _note(notes, "There.", other, "2026-01-02T03-04-05-b.md")
    second = Engine(found, settings)
    for engine in (served, second, global_engine(settings)):
        engine.reconcile()
    assert (_bodies(served), _bodies(second)) == (["Here."], ["There."])
    assert not paths.global_store().exists() or not list(paths.global_store().rglob("entries/*"))


def _counted(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Grows with each reading of Codex's memories."""
    reads: list[int] = []
    real = Codex.native_memory

    def counting(self: Codex, env: Mapping[str, str]) -> list[NativeItem]:
        reads.append(1)
        return real(self, env)

    monkeypatch.setattr(Codex, "native_memory", counting)
    return reads


def test_memories_are_read_only_where_their_places_changed(
    served: Engine, notes: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert served.project is not None
    reads = _counted(monkeypatch)
    (served.project.root / "AGENTS.md").write_text("# Other rules\n")
    served.reconcile()
    assert reads == []
    _note(notes, "Ships wait outside.", served.project.root)
    served.reconcile()
    assert reads == [1]
    assert _bodies(served) == ["Ships wait outside."]


def test_another_process_does_not_read_them_again_either(
    served: Engine, notes: Path, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    reads = _counted(monkeypatch)
    Engine(served.project, settings).reconcile()
    assert reads == []
    assert served.project is not None
    _note(notes, "Ships wait outside.", served.project.root)
    Engine(served.project, settings).reconcile()
    assert reads == [1]


def test_a_note_that_is_rewritten_in_place_is_seen(served: Engine, notes: Path) -> None:
    assert served.project is not None
    _note(notes, "Ships wait outside.", served.project.root)
    served.reconcile()
    served.reconcile()
    _note(notes, "Bread is sold at dawn.", served.project.root)
    served.reconcile()
    assert set(_bodies(served)) == {"Ships wait outside.", "Bread is sold at dawn."}
