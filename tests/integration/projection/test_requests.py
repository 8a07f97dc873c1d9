"""`sync --to NAME`: extra files that somebody asked for by name, kept in line, and taken back exactly."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from agent_bridge.config import Settings
from agent_bridge.errors import UsageError
from agent_bridge.projection import requests, setup
from agent_bridge.projection.engine import Engine
from agent_bridge.projects import Project, load_projects

FACT = "Staging is reset every Monday."
Tree = Callable[[Path], dict[str, tuple[str, int, bytes]]]


def test_claude_md_gets_a_section_of_its_own_and_the_double_is_told(
    project: Project, settings: Settings, repository: Path
) -> None:
    (repository / "CLAUDE.md").write_text("@AGENTS.md\n\nBe brief.\n")
    Engine(project, settings).store.add(FACT)
    Engine(project, settings).reconcile()
    before = (repository / "CLAUDE.md").read_bytes()
    assert FACT.encode() not in before

    asked = requests.request(project, requests.named("claude"), settings)
    report = Engine(asked, settings).reconcile()
    assert (repository / "CLAUDE.md").read_text().count(FACT) == 1
    assert "claude-double" in {notice.code for notice in report.notices}
    Engine(load_projects()[0], settings).store.add("Deploys need two people.")
    Engine(load_projects()[0], settings).reconcile()
    assert "two people" in (repository / "CLAUDE.md").read_text()

    again = requests.withdraw(asked, requests.named("claude"), settings)
    report = Engine(again, settings).reconcile()
    assert (repository / "CLAUDE.md").read_bytes() == before
    assert "claude-double" not in {notice.code for notice in report.notices}


@pytest.mark.parametrize(
    ("name", "files"),
    [
        ("opencode", {".opencode/memory-bridge.md"}),
        ("gemini", {".gemini/memory-bridge.md"}),
        ("antigravity", {".agents/rules/agent-bridge.md", ".gemini/memory-bridge.md"}),
    ],
)
def test_an_agents_own_files_come_and_go(
    project: Project, settings: Settings, repository: Path, tree: Tree, name: str, files: set[str]
) -> None:
    Engine(project, settings).store.add(FACT)
    Engine(project, settings).reconcile()
    before = {path: found for path, found in tree(repository).items() if not path.startswith(".git/")}
    assert not files & before.keys()

    asked = requests.request(project, requests.named(name), settings)
    Engine(asked, settings).reconcile()
    for path in files:
        assert (repository / path).read_text().count(FACT) == 1
    again = requests.withdraw(asked, requests.named(name), settings)
    Engine(again, settings).reconcile()
    after = {path: found for path, found in tree(repository).items() if not path.startswith(".git/")}
    assert after == before


def test_asking_twice_is_asking_once(project: Project, settings: Settings) -> None:
    asked = requests.request(project, requests.named("opencode"), settings)
    assert requests.request(asked, requests.named("opencode"), settings) == asked
    assert asked.requested == ("opencode",)
    assert setup.describe(project.root).requested == ("opencode",)


def test_a_name_that_nobody_has_is_refused_with_those_there_are() -> None:
    with pytest.raises(UsageError, match="nobody") as refused:
        requests.named("nobody")
    assert "antigravity" in refused.value.remedy
