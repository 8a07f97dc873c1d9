"""`sync --to NAME`: extra files that somebody asked for by name, kept in line, and taken back exactly."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from agent_bridge import files
from agent_bridge.config import Settings
from agent_bridge.errors import LockTimeoutError, NotFoundError, UsageError
from agent_bridge.harnesses import in_use
from agent_bridge.projection import requests, setup
from agent_bridge.projection.engine import Engine
from agent_bridge.projection.ledger import Ledger
from agent_bridge.projection.survey import survey_project
from agent_bridge.projects import Project, add_project, load_projects

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


def test_asking_for_nothing_looks_at_nothing(project: Project, settings: Settings) -> None:
    with files.locked(project.lock, timeout=1, purpose="a test"):
        impatient = settings.model_copy(update={"lock_timeout_s": 0.01})
        assert requests.request(project, (), impatient) is project
        assert requests.withdraw(project, (), impatient) is project
        with pytest.raises(LockTimeoutError):
            requests.request(project, requests.named("opencode"), impatient)


def test_a_name_that_nobody_has_is_refused_with_those_there_are() -> None:
    with pytest.raises(UsageError, match="nobody") as refused:
        requests.named("nobody")
    assert "antigravity" in refused.value.remedy


def test_what_a_kill_interrupted_is_finished_by_asking_again(
    project: Project, settings: Settings, repository: Path
) -> None:
    opencode = requests.named("opencode")
    add_project(replace(project, requested=("opencode",)))  # killed before it set the key
    asked = requests.request(load_projects()[0], opencode, settings)
    present = [path for path in _instructions(repository) if path.exists()]
    (settings_file,) = [path for path in present if "memory-bridge.md" in path.read_text()]

    add_project(replace(asked, requested=()))  # killed before it took the key back
    requests.withdraw(load_projects()[0], opencode, settings)
    assert not settings_file.exists()


def test_what_another_command_asked_for_meanwhile_stays(project: Project, settings: Settings) -> None:
    requests.request(project, requests.named("opencode"), settings)
    requests.request(project, requests.named("gemini"), settings)  # it had read the list before
    assert load_projects()[0].requested == ("opencode", "gemini")
    requests.withdraw(project, requests.named("opencode"), settings)
    assert load_projects()[0].requested == ("gemini",)


def test_an_ejected_project_doesnt_come_back(project: Project, settings: Settings) -> None:
    setup.eject(project, settings)
    with pytest.raises(NotFoundError):
        requests.request(project, requests.named("opencode"), settings)
    assert load_projects() == []


def test_taking_one_back_leaves_others_that_only_the_service_sees(
    project: Project, settings: Settings, repository: Path
) -> None:
    (repository / "CLAUDE.md").write_bytes(b"Be brief.\n")
    (repository / "AGENTS.md").unlink()
    in_use.record(project.state, frozenset({"opencode"}))  # it is on the PATH of the service alone
    setup.set_keys(Ledger(project.state), survey_project(project, settings).keys)
    before = {path: path.read_bytes() for path in _instructions(repository) if path.exists()}
    assert before
    asked = requests.request(project, requests.named("gemini"), settings)
    requests.withdraw(asked, requests.named("gemini"), settings)
    assert "opencode" in in_use.recorded(project.state)
    assert {path: path.read_bytes() for path in _instructions(repository) if path.exists()} == before


def _instructions(repository: Path) -> list[Path]:
    return [repository / name for name in ("opencode.json", ".opencode/opencode.json")]
