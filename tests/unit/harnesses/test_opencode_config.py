"""OpenCode's settings: what an instruction means, and into which file one of ours goes."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_bridge.harnesses import opencode_config
from agent_bridge.harnesses.base import FileKind, InstructionFile, Site
from agent_bridge.harnesses.opencode_files import BRIDGE, ENTRIES
from agent_bridge.projects import Project

ROOT, HOME = Path("/p"), Path("/h")
A, B, C, D = opencode_config.PROJECT_FILES
MINE = '{"theme": "dark"}'
TRACKED = "tracked"


def site_of(found: Mapping[str, str], *, env: Mapping[str, str] | None = None, links: str = "") -> Site:
    """`found`: text by name; a name that begins with `=` is tracked, a text `dir` makes a directory."""
    files: dict[str, InstructionFile] = {}
    config: dict[str, bytes] = {}
    for spelled, text in found.items():
        name = spelled.lstrip("=")
        path = ROOT / name
        kind = FileKind.DIRECTORY if text == "dir" else FileKind.SYMLINK if name == links else FileKind.FILE
        tracked = spelled.startswith("=")
        files[str(path)] = InstructionFile(name, path, path, kind, b"", tracked, identity=(1, len(files)))
        if kind is not FileKind.DIRECTORY:
            config[str(path)] = text.encode()
    project = Project("p", ROOT)
    return Site(project, ROOT, env={"HOME": "/h"} | dict(env or {}), files=files, config=config)


def lists(*entries: str) -> str:
    return json.dumps({"instructions": list(entries)})


@pytest.mark.parametrize(
    ("entry", "path", "means"),
    [
        ("CLAUDE.md", "/p/CLAUDE.md", True),
        ("./CLAUDE.md", "/p/CLAUDE.md", True),
        ("*.md", "/p/CLAUDE.md", True),
        ("docs/*.md", "/p/docs/a.md", True),
        ("docs/*.md", "/p/docs/b/a.md", False),
        ("docs/**/*.md", "/p/docs/b/a.md", True),
        ("CLAUDE.md", "/p/sub/CLAUDE.md", False),
        ("~/x.md", "/h/x.md", True),
        ("~/x.md", "/p/x.md", False),
        ("/p/CLAUDE.md", "/p/CLAUDE.md", True),
        ("/p/*.md", "/p/CLAUDE.md", True),
        ("../p/CLAUDE.md", "/p/CLAUDE.md", True),
        ("../CLAUDE.md", "/CLAUDE.md", True),
        ("{AGENTS,CLAUDE}.md", "/p/CLAUDE.md", True),
        ("{AGENTS,CLAUDE}.md", "/p/CONTEXT.md", False),
        ("[AC]*.md", "/p/CLAUDE.md", True),
        ("[AB]*.md", "/p/CLAUDE.md", False),
        ("**/*.md", "/p/.hidden/x.md", True),
        ("https://example.com/CLAUDE.md", "/p/CLAUDE.md", False),
        ("", "/p/CLAUDE.md", False),
    ],
)
def test_what_an_instruction_means(entry: str, path: str, means: bool) -> None:
    assert opencode_config.names(entry, Path(path), ROOT, HOME) is means


def test_the_settings_that_variables_name_count_too() -> None:
    env = {
        "OPENCODE_CONFIG": "/x/one.json",
        "OPENCODE_CONFIG_DIR": "/y",
        "OPENCODE_CONFIG_CONTENT": lists("c.md"),
    }
    site = site_of({A: lists("a.md")}, env=env)
    config = {
        **site.config,
        "/x/one.json": lists("x.md").encode(),
        "/y/opencode.json": lists("y.md").encode(),
    }
    site = replace(site, config=config)
    assert set(opencode_config.entries(site)) == {"a.md", "c.md", "x.md", "y.md"}
    assert opencode_config.home_of_files(site.env) == Path("/y")
    assert opencode_config.home_of_files({"HOME": "/h"}) == Path("/h/.config/opencode")


@given(st.text(alphabet="{},[]ab*"))
def test_a_glob_stands_for_a_bounded_number_of_names(pattern: str) -> None:
    assert len(opencode_config.alternatives(pattern * 5)) <= opencode_config.ALTERNATIVES


@given(st.text(), st.text(alphabet="ab/.*", min_size=1))
def test_no_instruction_is_too_strange(entry: str, name: str) -> None:
    assert opencode_config.names(entry, ROOT / "CLAUDE.md", ROOT, HOME) in (True, False)
    assert opencode_config.names(name, ROOT / name.strip("/"), ROOT, HOME) in (True, False)


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (b"", ""),
        (b"{}", ""),
        (b"\xef\xbb\xbf{}", ""),
        (b'// mine\n{"instructions": ["a.md",], /* more */}', ""),
        (b'{"instructions": "a.md"}', "no list"),
        (b"[]", "no JSON object"),
        (b"{", "line 1"),
        (b"\xff", "line 1"),
    ],
)
def test_settings_are_json_with_comments(data: bytes, problem: str) -> None:
    found = opencode_config.parse(data)[1]
    assert problem in found
    assert bool(problem) is bool(found)


def test_only_texts_of_a_sane_length_count_as_instructions() -> None:
    site = site_of({A: json.dumps({"instructions": ["a.md", 3, None, "x" * 2000]}), D: lists("b.md", "a.md")})
    assert opencode_config.entries(site) == ("a.md", "b.md")
    assert opencode_config.lists(site, ROOT / "a.md")
    assert not opencode_config.lists(site, ROOT / "c.md")


PLACES: dict[str, tuple[dict[str, str], str, str | None]] = {
    "nothing": ({}, "CLAUDE.md", A),
    "nothing, and a file in the folder": ({}, BRIDGE, C),
    "the folder": ({".opencode": "dir"}, "CLAUDE.md", C),
    "the user's, tracked": ({f"={A}": MINE}, "CLAUDE.md", C),
    "the user's": ({A: MINE}, "CLAUDE.md", C),
    "the user's with comments": ({B: MINE}, "CLAUDE.md", C),
    "listed already": ({A: lists("CLAUDE.md"), ".opencode": "dir"}, "CLAUDE.md", A),
    "listed in a tracked one": ({f"={A}": lists("CLAUDE.md")}, "CLAUDE.md", A),
    "listed in two": ({f"={A}": lists("CLAUDE.md"), B: lists("CLAUDE.md")}, "CLAUDE.md", B),
    "another of ours": ({A: lists("CLAUDE.md"), ".opencode": "dir"}, BRIDGE, A),
    "another of ours, tracked": ({f"={A}": lists("CLAUDE.md"), ".opencode": "dir"}, BRIDGE, C),
    "the folder's is taken": ({".opencode": "dir", f"={C}": MINE}, "CLAUDE.md", D),
    "the folder's are taken": ({".opencode": "dir", f"={C}": MINE, D: MINE}, "CLAUDE.md", A),
    "all are taken": ({f"={A}": MINE, B: MINE, f"={C}": MINE, f"={D}": MINE}, "CLAUDE.md", B),
    "all are tracked": ({f"={A}": MINE, f"={B}": MINE, f"={C}": MINE, f"={D}": MINE}, "CLAUDE.md", A),
    "the folder is a file": ({".opencode": MINE, f"={A}": MINE}, "CLAUDE.md", B),
    "none can be read": ({A: "{", B: "[]", ".opencode": MINE}, "CLAUDE.md", None),
}


@pytest.mark.parametrize("case", PLACES)
def test_into_which_file_an_instruction_goes(case: str) -> None:
    found, entry, expected = PLACES[case]
    place = opencode_config.place_for(site_of(found), entry, ENTRIES)
    assert (None if place is None else place.name) == expected


def test_a_link_is_never_written_through() -> None:
    place = opencode_config.place_for(site_of({A: lists("CLAUDE.md")}, links=A), "CLAUDE.md", ENTRIES)
    assert place is not None
    assert place.name == C


@pytest.mark.parametrize(
    ("value", "off"), [("1", True), ("true", True), ("", False), ("0", False), ("no", False)]
)
def test_variables_that_switch_off(value: str, off: bool) -> None:
    for name in ("OPENCODE_DISABLE_CLAUDE_CODE", "OPENCODE_DISABLE_CLAUDE_CODE_PROMPT"):
        assert opencode_config.claude_switched_off(site_of({}, env={name: value})) is off
    site = site_of({A: lists("a.md")}, env={"OPENCODE_DISABLE_PROJECT_CONFIG": value})
    assert opencode_config.project_switched_off(site) is off
    assert opencode_config.entries(site) == (() if off else ("a.md",))
