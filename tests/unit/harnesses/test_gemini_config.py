"""What Gemini CLI's settings say."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from agent_bridge.harnesses import gemini_config
from agent_bridge.harnesses.base import Site
from agent_bridge.projects import Project

ROOT, HOME = Path("/home/u/code/p"), Path("/home/u")


def _site(**files: object) -> Site:
    """A site with the settings files `user`, `project` and `trust`; a text is taken as it is."""
    places = {
        "user": HOME / ".gemini/settings.json",
        "project": ROOT / ".gemini/settings.json",
        "trust": HOME / ".gemini/trustedFolders.json",
    }
    config = {
        str(places[name]): (value if isinstance(value, str) else json.dumps(value)).encode()
        for name, value in files.items()
    }
    return Site(Project("p", ROOT), ROOT, env={"HOME": str(HOME)}, config=config)


@pytest.mark.parametrize(
    ("value", "names"),
    [
        ("AGENTS.md", ("AGENTS.md",)),
        ([" AGENTS.md ", "./docs/x.md", "AGENTS.md"], ("AGENTS.md", "docs/x.md")),
        (["../x.md", "/etc/passwd", "", 3, None, "a\0b", "."], ("etc/passwd",)),
        ({}, ()),
        (None, ()),
    ],
)
def test_names_stay_below_a_directory(value: object, names: tuple[str, ...]) -> None:
    assert gemini_config.file_names(json.dumps({"context": {"fileName": value}}).encode()) == names


@pytest.mark.parametrize("data", [b"", b"[]", b"{", b"\xff", b'{"context": 3}', b"[" * 500])
def test_nothing_is_named_by_what_is_no_setting(data: bytes) -> None:
    assert gemini_config.file_names(data) == ()


def test_the_projects_names_hold_in_its_root() -> None:
    site = _site(
        user='{"context": {"fileName": "U.md"}} // mine', project={"context": {"fileName": ["P.md"]}}
    )
    assert gemini_config.names(site) == ("P.md", "GEMINI.md")
    assert gemini_config.names(site, below_root=True) == ("U.md", "GEMINI.md")
    assert gemini_config.names(_site()) == ("GEMINI.md",)


def test_what_stops_the_search() -> None:
    assert gemini_config.markers(_site()) == (".git",)
    assert gemini_config.markers(_site(user={"context": {"memoryBoundaryMarkers": [".hg", "/x", 1]}})) == (
        ".hg",
    )


@pytest.mark.parametrize(
    ("trust", "distrusted"),
    [
        ({}, False),
        ({str(ROOT): "DO_NOT_TRUST"}, True),
        ({str(HOME): "DO_NOT_TRUST"}, True),
        ({str(HOME): "DO_NOT_TRUST", str(ROOT): "TRUST_FOLDER"}, False),
        ({str(HOME): "DO_NOT_TRUST", str(ROOT / "sub"): "TRUST_PARENT"}, False),
        ({"/elsewhere": "DO_NOT_TRUST"}, False),
        ("no JSON", False),
    ],
)
def test_trust_is_what_the_longest_rule_says(trust: object, distrusted: bool) -> None:
    assert gemini_config.distrusted(_site(trust=trust)) is distrusted


def test_trust_can_be_switched_off() -> None:
    off = {"security": {"folderTrust": {"enabled": False}}}
    assert not gemini_config.distrusted(_site(user=off, trust={str(ROOT): "DO_NOT_TRUST"}))


def test_short_names_lead_nowhere_else() -> None:
    registry = {"projects": {"/a": "a", "/b": "../x", "c": "c", "/d": "..", "/e": 5, "/f": "x/y", "/g": ""}}
    registry["projects"] |= {"/h\ud83d": "h", "/i": "half \ud83d"}
    assert gemini_config.slugs(json.dumps(registry).encode()) == {"/a": "a"}
    assert gemini_config.slugs(None) == {}


def test_settings_that_are_no_json_are_told() -> None:
    [(path, problem)] = gemini_config.problems(_site(user="{", project={}))
    assert path == HOME / ".gemini/settings.json"
    assert problem
