"""What an observation of a checkout holds."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from agent_bridge.harnesses.base import FileKind, Site
from agent_bridge.harnesses.observe import look, observe_site, observe_user, recorded_environment
from agent_bridge.projects import Project, id_for

Make = Callable[[Mapping[str, str]], Site]


def test_each_kind_of_path_is_told_apart(tmp_path: Path) -> None:
    root = tmp_path / "root"
    (root / "dir").mkdir(parents=True)
    (root / "file").write_text("text")
    (tmp_path / "outside").write_text("text")
    os.mkfifo(root / "fifo")
    for name, target in {
        "link": "file",
        "out": "../outside",
        "dangling": "gone",
        "loop": "loop",
        "dirlink": "dir",
        "fifolink": "fifo",
    }.items():
        (root / name).symlink_to(target)
    expected = {
        "file": (FileKind.FILE, True),
        "link": (FileKind.SYMLINK, True),
        "out": (FileKind.SYMLINK, False),
        "dangling": (FileKind.DANGLING, True),
        "loop": (FileKind.DANGLING, True),
        "dir": (FileKind.DIRECTORY, True),
        "dirlink": (FileKind.LINKED_DIRECTORY, True),
        "fifo": (FileKind.OTHER, True),
        "fifolink": (FileKind.OTHER, True),
        "absent": (FileKind.ABSENT, True),
        "file/below": (FileKind.OTHER, True),
    }
    seen = {name: look(root / name, root) for name in expected}
    assert {name: (file.kind, file.inside) for name, file in seen.items()} == expected
    assert seen["link"].identity == seen["file"].identity
    assert (seen["link"].data, seen["dir"].data, seen["fifo"].data) == (b"text", b"", b"")
    assert seen["dangling"].real == root / "gone"


@pytest.mark.parametrize("name", ["half \ud83d", "nul \0", "\ude00/below"])
def test_a_name_that_no_file_can_have_stands_for_nothing(tmp_path: Path, name: str) -> None:
    assert look(tmp_path / name, tmp_path).kind is FileKind.ABSENT
    (tmp_path / "caf\udce9").write_text("bytes that are no UTF-8 can be a name")
    assert look(tmp_path / "caf\udce9", tmp_path).kind is FileKind.FILE


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_without_rights_is_told(tmp_path: Path) -> None:
    (tmp_path / "x").write_text("text")
    (tmp_path / "x").chmod(0)
    seen = look(tmp_path / "x", tmp_path)
    assert seen.kind is FileKind.OTHER
    assert seen.problem


def test_git_says_what_is_tracked_and_what_lies_below(make: Make) -> None:
    root = make(
        {"docs/C.md": "x", "CLAUDE.md": "-> docs/C.md", "AGENTS.md": "y", "a/AGENTS.md": "abc"}
    ).checkout
    subprocess.run(["git", "-C", str(root), "add", "docs/C.md"], check=True)
    site = make({})
    assert site.is_git
    assert site.file("CLAUDE.md").tracked
    assert not site.file("AGENTS.md").tracked
    assert [(nested.name, nested.size) for nested in site.nested] == [("a/AGENTS.md", 3)]


def test_outside_of_git_nothing_is_tracked(sealed_home: Path) -> None:
    root = sealed_home / "plain"
    root.mkdir()
    (root / "AGENTS.md").write_text("x")
    site = observe_site(Project(id_for(root), root), root)
    assert not site.is_git
    assert site.file("AGENTS.md").readable
    assert site.nested == ()


def test_a_path_that_nobody_asked_for_is_absent(make: Make) -> None:
    site = make({})
    assert site.file("some/where.md").kind is FileKind.ABSENT
    assert site.file("/else/where.md").inside is False
    assert site.settings("none.json") is None


def test_imports_are_followed_and_a_circle_ends(make: Make) -> None:
    site = make({"CLAUDE.md": "@a.md", "a.md": "@b.md", "b.md": "@a.md @CLAUDE.md @/etc/hostname.md"})
    assert site.file("b.md").readable


def test_what_init_recorded_decides_not_the_shell(monkeypatch: pytest.MonkeyPatch, sealed_home: Path) -> None:
    monkeypatch.setenv("CODEX_HOME", "/from/the/shell")
    project = Project("0" * 16, sealed_home, {"CLAUDE_CONFIG_DIR": "/recorded"})
    env = recorded_environment(project)
    assert env["CLAUDE_CONFIG_DIR"] == "/recorded"
    assert env["HOME"] == str(sealed_home)
    assert "CODEX_HOME" not in env


@pytest.mark.parametrize("repository", ["", ".claude"])
def test_a_home_in_git_is_seen(sealed_home: Path, repository: str) -> None:
    (sealed_home / ".claude").mkdir()
    (sealed_home / ".codex").mkdir()
    subprocess.run(["git", "init", "-q", str(sealed_home / repository)], check=True)
    env = {"HOME": str(sealed_home)}
    claude, codex = sealed_home / ".claude/CLAUDE.md", sealed_home / ".codex/AGENTS.md"
    site = observe_user(env)
    assert (site.file(claude).tracked, site.file(codex).tracked) == (True, repository == "")
    (sealed_home / repository / ".gitignore").write_text("CLAUDE.md\n")
    claude.write_text("x")
    assert not observe_user(env).file(claude).tracked
    subprocess.run(["git", "-C", str(sealed_home / repository), "add", "-f", str(claude)], check=True)
    assert observe_user(env).file(claude).tracked


def test_a_home_out_of_git_is_seen(sealed_home: Path) -> None:
    (sealed_home / ".codex").mkdir()
    assert not any(file.tracked for file in observe_user({"HOME": str(sealed_home)}).files.values())


def test_settings_that_are_too_large_to_parse_at_once_are_told(make: Make) -> None:
    name = ".claude/settings.local.json"
    small, large = '{"a": "b"}', '{"a": "' + "b" * 1024 * 1024 + '"}'
    site = make({name: small})
    assert site.settings(name) == small.encode()
    site = make({name: large})
    assert site.settings(name) is None
    assert site.file(name).problem
