"""The moment before a write."""

from __future__ import annotations

from pathlib import Path

from agent_bridge.projection.engine import Engine
from agent_bridge.projection.ledger import Entry, Ledger
from agent_bridge.projection.plan import Wanted
from agent_bridge.projection.projector import Projector

from .conftest import AGENTS, CLAUDE


def test_git_that_begins_to_work_after_the_first_look_is_waited_for(engine: Engine, repository: Path) -> None:
    lock = repository / ".git/index.lock"

    class Meanwhile(Ledger):
        """Git takes its lock while a file is decided about."""

        def get(self, path: Path) -> Entry | None:
            lock.touch()
            return super().get(path)

    engine.store.add("A fact that has to wait.")
    survey, wanted = engine.survey(), Wanted((), engine.store.scan().shared, {})
    projector = Projector(Meanwhile(engine.state), engine.state)
    for target in survey.layout.targets:
        lock.unlink(missing_ok=True)
        outcome = projector.project([target], wanted, survey.checkouts)
        assert outcome.waiting
        assert outcome.wrote == []
    assert (repository / "AGENTS.md").read_bytes() == AGENTS
    assert (repository / "CLAUDE.md").read_bytes() == CLAUDE
