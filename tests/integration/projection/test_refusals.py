"""A refusal is told for as long as its reason lasts, and no longer."""

from __future__ import annotations

from pathlib import Path

from agent_bridge.projection.engine import Engine


def test_a_file_that_is_as_we_wrote_it_again_is_no_echo(engine: Engine, repository: Path) -> None:
    (engine.store.root / "way.md").write_text("The harbour is north.\n")
    engine.reconcile()
    agents = repository / "AGENTS.md"
    ours = agents.read_bytes()
    agents.write_bytes(b"<!-- agent-bridge:memory:start (managed, do not edit) -->\n" + ours)
    (refused,) = [notice for notice in engine.reconcile().notices if notice.code == "markers"]
    assert refused.path == agents
    assert "\n" not in refused.text

    agents.write_bytes(ours)

    assert not engine.is_echo(agents)
    assert [
        notice for notice in engine.reconcile(frozenset({agents})).notices if notice.code == "markers"
    ] == []
