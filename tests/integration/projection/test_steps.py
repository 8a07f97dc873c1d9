"""A pass step by step: it can show that it lives, and be ended between two files."""

from __future__ import annotations

import pytest

from agent_bridge.config import Settings
from agent_bridge.projection.engine import Engine
from agent_bridge.projects import Project


class Ended(BaseException):
    """What the service raises when it is told to stop."""


def test_a_pass_steps_for_each_fact_and_each_file_and_ends_at_any(
    project: Project, settings: Settings
) -> None:
    for number in range(10):
        (project.store / f"{number}.md").write_text(f"Fact {number} holds.\n")
    steps: list[int] = []
    last = [0]

    def step() -> None:
        steps.append(1)
        if len(steps) == last[0]:
            raise Ended

    Engine(project, settings, step=step).reconcile()
    whole = len(steps)
    assert whole > 12  # ten facts, two files
    (project.store / "more.md").write_text("One more holds.\n")
    for last[0] in range(1, whole):
        steps.clear()
        with pytest.raises(Ended):
            Engine(project, settings, step=step).reconcile()
    last[0] = 0
    report = Engine(project, settings, step=step).reconcile()  # no lock is left held
    assert report.shared == 11
    for name in ("AGENTS.md", "CLAUDE.md"):
        assert (project.root / name).read_text().count("One more holds.") == 1
