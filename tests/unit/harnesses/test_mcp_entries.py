"""Our MCP server in the settings of OpenCode, Gemini CLI and Antigravity: in which file, and when not."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_bridge.harnesses import antigravity_mcp, gemini_mcp, mcp_entry, opencode_config, opencode_mcp
from agent_bridge.harnesses.base import FileKind, InstructionFile, Site
from agent_bridge.projects import Project

ROOT = Path("/p")
A, B, C, D = opencode_config.PROJECT_FILES
USERS_OPENCODE = "/h/.config/opencode/opencode.json"
USERS_GEMINI = "/h/.gemini/settings.json"
USERS_AGY = "/h/.gemini/antigravity-cli/mcp_config.json"
MINE = '{"theme": "dark"}'
LISTS = '{"instructions": ["CLAUDE.md"]}'


def site_of(
    found: Mapping[str, str], *, env: Mapping[str, str] | None = None, links: str = "", mcp: bool = True
) -> Site:
    """`found`: text by name; a name that begins with `=` is tracked, a text `dir` makes a directory."""
    files: dict[str, InstructionFile] = {}
    config: dict[str, bytes] = {}
    for spelled, text in found.items():
        name = spelled.lstrip("=")
        path = ROOT / name
        kind = FileKind.DIRECTORY if text == "dir" else FileKind.SYMLINK if name == links else FileKind.FILE
        inside = name != links
        files[str(path)] = InstructionFile(
            name, path, path, kind, b"", spelled != name, identity=(1, len(files)), inside=inside
        )
        if kind is not FileKind.DIRECTORY:
            config[str(path)] = text.encode()
    env = {"HOME": "/h"} | dict(env or {})
    return Site(Project("p", ROOT, mcp=mcp), ROOT, env=env, files=files, config=config)


def entry(key: tuple[str, ...], command: object = "agent-bridge-mcp", **more: object) -> str:
    return json.dumps({key[0]: {key[1]: {"command": command, **more}}})


OPENCODE: dict[str, tuple[dict[str, str], str | None]] = {
    "nothing": ({}, A),
    "the folder": ({".opencode": "dir"}, C),
    "the user's": ({A: MINE}, A),
    "the user's with comments": ({B: MINE}, B),
    "the user's in the folder": ({".opencode": "dir", D: MINE}, D),
    "two of the user's, one with our instructions": ({A: MINE, B: LISTS}, B),
    "a tracked one": ({f"={A}": MINE}, B),
    "a tracked one, and the folder": ({f"={A}": MINE, ".opencode": "dir"}, C),
    "tracked ones": ({f"={A}": MINE, f"={B}": MINE}, A),
    "an entry that is there already": ({A: MINE, f"={B}": entry(opencode_mcp.KEY)}, B),
    "servers that are no object": ({A: '{"mcp": []}'}, B),
    "broken": ({A: "{", B: '{"mcp": 1}'}, None),
    "the user's own for all projects": ({USERS_OPENCODE: entry(opencode_mcp.KEY)}, None),
}


@pytest.mark.parametrize("case", OPENCODE)
def test_into_which_file_of_opencode_the_server_goes(case: str) -> None:
    found, expected = OPENCODE[case]
    site = site_of(found)
    edits = opencode_mcp.edits(site)
    assert [edit.path for edit in edits] == ([] if expected is None else [ROOT / expected])
    for edit in edits:
        assert edit.value == {"type": "local", "command": ["agent-bridge-mcp"], "enabled": True}
        assert edit.local is not site.file(edit.path).tracked


def test_opencode_that_reads_nothing_of_the_project_gets_nothing() -> None:
    assert opencode_mcp.edits(site_of({}, env={"OPENCODE_DISABLE_PROJECT_CONFIG": "0"}))
    assert not opencode_mcp.edits(site_of({}, env={"OPENCODE_DISABLE_PROJECT_CONFIG": "1"}))


def test_that_no_file_of_opencode_can_have_it_is_told() -> None:
    broken = {A: "{", B: "{", C: MINE, ".opencode": "file"}
    assert [one.code for one in opencode_mcp.notices(site_of(broken))] == ["mcp-no-place"]
    assert not opencode_mcp.notices(site_of({A: MINE}))
    assert not opencode_mcp.notices(site_of(broken, mcp=False))


def test_gemini_gets_it_in_the_projects_settings() -> None:
    name = ".gemini/settings.json"
    for found, local in (({}, True), ({name: "{}"}, True), ({f"={name}": "// mine\n{}"}, False)):
        (edit,) = gemini_mcp.edits(site_of(found))
        assert (edit.path, edit.local) == (ROOT / name, local)
        assert edit.value == {"command": "agent-bridge-mcp", "args": [], "trust": True}
        assert "without asking" in edit.why


@pytest.mark.parametrize(
    ("found", "codes"),
    [
        ({"/h/.gemini/trustedFolders.json": '{"/p": "DO_NOT_TRUST"}'}, ["mcp-no-place"]),
        ({".gemini": "a file"}, ["mcp-no-place"]),
        ({USERS_GEMINI: entry(gemini_mcp.KEY)}, []),
        ({USERS_GEMINI: entry(gemini_mcp.KEY, "/opt/agent-bridge", args=["mcp", "start"])}, []),
        ({USERS_GEMINI: entry(gemini_mcp.KEY, "other")}, ["mcp-name-taken"]),
    ],
)
def test_where_gemini_gets_none(found: dict[str, str], codes: list[str]) -> None:
    site = site_of(found)
    assert not gemini_mcp.edits(site)
    assert [one.code for one in gemini_mcp.notices(site)] == codes


@pytest.mark.parametrize(
    ("settings", "codes"),
    [
        ({"mcp": {"excluded": ["agent-bridge"]}}, ["mcp-off"]),
        ({"mcp": {"allowed": ["db"]}}, ["mcp-off"]),
        ({"mcp": {"allowed": ["db", "agent-bridge"], "excluded": ["x"]}}, []),
    ],
)
def test_lists_by_which_gemini_leaves_it_out_are_told_and_stay(
    settings: dict[str, object], codes: list[str]
) -> None:
    site = site_of({USERS_GEMINI: json.dumps(settings)})
    assert gemini_mcp.edits(site)
    assert [one.code for one in gemini_mcp.notices(site)] == codes


AGY = ".agents/mcp_config.json"


@pytest.mark.parametrize("text", ["", "\n", "{}", '{"mcpServers": {"db": {}}}'])
def test_antigravity_gets_it_in_strict_json(text: str) -> None:
    (edit,) = antigravity_mcp.edits(site_of({AGY: text}))
    assert (edit.path, edit.local) == (ROOT / AGY, True)
    assert edit.value == {"command": "agent-bridge-mcp", "args": []}
    assert not antigravity_mcp.notices(site_of({AGY: text}))


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('{\n  "a": 1 // x\n}', "line 2, column 10"),
        ('{"mcpServers": {},}', "line 1, column 1"),
        ("[]", "no JSON object"),
        ('{"a": NaN}', "NaN"),
        ("\ufeff{}", "byte order mark"),
        ("{" * 5000, "line 1"),
        ("[" * 100_000, "recursion"),
    ],
)
def test_what_agy_would_not_start_with_is_left_alone_and_told(text: str, told: str) -> None:
    site = site_of({AGY: text})
    assert not antigravity_mcp.edits(site)
    (notice,) = antigravity_mcp.notices(site)
    assert (notice.code, notice.path) == ("mcp-no-place", ROOT / AGY)
    assert told in notice.text


def test_the_users_own_entry_for_antigravity_serves() -> None:
    site = site_of({USERS_AGY: entry(antigravity_mcp.KEY, "/x/agent-bridge-mcp", disabled=True)})
    assert not antigravity_mcp.edits(site)
    assert [one.code for one in antigravity_mcp.notices(site)] == ["mcp-off"]


def test_nothing_leads_out_of_the_repository() -> None:
    site = site_of({AGY: "{}", ".gemini/settings.json": "{}"}, links=AGY)
    assert not antigravity_mcp.edits(site)
    assert gemini_mcp.edits(site)
    site = site_of({AGY: "{}", ".gemini/settings.json": "{}"}, links=".gemini/settings.json")
    assert antigravity_mcp.edits(site)
    assert not gemini_mcp.edits(site)


@pytest.mark.parametrize("room", [opencode_mcp, gemini_mcp, antigravity_mcp])
def test_who_wants_no_mcp_hears_nothing(room: object) -> None:
    site = site_of({AGY: "[", USERS_GEMINI: entry(gemini_mcp.KEY, "other")}, mcp=False)
    assert not room.edits(site)  # type: ignore[attr-defined]
    assert not room.notices(site)  # type: ignore[attr-defined]


@given(st.binary(max_size=60))
def test_any_bytes_are_strict_json_or_told(data: bytes) -> None:
    why = mcp_entry.why_not_strict(data)
    if not why and data.strip():
        assert isinstance(json.loads(data.decode("utf-8")), dict)


@given(st.recursive(st.none() | st.booleans() | st.text(max_size=5) | st.integers(), st.lists, max_leaves=5))
def test_any_entry_is_ours_or_not(value: object) -> None:
    assert mcp_entry.starts_ours({"command": value, "args": ["/x/agent-bridge-mcp"]})
    assert not mcp_entry.starts_ours(value)
    assert not mcp_entry.is_off(value)
