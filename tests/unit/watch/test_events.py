"""Which names matter, and what an event's path is."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent_bridge.watch.events import FileEvent, Interest, Kind


@pytest.mark.parametrize(
    ("name", "store", "settings"),
    [
        ("fact.md", True, True),
        ("20261129-0001-x.md", True, True),
        (".gitignore", True, False),
        ("noise.log", True, False),
        ("history.jsonl", True, False),
        ("settings.local.json", True, True),
        ("config.toml", True, True),
        (".claude", True, True),
        (".memory", True, True),
        ("4913", False, False),
        ("fact.md~", False, False),
        (".fact.md.swp", False, False),
        (".fact.md.swo", False, False),
        ("fact.md.tmp", False, False),
        (".#fact.md", False, False),
        ("#fact.md#", False, False),
        (".AGENTS.md.0a1b2c3d.agent-bridge.tmp", False, False),
    ],
)
def test_names_that_matter(name: str, store: bool, settings: bool) -> None:
    assert Interest.EVERYTHING.wants(name) is store
    assert Interest.SETTINGS.wants(name) is settings


def test_an_event_of_the_directory_itself_names_the_directory() -> None:
    assert FileEvent(Kind.SELF, Path("/a"), "").path == Path("/a")
    assert FileEvent(Kind.CLOSED, Path("/a"), "b").path == Path("/a/b")
