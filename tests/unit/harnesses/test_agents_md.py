"""When AGENTS.md may be the file that several harnesses share."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from agent_bridge.harnesses import agents_md
from agent_bridge.harnesses.base import FileKind, InstructionFile, NestedFile, Site
from agent_bridge.projects import Project

ROOT = Path("/p")


def site_with(*found: InstructionFile, mode: str = "shared", config: bytes = b"") -> Site:
    settings = {"/h/.codex/config.toml": config} if config else {}
    return Site(
        project=Project("p", ROOT, mode=mode),  # type: ignore[arg-type]
        checkout=ROOT,
        env={"HOME": "/h"},
        files={str(file.path): file for file in found},
        config=settings,
    )


def named(name: str, kind: FileKind = FileKind.FILE, data: bytes = b"text\n") -> InstructionFile:
    return InstructionFile(name, ROOT / name, ROOT / name, kind, data, identity=(1, len(name)))


def test_it_is_made_where_it_is_missing_and_joined_where_it_stands() -> None:
    (made,) = agents_md.shared_carrier(site_with(), "someone")
    (joined,) = agents_md.shared_carrier(site_with(named("AGENTS.md")), "someone")
    assert (made.path, made.create, made.local, made.readers) == (
        ROOT / "AGENTS.md",
        True,
        True,
        ("someone",),
    )
    assert (joined.create, joined.kind) == (False, "block")
    assert joined.budget == made.budget - len(b"text\n")


@pytest.mark.parametrize(
    ("site", "why"),
    [
        (site_with(named("AGENTS.md", FileKind.DANGLING)), "nowhere"),
        (site_with(named("AGENTS.md", FileKind.DIRECTORY)), "directory"),
        (site_with(replace(named("AGENTS.md"), inside=False, real=Path("/else"))), "outside"),
        (site_with(replace(named("AGENTS.md"), tracked=True), mode="local"), "Git tracks it"),
        (
            site_with(named("TEAM.md"), config=b'project_doc_fallback_filenames = ["TEAM.md"]\n'),
            "hide TEAM.md",
        ),
        (site_with(named("AGENTS.md", data=b"x" * 31_000)), "leaves"),
        (replace(site_with(), nested=(NestedFile("sub/AGENTS.md", 31_000),)), "leaves"),
        (replace(site_with(), project=None), "projects"),
    ],
)
def test_where_it_can_t_be_used_nobody_shares_it(site: Site, why: str) -> None:
    assert why in agents_md.why_not(site)
    assert agents_md.shared_carrier(site, "someone") == ()


def test_a_tracked_file_is_shared_where_the_store_is() -> None:
    site = site_with(replace(named("AGENTS.md"), tracked=True))
    assert agents_md.shared_carrier(site, "someone")
