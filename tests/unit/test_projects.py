"""Projects: one list, and one answer to where a directory belongs."""

from __future__ import annotations

import dataclasses
import json
import os
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from agent_bridge import paths, projects
from agent_bridge.errors import RefusedError
from agent_bridge.projects import Project


def git(*words: str | Path, cwd: Path) -> None:
    subprocess.run(["git", *words], cwd=cwd, check=True, capture_output=True)


def make_project(root: Path) -> Project:
    return Project(
        projects.id_for(root), Path(os.path.realpath(root)), {"HOME": "/h"}, "local", "2026-01-01T00:00:00Z"
    )


@pytest.fixture
def repository(sealed_home: Path) -> Path:
    root = sealed_home / "repo"
    (root / "deep/er").mkdir(parents=True)
    git("init", "-q", cwd=root)
    git("commit", "-q", "--allow-empty", "-m", "start", cwd=root)
    return root


def test_places_of_a_project_follow_from_root_and_id(sealed_home: Path) -> None:
    project = make_project(sealed_home)
    assert project.store == sealed_home / ".memory"
    assert project.state == paths.project_state(project.id)
    assert project.lock.parent == project.state
    assert len(project.id) == 16
    assert set(project.id) <= set("0123456789abcdef")


def test_the_id_is_the_real_paths(sealed_home: Path) -> None:
    (sealed_home / "link").symlink_to(".")
    assert projects.id_for(sealed_home / "link") == projects.id_for(sealed_home)
    assert projects.id_for(sealed_home / "other") != projects.id_for(sealed_home)


def test_reading_makes_nothing(sealed_home: Path) -> None:
    assert projects.load_projects() == []
    assert projects.find_project(sealed_home) is None
    assert not paths.state_dir().exists()


def test_what_is_added_is_read_back_in_order(sealed_home: Path) -> None:
    first, second = make_project(sealed_home / "b"), make_project(sealed_home / "a")
    projects.add_project(first)
    projects.add_project(second)
    assert projects.load_projects() == [first, second]
    changed = dataclasses.replace(first, worktrees="separate")
    projects.add_project(changed)
    assert projects.load_projects() == [changed, second]
    assert projects.remove_project(first.id) == changed
    assert projects.remove_project(first.id) is None
    assert projects.load_projects() == [second]
    assert paths.projects_file().stat().st_mode & 0o777 == 0o600


def test_a_path_that_is_no_text_survives(sealed_home: Path) -> None:
    project = make_project(sealed_home / os.fsdecode(b"odd\xff"))
    projects.add_project(project)
    assert projects.load_projects() == [project]


def test_adding_at_the_same_time_loses_none(sealed_home: Path) -> None:
    added = [make_project(sealed_home / str(number)) for number in range(20)]
    with ThreadPoolExecutor(5) as pool:
        list(pool.map(projects.add_project, added))
    assert sorted(project.id for project in projects.load_projects()) == sorted(
        project.id for project in added
    )


@pytest.mark.parametrize("where", [".", "deep/er", "link", "link/deep", "deep/file.txt"])
def test_locate_inside_git_is_the_main_checkout(where: str, repository: Path) -> None:
    (repository.parent / "link").symlink_to("repo")
    (repository / "deep/file.txt").write_text("")
    start = repository.parent / where if where.startswith("link") else repository / where
    assert projects.locate(start) == repository


def test_locate_in_a_worktree_is_the_main_checkout(repository: Path) -> None:
    tree = repository.parent / "tree"
    git("worktree", "add", "-q", tree, cwd=repository)
    assert projects.locate(tree) == repository


def test_locate_in_a_worktree_of_a_bare_repository_is_that_worktree(repository: Path) -> None:
    bare, tree = repository.parent / "bare.git", repository.parent / "tree"
    git("clone", "-q", "--bare", repository, bare, cwd=repository)
    git("worktree", "add", "-q", tree, cwd=bare)
    assert projects.locate(tree) == tree


def test_locate_outside_git_is_the_directory(sealed_home: Path) -> None:
    (sealed_home / "notes").mkdir()
    assert projects.locate(sealed_home / "notes") == sealed_home / "notes"


def test_find_project_from_below(repository: Path) -> None:
    project = make_project(repository)
    projects.add_project(project)
    assert projects.find_project(repository / "deep/er") == project
    assert projects.find_project(repository.parent) is None


def test_find_project_outside_git_takes_the_innermost(sealed_home: Path) -> None:
    outer, inner = make_project(sealed_home / "notes"), make_project(sealed_home / "notes/in")
    (inner.root / "deep").mkdir(parents=True)
    projects.add_project(outer)
    projects.add_project(inner)
    assert projects.find_project(inner.root / "deep") == inner
    assert projects.find_project(outer.root) == outer


def test_a_repository_inside_a_project_is_not_that_project(repository: Path) -> None:
    projects.add_project(make_project(repository.parent))
    assert projects.find_project(repository / "deep") is None


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        '{"schema": 2, "projects": []}',
        '{"schema": 1}',
        '{"schema": 1, "projects": [1]}',
        '{"schema": 1, "projects": [{"id": "x", "root": "/r"}]}',
        '{"schema": 1, "projects": [{"id": 1, "root": "/r"}]}',
        b"\xff",
        "[" * 100_000,
    ],
)
def test_a_list_that_makes_no_sense_is_refused_and_kept(text: str | bytes, sealed_home: Path) -> None:
    data = text if isinstance(text, bytes) else text.encode()
    paths.state_dir().mkdir(parents=True)
    paths.projects_file().write_bytes(data)
    with pytest.raises(RefusedError, match=r"projects\.json"):
        projects.load_projects()
    with pytest.raises(RefusedError):
        projects.add_project(make_project(sealed_home))
    assert paths.projects_file().read_bytes() == data


@pytest.mark.parametrize(
    "change",
    [
        {"id": "../../../etc"},
        {"root": "relative"},
        {"mode": "public"},
        {"worktrees": "none"},
        {"environment": {"HOME": 1}},
        {"environment": []},
    ],
)
def test_a_project_that_makes_no_sense_is_refused(change: dict[str, object], sealed_home: Path) -> None:
    projects.add_project(make_project(sealed_home))
    document = json.loads(paths.projects_file().read_text())
    document["projects"][0] |= change
    paths.projects_file().write_text(json.dumps(document))
    with pytest.raises(RefusedError):
        projects.load_projects()


def test_only_what_is_set_is_captured() -> None:
    env = {"HOME": "/h", "CODEX_HOME": "/c", "XDG_CONFIG_HOME": "", "PATH": "/bin", "API_TOKEN": "secret"}
    assert projects.captured_environment(env) == {"HOME": "/h", "CODEX_HOME": "/c"}
