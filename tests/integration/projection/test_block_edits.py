"""Text that somebody writes inside our block, in any kind of carrier, is kept before it is rendered away."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from agent_bridge.config import Settings
from agent_bridge.memory.fact import parse_fact
from agent_bridge.projection import block_edits, judged, native_import, review, setup
from agent_bridge.projection.engine import Engine, global_engine
from agent_bridge.projection.ledger import Ledger
from agent_bridge.projection.plan import Wanted
from agent_bridge.projection.projector import Projector
from agent_bridge.projection.survey import survey_project
from agent_bridge.projects import Project

NORTH = "The harbour is in the north of the town."
SOUTH = "The harbour is in the south of the town."

Edited = Callable[[Path, str, str], review.Candidate]


def _only(state: Path) -> review.Candidate:
    (candidate,) = review.load_candidates(state)
    return candidate


@pytest.fixture
def known(engine: Engine) -> str:
    """The id of a fact that stands in CLAUDE.md and AGENTS.md."""
    fact = engine.store.add(f"# Harbour\n\n{NORTH}").fact
    engine.reconcile()
    return fact.id


@pytest.mark.parametrize("name", ["CLAUDE.md", "AGENTS.md"])
def test_an_edited_fact_knows_which_fact_it_was(
    engine: Engine, repository: Path, known: str, name: str
) -> None:
    file = repository / name
    file.write_text(file.read_text().replace(NORTH, SOUTH))
    engine.reconcile()
    found = _only(engine.state)
    assert (found.text, found.similar) == (f"Harbour\n\n{SOUTH}", known)
    assert 0.5 < found.score < 1
    assert f"below {known}: they share" in found.why
    assert "differ in" in found.why
    assert NORTH in file.read_text()
    assert SOUTH not in file.read_text()


def test_lines_put_into_a_fact_know_it_too(engine: Engine, repository: Path, known: str) -> None:
    file = repository / "AGENTS.md"
    file.write_text(file.read_text().replace(NORTH, f"{NORTH}\n\nShips wait outside."))
    engine.reconcile()
    found = _only(engine.state)
    assert (found.text, found.similar) == ("Ships wait outside.", known)
    assert 0 < found.score < 1


def test_a_new_text_that_is_like_a_fact_knows_that_one(engine: Engine, repository: Path, known: str) -> None:
    file = repository / "AGENTS.md"
    file.write_text(file.read_text().replace("## Project memory\n", f"## Project memory\n\n{SOUTH}\n"))
    engine.reconcile()
    found = _only(engine.state)
    assert (found.text, found.similar) == (SOUTH, known)
    assert "it is like" in found.why


def test_a_new_text_that_is_like_none_says_only_where_it_was(
    engine: Engine, repository: Path, known: str
) -> None:
    file = repository / "AGENTS.md"
    file.write_text(file.read_text().replace("## Project memory\n", "## Project memory\n\nBread is sold.\n"))
    engine.reconcile()
    found = _only(engine.state)
    assert (found.similar, found.score, found.why) == ("", 0.0, block_edits.WRITTEN)
    assert known


def test_an_own_file_keeps_what_was_written_into_it(
    sealed_home: Path, settings: Settings, project: Project, repository: Path
) -> None:
    (repository / "CLAUDE.md").unlink()
    (repository / "CLAUDE.md").symlink_to(sealed_home / "elsewhere.md")
    (sealed_home / "elsewhere.md").write_text("Mine.\n")
    engine = Engine(project, settings)
    known = engine.store.add(f"# Harbour\n\n{NORTH}").fact
    engine.reconcile()
    rules = repository / ".claude/rules/agent-bridge.md"
    rules.write_text(rules.read_text().replace(NORTH, SOUTH))
    engine.reconcile()
    assert _only(engine.state).similar == known.id
    assert NORTH in rules.read_text()


def test_the_users_own_block_keeps_what_was_written_into_it(
    sealed_home: Path, settings: Settings, project: Project
) -> None:
    assert project.root.is_dir()
    user = global_engine(settings)
    known = user.store.add(f"# Harbour\n\n{NORTH}").fact
    user.reconcile()
    file = sealed_home / ".claude/CLAUDE.md"
    file.write_text(file.read_text().replace(NORTH, SOUTH))
    user.reconcile()
    assert _only(user.state).similar == known.id
    assert SOUTH not in file.read_text()


def test_a_block_that_says_another_text_keeps_what_was_written_into_it(
    engine: Engine, project: Project, settings: Settings, known: str
) -> None:
    survey = survey_project(project, settings)
    target = replace(survey.layout.targets[0], text="@AGENTS.md")
    projector = Projector(Ledger(project.state), project.state)
    wanted = Wanted((), engine.store.scan().shared, {})
    projector.project([target], wanted, survey.checkouts)
    assert "@AGENTS.md" in target.path.read_text()
    assert review.load_candidates(engine.state) == []
    target.path.write_text(target.path.read_text().replace("@AGENTS.md", "@AGENTS.md\n\nBread is sold."))
    projector.project([target], wanted, survey.checkouts)
    assert _only(engine.state).text == "Bread is sold."
    assert "Bread" not in target.path.read_text()
    assert known


def test_a_file_that_was_deleted_leaves_no_candidate(
    engine: Engine, settings: Settings, repository: Path
) -> None:
    engine.store.add(NORTH)
    engine.reconcile()
    (repository / "AGENTS.md").unlink()
    (repository / "CLAUDE.md").unlink()
    engine.reconcile()
    assert review.load_candidates(engine.state) == []
    assert [fact.body for fact in engine.store.scan().facts] == [NORTH]


def test_what_was_written_into_a_block_is_kept_when_the_last_fact_goes(
    engine: Engine, repository: Path, known: str
) -> None:
    file = repository / "AGENTS.md"
    file.write_text(file.read_text().replace(NORTH, SOUTH))
    engine.store.remove(known)
    engine.reconcile()
    assert SOUTH in _only(engine.state).text
    assert "agent-bridge" not in file.read_text()


def test_what_was_written_into_a_block_is_kept_by_eject(
    engine: Engine, project: Project, settings: Settings, repository: Path, known: str
) -> None:
    file = repository / "AGENTS.md"
    file.write_text(file.read_text().replace(NORTH, SOUTH))
    setup.eject(project, settings)
    assert _only(project.state).similar == known
    assert "agent-bridge" not in file.read_text()
    assert engine.state == project.state


def test_a_rejected_text_is_rendered_away_and_not_kept(engine: Engine, repository: Path, known: str) -> None:
    text = "Bread is sold at dawn."
    judged.record(engine.state, [text], judged.Verdict.REJECTED, now=native_import.utc_now())
    file = repository / "AGENTS.md"
    file.write_text(file.read_text().replace(NORTH, f"{NORTH}\n\n{text}"))
    engine.reconcile()
    assert review.load_candidates(engine.state) == []
    assert text not in file.read_text()
    assert known


def test_no_word_of_a_secret_is_in_the_reason() -> None:
    token = "ghp_" + "a1B2" * 9
    fact = parse_fact("a.md", f"The harbour key {token} is kept in the north of the town.".encode())
    edit = block_edits.describe(f"The harbour key is kept in the south of the town, {token}.", b"", [fact])
    assert edit.fact_id == "a"
    assert "a1b2" not in edit.why.lower()
