"""Globs over whole paths."""

from __future__ import annotations

import time

import pytest

from agent_bridge.harnesses.path_glob import matches


@pytest.mark.parametrize(
    ("pattern", "path", "expected"),
    [
        ("**/CLAUDE.md", "/a/b/CLAUDE.md", True),
        ("**/CLAUDE.md", "/CLAUDE.md", True),
        ("CLAUDE.md", "/a/CLAUDE.md", False),
        ("/a/CLAUDE.md", "/a/CLAUDE.md", True),
        ("/a/*.md", "/a/x.md", True),
        ("/a/*.md", "/a/b/x.md", False),
        ("/a/**/x.md", "/a/x.md", True),
        ("/a/**/x.md", "/a/b/c/x.md", True),
        ("/a/**/x.md", "/a/bx.md", False),
        ("/a/**", "/a/b/c", True),
        ("/a/?.md", "/a/x.md", True),
        ("/a/?.md", "/a//.md", False),
        ("**/rules/**", "/a/.claude/rules/x.md", True),
        ("", "/a", False),
        ("/a.md", "/axmd", False),
    ],
)
def test_matching(pattern: str, path: str, expected: bool) -> None:
    assert matches(pattern, path) is expected


@pytest.mark.parametrize("pattern", ["**/" * 333, "*a" * 500, "**" * 500, "?" * 1000])
def test_a_hostile_pattern_takes_no_time(pattern: str) -> None:
    started = time.process_time()
    matches(pattern, "/" + "a" * 2000)
    assert time.process_time() - started < 5
