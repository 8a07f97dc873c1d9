"""A file that stops being a carrier loses our block, and nothing else."""

from __future__ import annotations

from pathlib import Path

from agent_bridge.config import Settings
from agent_bridge.harnesses import in_use, managed_block
from agent_bridge.projection import review
from agent_bridge.projection.engine import Engine
from agent_bridge.projection.ledger import Entry, Kind
from agent_bridge.projects import Project

RULES = ".claude/rules/agent-bridge.md"


def test_the_block_leaves_a_file_that_carries_it_no_more(engine: Engine, repository: Path) -> None:
    engine.store.add("Staging is reset every Monday.")
    engine.reconcile()
    main = repository / "CLAUDE.md"
    assert b"Monday" in main.read_bytes()
    main.write_bytes(b"@AGENTS.md\n\n" + main.read_bytes())
    report = engine.reconcile()
    assert main.read_bytes() == b"@AGENTS.md\n\n# For Claude\n\nBe brief.\n"
    assert b"Monday" in (repository / "AGENTS.md").read_bytes()
    assert main in report.wrote
    assert engine.ledger.get(main) is None
    assert engine.reconcile().wrote == ()


def test_a_file_of_ours_that_carries_no_more_is_removed(engine: Engine, repository: Path) -> None:
    main = repository / "CLAUDE.md"
    main.unlink()
    (repository / ".claude" / "CLAUDE.md").parent.mkdir(exist_ok=True)
    (repository / ".claude" / "CLAUDE.md").write_bytes(b"Be kind.\n")
    engine.store.add("Staging is reset every Monday.")
    engine.reconcile()
    assert b"Monday" in (repository / RULES).read_bytes()
    (repository / ".claude" / "CLAUDE.md").unlink()
    engine.reconcile()
    assert not (repository / RULES).exists()
    assert not (repository / RULES).parent.exists()
    assert b"Monday" in (repository / "AGENTS.md").read_bytes()


def test_what_somebody_wrote_into_that_block_waits_for_review(engine: Engine, repository: Path) -> None:
    engine.store.add("Staging is reset every Monday.")
    engine.reconcile()
    main = repository / "CLAUDE.md"
    written = main.read_bytes().replace(
        managed_block.END.encode(), b"Deploys need two people.\n" + managed_block.END.encode()
    )
    main.write_bytes(b"@AGENTS.md\n\n" + written)
    engine.reconcile()
    assert managed_block.find_block(main.read_bytes()) is None
    assert [one.text for one in review.load_candidates(engine.state)] == ["Deploys need two people."]


def test_a_harness_found_once_is_in_use_until_the_next_init(
    project: Project, settings: Settings, engine: Engine
) -> None:
    engine.reconcile()
    known = in_use.recorded(project.state)
    assert "claude-code" in known
    assert in_use.in_use((), {}, state=project.state) == frozenset()
    in_use.record(project.state, frozenset({"gemini"}))
    assert in_use.recorded(project.state) == known | {"gemini"}
    in_use.forget(project.state)
    assert in_use.recorded(project.state) == frozenset()


def test_a_file_that_cant_be_looked_at_ends_no_pass(engine: Engine, repository: Path) -> None:
    hidden = repository / ("a" * 300)  # the system has an error for it, as for a directory without rights
    engine.ledger.put(Entry(str(hidden), Kind.BLOCK))
    engine.store.add("Staging is reset every Monday.")
    engine.reconcile()
    assert b"Monday" in (repository / "AGENTS.md").read_bytes()
    assert engine.ledger.get(hidden) is not None
