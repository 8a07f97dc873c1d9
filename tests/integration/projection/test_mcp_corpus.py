"""Edits of settings for MCP against golden files: nothing else changes, twice is once, undone to the byte."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent_bridge.harnesses import antigravity_mcp, claude_mcp, codex_mcp, gemini_mcp, opencode_mcp
from agent_bridge.harnesses.base import KeyEdit, Site
from agent_bridge.projection import apply, undo
from agent_bridge.projection.ledger import Ledger
from agent_bridge.projects import Project

CORPUS = Path(__file__).parents[2] / "corpus" / "mcp_setup"
CASES = sorted(CORPUS.glob("*/*.before.*"))


def edits_for(case: Path, place: Path) -> tuple[KeyEdit, ...]:
    """What the client of a case wants in the file at `place`."""
    root = place.parent
    site = Site(Project("0" * 16, root, mcp=True), root, env={"CODEX_HOME": str(root)})
    wanted = {
        "claude": claude_mcp.edits(site, may_change_settings=False),
        "settings": claude_mcp.edits(site, may_change_settings=True)[1:],
        "codex": codex_mcp.edits(site, ("agent-bridge-mcp",)),
        "opencode": opencode_mcp.edits(site),
        "gemini": gemini_mcp.edits(site),
        "antigravity": antigravity_mcp.edits(site),
    }[case.parent.name]
    return tuple(
        KeyEdit(place, edit.format, edit.key, edit.value, edit.why, element=edit.element) for edit in wanted
    )


def test_there_are_cases_of_each_client() -> None:
    assert {case.parent.name for case in CASES} == {
        "claude",
        "settings",
        "codex",
        "opencode",
        "gemini",
        "antigravity",
    }
    assert len(CASES) >= 35


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.parent.name}-{case.name}")
def test_an_edit_changes_nothing_else_and_is_undone_to_the_byte(case: Path, tmp_path: Path) -> None:
    before = case.read_bytes()
    place = tmp_path / "file"
    place.write_bytes(before)
    ledger = Ledger(tmp_path / "state")
    edits = edits_for(case, place)

    assert apply.edit_keys(ledger, place, edits)
    assert place.read_bytes() == case.with_name(case.name.replace(".before.", ".after.")).read_bytes()
    assert not apply.edit_keys(ledger, place, edits)

    (entry,) = ledger.entries()
    assert undo.undo(ledger, entry).outcome == "restored"
    assert place.read_bytes() == before


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.parent.name}-{case.name}")
def test_where_others_wrote_since_key_by_key_comes_to_the_same(case: Path, tmp_path: Path) -> None:
    """Only the file's first bytes are gone from the record: what is ours is found piece by piece."""
    before = case.read_bytes()
    place = tmp_path / "file"
    place.write_bytes(before)
    ledger = Ledger(tmp_path / "state")
    edits = edits_for(case, place)
    apply.edit_keys(ledger, place, edits)

    for edit in reversed(edits):
        undo.undo_keys(ledger, place, [edit])

    assert place.read_bytes() == before
