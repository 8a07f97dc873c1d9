"""What isn't recognised is said so, with the way out; nothing is guessed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from agent_bridge.errors import NotFoundError, UsageError
from agent_bridge.projection.importing.items import Kind
from agent_bridge.projection.importing.sources import recognise


def test_nothing_there(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError):
        recognise(tmp_path / "gone")


@pytest.mark.parametrize("name", ["notes.md", "."])
def test_plain_markdown_only_where_it_is_asked_for(tmp_path: Path, name: str) -> None:
    (tmp_path / "notes.md").write_text("A note.\n")
    with pytest.raises(UsageError, match="isn't recognised") as caught:
        recognise(tmp_path / name)
    assert "--as" in caught.value.remedy
    assert recognise(tmp_path / name, Kind.MARKDOWN).kind is Kind.MARKDOWN


def test_a_directory_that_holds_two_tools_asks_which(tmp_path: Path) -> None:
    for name in (".ruler", ".rulesync"):
        (tmp_path / name).mkdir()
    with pytest.raises(UsageError, match="several") as caught:
        recognise(tmp_path)
    assert str(tmp_path / ".rulesync") in caught.value.detail
    assert recognise(tmp_path / ".rulesync").kind is Kind.RULESYNC
    assert recognise(tmp_path, Kind.RULESYNC).path == tmp_path / ".rulesync"


@pytest.mark.parametrize("name", ["config.json", "."])
def test_basic_memorys_configuration_names_its_projects(tmp_path: Path, name: str) -> None:
    projects = {"main": "/home/ada/notes", "work": {"path": "/home/ada/work"}}
    (tmp_path / "config.json").write_text(json.dumps({"projects": projects}))
    with pytest.raises(UsageError) as caught:
        recognise(tmp_path / name)
    assert "main (/home/ada/notes)" in caught.value.detail
    assert "work (/home/ada/work)" in caught.value.detail


def test_notes_without_permalinks_are_known_by_title_and_type(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / f"{name}.md").write_text(f"---\ntitle: {name}\ntype: note\n---\n\nText.\n")
    (tmp_path / "c.md").write_text("A page of its own.\n")
    assert recognise(tmp_path).kind is Kind.BASIC_MEMORY


def test_memories_without_an_index_are_known_by_their_keys(tmp_path: Path) -> None:
    text = "---\nname: a\ndescription: b\nmetadata:\n  type: project\n---\n\nText.\n"
    (tmp_path / "a.md").write_text(text)
    assert recognise(tmp_path).kind is Kind.CLAUDE


def test_hostile_frontmatter_is_no_ground_for_anything(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("---\ntitle: &a x\ntype: *a\n---\n\nText.\n")
    with pytest.raises(UsageError):
        recognise(tmp_path)
