"""What Codex 0.171.0 reads, how much room it leaves, and how its own memories are switched off."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from agent_bridge.harnesses.base import LEAST_BUDGET, KeyEdit, Scope, Site
from agent_bridge.harnesses.codex import Codex
from agent_bridge.harnesses.observe import observe_user

Make = Callable[[Mapping[str, str]], Site]
CODEX = Codex()
CONFIG = "~/.codex/config.toml"
UNTRUSTED = '[projects."{root}"]\ntrust_level = "untrusted"\n'
TRUSTED = '[projects."{root}"]\ntrust_level = "trusted"\n'
ON = "[features]\nmemories = true\n"
USE = "[memories]\nuse_memories = true\n"

CARRIERS: dict[str, tuple[dict[str, str], list[tuple[str, bool]], set[str]]] = {
    "nothing": ({}, [("AGENTS.md", True)], set()),
    "AGENTS.md": ({"AGENTS.md": "x"}, [("AGENTS.md", True)], set()),
    "AGENTS.md is CLAUDE.md": ({"AGENTS.md": "-> CLAUDE.md", "CLAUDE.md": "x"}, [("AGENTS.md", True)], set()),
    "override beside AGENTS.md": (
        {"AGENTS.md": "x", "AGENTS.override.md": ""},
        [("AGENTS.override.md", True), ("AGENTS.md", False)],
        set(),
    ),
    "override alone": ({"AGENTS.override.md": "x"}, [("AGENTS.override.md", True)], set()),
    "override that leads nowhere": (
        {"AGENTS.md": "x", "AGENTS.override.md": "-> gone"},
        [("AGENTS.md", True)],
        set(),
    ),
    "override is a directory": ({"AGENTS.md": "x", "AGENTS.override.md/": ""}, [("AGENTS.md", True)], set()),
    "override leads out": (
        {"AGENTS.md": "x", "AGENTS.override.md": "-> {home}/o", "~/o": "y"},
        [],
        {"codex-agents-md-unusable"},
    ),
    "AGENTS.md leads out": ({"AGENTS.md": "-> {home}/a", "~/a": "y"}, [], {"codex-agents-md-unusable"}),
    "AGENTS.md leads nowhere": ({"AGENTS.md": "-> gone"}, [], {"codex-agents-md-unusable"}),
    "fallback": (
        {"CLAUDE.md": "x", CONFIG: 'project_doc_fallback_filenames = ["TEAM.md", "CLAUDE.md"]'},
        [("CLAUDE.md", True)],
        set(),
    ),
    "fallback beside AGENTS.md": (
        {"CLAUDE.md": "x", "AGENTS.md": "y", CONFIG: 'project_doc_fallback_filenames = ["CLAUDE.md"]'},
        [("AGENTS.md", True)],
        set(),
    ),
    "fallback that is a path": (
        {"sub/X.md": "x", CONFIG: 'project_doc_fallback_filenames = ["sub/X.md", "../x", ".."]'},
        [("AGENTS.md", True)],
        set(),
    ),
    "fallback of a trusted project": (
        {"T.md": "x", CONFIG: TRUSTED, ".codex/config.toml": 'project_doc_fallback_filenames = ["T.md"]'},
        [("T.md", True)],
        set(),
    ),
    "fallback of a project that isn't trusted": (
        {"T.md": "x", ".codex/config.toml": 'project_doc_fallback_filenames = ["T.md"]'},
        [("AGENTS.md", True)],
        set(),
    ),
    "untrusted": ({"AGENTS.md": "x", CONFIG: UNTRUSTED}, [], {"codex-untrusted"}),
    "trusted": ({"AGENTS.md": "x", CONFIG: TRUSTED}, [("AGENTS.md", True)], set()),
    "project files off": (
        {"AGENTS.md": "x", CONFIG: "project_doc_max_bytes = 0"},
        [],
        {"codex-project-docs-off"},
    ),
    "no room": ({"AGENTS.md": "x" * 31_000}, [], {"codex-budget"}),
    "no room below": ({"AGENTS.md": "x", "a/AGENTS.md": "y" * 31_000}, [], {"codex-budget"}),
    "room by the setting": (
        {"AGENTS.md": "x" * 31_000, CONFIG: "project_doc_max_bytes = 65536"},
        [("AGENTS.md", True)],
        set(),
    ),
    "broken settings": ({"AGENTS.md": "x", CONFIG: "[broken"}, [("AGENTS.md", True)], {"codex-config"}),
}


@pytest.mark.parametrize(("found", "carriers", "codes"), CARRIERS.values(), ids=CARRIERS.keys())
def test_the_carriers_of_a_project(
    make: Make, found: dict[str, str], carriers: list[tuple[str, bool]], codes: set[str]
) -> None:
    site = make(found)
    seen = CODEX.carriers(site, Scope.PROJECT)
    assert [(item.path, item.readers == ("codex",)) for item in seen] == [
        (site.checkout / name, read) for name, read in carriers
    ]
    assert {notice.code for notice in CODEX.notices(site)} == codes


def budget(site: Site) -> int:
    return CODEX.carriers(site, Scope.PROJECT)[0].budget


def test_the_budget_leaves_room_for_the_largest_chain_of_user_text(make: Make) -> None:
    found = {
        "AGENTS.md": "r" * 1000,
        "a/AGENTS.md": "a" * 500,
        "a/b/AGENTS.md": "b" * 700,
        "a/b/AGENTS.override.md": "o" * 300,
        "c/AGENTS.md": "c" * 900,
    }
    assert budget(make(found)) == 32768 - 1000 - (500 + 300) - (900 - 800) - 8


def test_our_own_block_is_not_taken_off_the_budget(make: Make) -> None:
    marks = "<!-- agent-bridge:memory:start (managed, do not edit) -->\n{}\n<!-- agent-bridge:memory:end -->"
    assert budget(make({"AGENTS.md": "r" * 1000 + "\n\n" + marks.format("fact " * 3000)})) == 32768 - 1002 - 8


def test_ignored_files_below_do_not_count(make: Make) -> None:
    found = {"AGENTS.md": "r", ".gitignore": "node_modules/\n", "node_modules/x/AGENTS.md": "n" * 31_000}
    assert budget(make(found)) > LEAST_BUDGET


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        ({}, []),
        ({"~/.codex/": ""}, ["AGENTS.md"]),
        ({"~/.codex/AGENTS.md": "x"}, ["AGENTS.md"]),
        ({"~/.codex/AGENTS.override.md": "x"}, ["AGENTS.override.md"]),
        (
            {"~/.codex/AGENTS.override.md": "x", "~/.codex/AGENTS.md": "x"},
            ["AGENTS.override.md", "AGENTS.md"],
        ),
        ({"~/.codex/AGENTS.override.md": " \n", "~/.codex/AGENTS.md": "x"}, ["AGENTS.md"]),
        ({CONFIG: UNTRUSTED}, ["AGENTS.md"]),
    ],
)
def test_the_global_carriers(
    look_at_user: Make, sealed_home: Path, found: dict[str, str], expected: list[str]
) -> None:
    seen = CODEX.carriers(look_at_user(found), Scope.GLOBAL)
    assert [item.path for item in seen] == [sealed_home / ".codex" / name for name in expected]


def keys(edits: tuple[KeyEdit, ...]) -> set[tuple[str, ...]]:
    assert all(
        edit.value is False and edit.format == "toml" and edit.path.name == "config.toml" for edit in edits
    )
    return {edit.key for edit in edits}


THREE = {("features", "memories"), ("memories", "use_memories"), ("memories", "generate_memories")}


@pytest.mark.parametrize(
    ("found", "off"),
    [
        ({}, False),
        ({"~/.codex/": ""}, False),
        ({CONFIG: "[features]\nmemories = false\n"}, False),
        ({CONFIG: USE}, False),
        ({CONFIG: ON}, True),
        ({"~/.codex/fast.config.toml": ON}, True),
        ({"~/.codex/memories/memory_summary.md": "v1\n"}, True),
        ({"~/.codex/memories/MEMORY.md": "x"}, True),
        ({"~/.codex/memories_v2/rollout_summaries/a.md": "x"}, True),
        ({"~/.codex/memories_v2/extensions/ad_hoc/notes/a.md": "x"}, True),
        ({"~/.codex/memories/extensions/ad_hoc/instructions.md": "x"}, False),
        ({CONFIG: ON + "[broken"}, False),
    ],
)
def test_its_memory_is_switched_off_where_it_is_on_or_holds_anything(
    look_at_user: Make, found: dict[str, str], off: bool
) -> None:
    assert keys(CODEX.disable_native_memory(look_at_user(found))) == (THREE if off else set())


def test_the_older_name_of_the_feature_is_switched_off_too(look_at_user: Make) -> None:
    site = look_at_user({CONFIG: "[features]\nmemory_tool = true\n"})
    assert keys(CODEX.disable_native_memory(site)) == THREE | {("features", "memory_tool")}


def test_a_trusted_project_that_switches_it_on_counts(make: Make) -> None:
    assert keys(CODEX.disable_native_memory(make({CONFIG: TRUSTED, ".codex/config.toml": ON}))) == THREE
    assert keys(CODEX.disable_native_memory(make({CONFIG: UNTRUSTED}))) == set()


@pytest.mark.parametrize(
    ("found", "codes"),
    [
        ({"~/.codex/p.config.toml": ON}, set()),
        ({"~/.codex/p.config.toml": ON + USE}, {"codex-memory-stays"}),
        ({"~/.codex/p.config.toml": USE}, set()),
        ({"~/.codex/p.config.toml": ON + "[memories]\ngenerate_memories = true"}, {"codex-memory-writes"}),
        ({CONFIG: TRUSTED, ".codex/config.toml": ON + USE}, {"codex-memory-stays"}),
        ({".codex/config.toml": ON + USE}, set()),
    ],
)
def test_the_case_that_cannot_be_won_is_told(make: Make, found: dict[str, str], codes: set[str]) -> None:
    assert {notice.code for notice in CODEX.notices(make(found))} == codes


def test_codex_home_is_honoured(make: Make, sealed_home: Path) -> None:
    make({"~/other/AGENTS.md": "x"})
    site = observe_user({"HOME": str(sealed_home), "CODEX_HOME": str(sealed_home / "other")})
    assert [item.path for item in CODEX.carriers(site, Scope.GLOBAL)] == [sealed_home / "other/AGENTS.md"]
