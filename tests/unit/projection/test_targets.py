"""Carriers merged into targets: one real file, one block."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from agent_bridge.harnesses.base import Carrier, FileKind, InstructionFile, Scope, Site
from agent_bridge.projection.targets import Layout, lay_out
from agent_bridge.projects import Project

ROOT = Path("/srv/shop")
PROJECT = Project("0" * 16, ROOT)


def _file(name: str, kind: FileKind = FileKind.FILE, **more: object) -> InstructionFile:
    values: dict[str, object] = {"identity": (1, hash(name)), "real": ROOT / name, **more}
    return InstructionFile(name=name, path=ROOT / name, kind=kind, **values)  # type: ignore[arg-type]


def _carrier(name: str, reader: str, *, create: bool = False, budget: int = 1 << 20) -> Carrier:
    return Carrier(
        ROOT / name, "block", Scope.PROJECT, (reader,), create=create, local=True, budget=budget, why=reader
    )


def _layout(files: list[InstructionFile], carriers: list[Carrier], *, private_store: bool = False) -> Layout:
    site = Site(PROJECT, ROOT, files={str(file.path): file for file in files})
    return lay_out([(site, carrier) for carrier in carriers], budget=16384, private_store=private_store)


def test_one_file_under_two_names_is_one_target() -> None:
    agents = _file("AGENTS.md")
    link = _file("CLAUDE.md", FileKind.SYMLINK, real=agents.real, identity=agents.identity)
    layout = _layout([agents, link], [_carrier("AGENTS.md", "codex"), _carrier("CLAUDE.md", "claude-code")])
    (target,) = layout.targets
    assert target.readers == ("codex", "claude-code")


def test_hard_links_are_one_target() -> None:
    one, other = _file("A.md", identity=(1, 7)), _file("B.md", identity=(1, 7))
    assert len(_layout([one, other], [_carrier("A.md", "a"), _carrier("B.md", "b")]).targets) == 1


def test_two_missing_names_of_one_place_are_one_target() -> None:
    layout = _layout([], [_carrier("AGENTS.md", "a", create=True), _carrier("AGENTS.md", "b", create=True)])
    (target,) = layout.targets
    assert target.readers == ("a", "b")


def test_a_file_without_readers_serves_those_that_want_it() -> None:
    asked = replace(_carrier("GEMINI.md", "gemini", create=True), readers=(), asked_by="gemini")
    read = replace(_carrier("AGENTS.md", "codex"), asked_by="gemini")
    layout = _layout([_file("AGENTS.md")], [asked, read])
    assert {target.path.name: target.serves for target in layout.targets} == {
        "GEMINI.md": ("gemini",),
        "AGENTS.md": ("codex",),
    }


def test_the_smallest_budget_serves_all_readers() -> None:
    carriers = [_carrier("AGENTS.md", "a", budget=4000), _carrier("AGENTS.md", "b", budget=90000)]
    (target,) = _layout([_file("AGENTS.md")], carriers).targets
    assert target.budget == 4000


@pytest.mark.parametrize(
    ("file", "code"),
    [
        (_file("AGENTS.md", FileKind.DANGLING, identity=None), "carrier-unusable"),
        (_file("AGENTS.md", FileKind.DIRECTORY, identity=None), "carrier-unusable"),
        (_file("AGENTS.md", FileKind.OTHER, identity=None, problem="it is a FIFO"), "carrier-unusable"),
        (_file("AGENTS.md", FileKind.SYMLINK, inside=False, real=Path("/etc/x")), "carrier-outside"),
    ],
)
def test_what_can_hold_no_block_is_told(file: InstructionFile, code: str) -> None:
    layout = _layout([file], [_carrier("AGENTS.md", "codex", create=True)])
    assert layout.targets == ()
    assert [notice.code for notice in layout.notices] == [code]


@pytest.mark.parametrize(("tracked", "targets"), [(True, 0), (False, 1)])
def test_a_store_kept_out_of_git_isn_t_put_into_tracked_files(tracked: bool, targets: int) -> None:
    layout = _layout(
        [_file("AGENTS.md", tracked=tracked)], [_carrier("AGENTS.md", "codex")], private_store=True
    )
    assert len(layout.targets) == targets
    assert [notice.code for notice in layout.notices] == ["carrier-tracked"] * (1 - targets)


def test_a_missing_file_is_made_only_where_that_is_asked_for() -> None:
    assert _layout([], [_carrier("AGENTS.md", "codex")]).targets == ()
    assert len(_layout([], [_carrier("AGENTS.md", "codex", create=True)]).targets) == 1


@pytest.mark.parametrize(
    ("real", "misled"),
    [
        (".git/config", True),
        ("sub/.git/HEAD", True),
        (".memory/fact.md", True),
        (".memory/MEMORY.md", True),
        (".claude/settings.local.json", True),
        ("src/main.py", True),
        ("Makefile", True),
        ("docs/AGENTS.md", False),
        ("CLAUDE.md", False),
        ("docs/rules.txt", False),
        (".cursorrules", False),
    ],
)
def test_a_link_to_what_is_no_text_for_people_gets_no_block(real: str, *, misled: bool) -> None:
    file = _file("AGENTS.md", FileKind.SYMLINK, real=ROOT / real, data=b"x", identity=(1, 2))
    layout = _layout([file], [_carrier("AGENTS.md", "codex")])
    assert [notice.code for notice in layout.notices] == (["carrier-misled"] if misled else [])
    assert bool(layout.targets) is not misled
