"""Which files OpenCode 1.18.33 reads, which one carries the facts, and what its settings have to list."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping

import pytest

from agent_bridge.harnesses import opencode_files
from agent_bridge.harnesses.base import Scope, Site
from agent_bridge.harnesses.claude_carriers import RULES
from agent_bridge.harnesses.claude_code import ClaudeCode
from agent_bridge.harnesses.codex import Codex
from agent_bridge.harnesses.managed_block import render_block, splice
from agent_bridge.harnesses.opencode import OpenCode

Files = Mapping[str, str]
Make = Callable[[Files], Site]
OPENCODE = OpenCode()
USED = {"~/.config/opencode/": ""}
BRIDGE = opencode_files.BRIDGE
CODEX = "~/.codex/config.toml"
BLOCK = splice(b"", render_block((), (), budget=4096, scope="project").body).data.decode()


def lists(*entries: str) -> str:
    return json.dumps({"instructions": list(entries)})


def carriers_of(site: Site) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for harness in (ClaudeCode(), Codex(), OPENCODE):
        for carrier in harness.carriers(site, Scope.PROJECT):
            for reader in carrier.readers:
                found.setdefault(reader, []).append(site.file(carrier.path).name)
    return found


def edits_of(site: Site) -> list[tuple[str, str, bool]]:
    edits = OPENCODE.key_edits(site)
    assert all(edit.element and edit.key == ("instructions",) for edit in edits)
    return [(site.file(edit.path).name, str(edit.value), edit.local) for edit in edits]


def codes_of(site: Site) -> set[str]:
    return {notice.code for notice in OPENCODE.notices(site)}


ROOT, FOLDER = "opencode.json", ".opencode/opencode.json"
A, C, X, R = "AGENTS.md", "CLAUDE.md", "CONTEXT.md", RULES

TABLE: dict[str, tuple[dict[str, str], list[str], list[str], list[tuple[str, str, bool]]]] = {
    # files, OpenCode's carriers, Claude's, instructions
    "nothing": ({}, [A], [A], []),
    "AGENTS.md": ({A: "x"}, [A], [A], []),
    "both": ({A: "x", C: "y"}, [A], [C], []),
    "CLAUDE.md only": ({C: "y"}, [A], [R], [(ROOT, C, True)]),
    "CLAUDE.md and an AGENTS.md of ours": ({C: "y", A: BLOCK}, [A], [R], [(ROOT, C, True)]),
    "CLAUDE.md and ours, set": (
        {C: "y", A: BLOCK, ROOT: lists(C)},
        [A],
        [R],
        [(ROOT, C, True)],
    ),
    "CLAUDE.md, ours with the user's text, set": (
        {C: "y", A: f"mine\n{BLOCK}", ROOT: lists(C)},
        [A],
        [R],
        [(ROOT, C, True)],
    ),
    "CLAUDE.md, ours with the user's text, never set": ({C: "y", A: f"mine\n{BLOCK}"}, [A], [C], []),
    "imports AGENTS.md": ({A: "x", C: "@AGENTS.md\n"}, [A], [A], []),
    "imports AGENTS.md that isn't there": ({C: "@AGENTS.md\n"}, [A], [A], [(ROOT, C, True)]),
    "CLAUDE.md is AGENTS.md": ({A: "x", C: "-> AGENTS.md"}, [A], [A], []),
    "AGENTS.md is CLAUDE.md": ({A: "-> CLAUDE.md", C: "x"}, [A], [A], []),
    "CONTEXT.md only": ({X: "y"}, [A], [A], [(ROOT, X, True)]),
    "CLAUDE.md and CONTEXT.md": ({C: "y", X: "z"}, [A], [R], [(ROOT, C, True)]),
    "CLAUDE.md below": ({"sub/CLAUDE.md": "y"}, [A], [A], [(ROOT, C, True)]),
    "CONTEXT.md below": ({"sub/CONTEXT.md": "y"}, [A], [A], [(ROOT, X, True)]),
    "CONTEXT.md below CLAUDE.md": ({C: "x", "sub/CONTEXT.md": "y"}, [A], [R], [(ROOT, C, True)]),
    "CLAUDE.md below beside AGENTS.md": ({"s/CLAUDE.md": "y", "s/AGENTS.md": "z"}, [A], [A], []),
    ".claude/CLAUDE.md": ({".claude/CLAUDE.md": "y"}, [A], [R], []),
    "CLAUDE.local.md": ({"CLAUDE.local.md": "y"}, [A], [R], []),
    "listed by the user beside AGENTS.md": ({A: "x", C: "y", ROOT: lists(C)}, [A], [R], [(ROOT, C, True)]),
    "listed by a glob": ({A: "x", C: "y", ROOT: lists("*.md")}, [A], [R], []),
    "listed for all projects": (
        {A: "x", C: "y", "~/.config/opencode/opencode.jsonc": f"// mine\n{lists('./CLAUDE.md')}"},
        [A],
        [R],
        [],
    ),
    "AGENTS.md listed": ({A: "x", C: "y", ROOT: lists(A)}, [A], [C], []),
    "a folder": ({C: "y", ".opencode/agent/x.md": "z"}, [A], [R], [(FOLDER, C, True)]),
    "settings of the user's": ({C: "y", ROOT: "{}"}, [A], [R], [(FOLDER, C, True)]),
    "AGENTS.md leads out": ({A: "-> {home}/a", "~/a": "y"}, [BRIDGE], [R], [(FOLDER, BRIDGE, True)]),
    "AGENTS.md leads out, CLAUDE.md": (
        {A: "-> {home}/a", "~/a": "y", C: "x"},
        [BRIDGE],
        [C],
        [(FOLDER, BRIDGE, True)],
    ),
    "AGENTS.md leads nowhere, CLAUDE.md": ({A: "-> gone", C: "x"}, [C], [C], []),
    "AGENTS.md leads out, CLAUDE.md listed": (
        {A: "-> {home}/a", "~/a": "y", C: "x", ROOT: lists("CLAUDE.*")},
        [C],
        [C],
        [],
    ),
    "no room": ({A: "x" * 31_000, C: "x"}, [BRIDGE], [C], [(FOLDER, BRIDGE, True)]),
    "no room below": ({"a/AGENTS.md": "x" * 31_000, C: "x"}, [C], [C], [(ROOT, C, True)]),
    "Codex reads CLAUDE.md": (
        {C: "x", CODEX: 'project_doc_fallback_filenames = ["CLAUDE.md"]'},
        [C],
        [C],
        [],
    ),
    "Codex reads CONTEXT.md": (
        {X: "x", CODEX: 'project_doc_fallback_filenames = ["CONTEXT.md"]'},
        [X],
        [R],
        [],
    ),
    "Codex reads TEAM.md": (
        {"TEAM.md": "x", CODEX: 'project_doc_fallback_filenames = ["TEAM.md"]'},
        [BRIDGE],
        [R],
        [(FOLDER, BRIDGE, True)],
    ),
    "an override": ({"AGENTS.override.md": "x"}, [A], [A], []),
}


@pytest.mark.parametrize("case", TABLE)
def test_each_project_has_its_carrier_and_what_opencode_has_to_list(make: Make, case: str) -> None:
    files, opencode, claude, edits = TABLE[case]
    site = make({**USED, **files})
    found = carriers_of(site)
    assert (found["opencode"], found["claude-code"], edits_of(site)) == (opencode, claude, edits)


@pytest.mark.parametrize("case", [case for case in TABLE if "opencode" not in str(TABLE[case][0])])
def test_nothing_is_wanted_and_claude_keeps_its_file_where_nobody_uses_it(make: Make, case: str) -> None:
    files, _, claude, _ = TABLE[case]
    site = make(files)
    assert OPENCODE.name not in site.used
    assert opencode_files.hidden_names(site) == ()
    expected = [C] if C in files and claude == [R] else claude
    assert carriers_of(site)["claude-code"] == expected
