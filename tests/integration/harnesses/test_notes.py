"""Which texts Claude Code's and Codex's hand-written files hold, as `sync --from` gets them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from agent_bridge.harnesses.base import NativeItem
from agent_bridge.harnesses.claude_code import ClaudeCode
from agent_bridge.harnesses.claude_places import memory_directory
from agent_bridge.harnesses.codex import Codex
from agent_bridge.harnesses.observe import observe_site
from agent_bridge.projects import Project, id_for


@pytest.fixture
def project(sealed_home: Path) -> Project:
    """A directory with a memory, not set up."""
    root = sealed_home / "work"
    (root / ".memory").mkdir(parents=True)
    for name in (".claude", ".codex"):
        (sealed_home / name).mkdir()
    return Project(id_for(root), root, {})


def _claude(project: Project) -> list[NativeItem]:
    return ClaudeCode().hand_written(observe_site(project, project.root))


def _codex(project: Project) -> list[NativeItem]:
    return Codex().hand_written(observe_site(project, project.root))


def _put(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def test_claudes_files_and_which_of_them_are_one_persons(project: Project) -> None:
    root = project.root
    for name, text in {
        "CLAUDE.md": "- main\n",
        ".claude/CLAUDE.md": "- folder\n",
        "CLAUDE.local.md": "- local\n",
        ".claude/rules/a.md": "---\npaths: [src]\n---\n- rule\n",
        ".claude/rules/deep/b.md": "- deep rule\n",
        ".claude/rules/agent-bridge.md": "- ours\n",
        ".claude/rules/c.txt": "- no rule\n",
        "AGENTS.md": "- for others\n",
    }.items():
        _put(root / name, text)
    found = _claude(project)
    assert [(item.text, item.source_file.relative_to(root).as_posix(), item.private) for item in found] == [
        ("main", "CLAUDE.md", False),
        ("folder", ".claude/CLAUDE.md", False),
        ("local", "CLAUDE.local.md", True),
        ("rule", ".claude/rules/a.md", False),
        ("deep rule", ".claude/rules/deep/b.md", False),
    ]
    assert {item.directory for item in found} == {root}


def test_claudes_own_memory_is_told_where_it_is_no_link(project: Project) -> None:
    place = memory_directory(observe_site(project, project.root))
    _put(
        place / "build.md",
        "---\nname: build-tool\nmetadata:\n  type: user\n  modified: 2026-01-02T03:04:05Z\n---\n\nNox.\n",
    )
    _put(place / "MEMORY.md", "- [Build](build.md) — Nox\n")
    _put(place / "broken.md", "a\0b")
    (item,) = _claude(project)
    assert (item.text, item.title, item.source_file) == ("Nox.", "build-tool", place / "build.md")
    assert (item.private, item.created_at) == (True, "2026-01-02T03:04:05.000Z")


def test_an_index_without_files_is_the_memory_itself(project: Project) -> None:
    place = memory_directory(observe_site(project, project.root))
    _put(place / "MEMORY.md", "# Memory\n\n- Nox runs the tests.\n")
    assert [item.text for item in _claude(project)] == ["Nox runs the tests."]


def test_a_memory_that_is_the_store_already_is_not_told(project: Project) -> None:
    place = memory_directory(observe_site(project, project.root))
    _put(project.store / "build.md", "Nox.\n")
    place.parent.mkdir(parents=True)
    place.symlink_to(project.store)
    assert _claude(project) == []


@pytest.mark.parametrize("target", ["../diary.md", ".git/x.md", ".memory/fact.md"])
def test_a_symlink_to_what_is_not_the_projects_text_is_not_followed(project: Project, target: str) -> None:
    _put(project.root / target, "- Dear diary.\n")
    for name in ("CLAUDE.md", "AGENTS.md", ".claude/rules/x.md"):
        (project.root / name).parent.mkdir(parents=True, exist_ok=True)
        (project.root / name).symlink_to(project.root / target)
    assert _claude(project) + _codex(project) == []
    _put(project.root / "docs/x.md", "- A rule.\n")
    (project.root / "CLAUDE.md").unlink()
    (project.root / "CLAUDE.md").symlink_to("docs/x.md")
    assert [item.text for item in _claude(project)] == ["A rule."]


def test_a_fifo_among_the_rules_is_not_opened(project: Project) -> None:
    (project.root / ".claude/rules").mkdir(parents=True)
    os.mkfifo(project.root / ".claude/rules/x.md")
    os.mkfifo(project.root / "AGENTS.md")
    assert _claude(project) + _codex(project) == []


def test_codexs_files_also_the_hidden_ones_and_its_memories_of_this_project(
    project: Project, sealed_home: Path
) -> None:
    root = project.root
    _put(sealed_home / ".codex/config.toml", 'project_doc_fallback_filenames = ["TEAM.md"]\n')
    for name, text in {
        "AGENTS.md": "- plain\n",
        "AGENTS.override.md": "- override\n",
        "TEAM.md": "- team\n",
        "CLAUDE.md": "- for Claude\n",
    }.items():
        _put(root / name, text)
    notes = sealed_home / ".codex/memories/extensions/ad_hoc/notes"
    _put(notes / "2026-01-02T03-04-05-a.md", f"cwd: {root}\n\nA note.\n")
    _put(notes / "2026-01-02T03-04-06-b.md", f"cwd: {sealed_home / 'other'}\n\nNot here.\n")
    _put(notes / "2026-01-02T03-04-07-c.md", "Of no project.\n")
    assert [(item.text, item.source_file.name) for item in _codex(project)] == [
        ("override", "AGENTS.override.md"),
        ("plain", "AGENTS.md"),
        ("team", "TEAM.md"),
        ("A note.", "2026-01-02T03-04-05-a.md"),
    ]
