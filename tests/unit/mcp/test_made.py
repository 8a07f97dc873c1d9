"""The files that are made from the tools are up to date."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from agent_bridge.mcp import catalogue as catalogues
from agent_bridge.mcp.made import SKILL, made

FILES = made()


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_it_is_up_to_date(path: Path) -> None:
    assert path.read_bytes() == FILES[path], "run scripts/catalogue"


def test_the_skills_directory_holds_nothing_else() -> None:
    assert {path for path in SKILL.rglob("*") if path.is_file()} == {
        path for path in FILES if SKILL in path.parents
    }


def test_the_shipped_catalogue_is_whole() -> None:
    shipped = catalogues.shipped()

    about = ["serverInfo", "instructions", "capabilities", "resources", "tools"]
    assert list(shipped) == ["catalogue", "digest", *about]
    assert shipped["digest"] == catalogues.digest(shipped)


def test_another_description_is_another_digest() -> None:
    shipped = json.loads(json.dumps(catalogues.shipped()))
    shipped["tools"][0]["description"] += " More."

    assert catalogues.digest(shipped) != shipped["digest"]


def test_a_file_holds_a_tool_a_line_and_reads_as_what_was_written() -> None:
    shipped = catalogues.shipped()
    text = catalogues.as_file(shipped).decode()

    assert json.loads(text) == shipped
    assert sum(line.startswith('  {"name": ') for line in text.splitlines()) == len(shipped["tools"])
