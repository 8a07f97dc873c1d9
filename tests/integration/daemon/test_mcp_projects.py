"""Which project a directory is of, asked again and again: Git answers once, and what changes is seen."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from agent_bridge import git, projects
from agent_bridge.daemon.mcp_projects import HOLDS_S, ProjectFinder


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """What Git is asked about."""
    found: list[Path] = []
    ask = git.find_checkout
    monkeypatch.setattr(git, "find_checkout", lambda path: found.append(path) or ask(path))  # type: ignore[func-returns-value]
    return found


def listed(root: Path) -> projects.Project:
    subprocess.run(["git", "init", "-q", str(root)], check=True)
    project = projects.Project(projects.id_for(root), root)
    projects.add_project(project)
    return project


def test_git_is_asked_once_until_the_answer_is_old(sealed_home: Path, asked: list[Path]) -> None:
    now = 0.0
    project = listed(sealed_home.resolve() / "project")
    below = project.root / "src" / "deep"
    below.mkdir(parents=True)
    finder = ProjectFinder(lambda: now)
    assert [finder.find(below) for _ in range(5)] == [project] * 5
    assert len(asked) == 1
    now = HOLDS_S
    assert finder.find(below) == project
    assert len(asked) == 2


def _eject(project: projects.Project) -> None:
    projects.remove_project(project.id)


def _nested(project: projects.Project) -> None:
    subprocess.run(["git", "init", "-q", str(project.root / "src")], check=True)


def _no_repository(project: projects.Project) -> None:
    shutil.rmtree(project.root / ".git")
    projects.remove_project(project.id)


def _led_elsewhere(project: projects.Project) -> None:
    link = project.root.parent / "link"
    link.unlink()
    link.symlink_to(project.root.parent)


@pytest.mark.parametrize("change", [_eject, _nested, _no_repository, _led_elsewhere])
def test_what_changes_the_answer_is_seen_at_once(
    sealed_home: Path, change: Callable[[projects.Project], None]
) -> None:
    project = listed(sealed_home.resolve() / "project")
    (project.root / "src" / "deep").mkdir(parents=True)
    (sealed_home / "link").symlink_to(project.root / "src" / "deep")
    finder = ProjectFinder(lambda: 0.0)
    assert finder.find(sealed_home / "link") == project
    change(project)
    assert finder.find(sealed_home / "link") is None


def test_a_project_that_is_listed_later_is_found(sealed_home: Path) -> None:
    root = sealed_home.resolve() / "project"
    root.mkdir()
    finder = ProjectFinder(lambda: 0.0)
    assert finder.find(root) is None
    project = listed(root)
    assert finder.find(root) == project
    changed = projects.Project(project.id, root, delivery="hooks")
    projects.add_project(changed)
    assert finder.find(root) == changed
