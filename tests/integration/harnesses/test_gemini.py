"""By which files Gemini CLI 0.61.0 gets the facts, and what a person is told."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from agent_bridge.harnesses.base import Mode, Scope, Site
from agent_bridge.harnesses.gemini import Gemini
from agent_bridge.harnesses.observe import observe_user

Make = Callable[[Mapping[str, str]], Site]
GEMINI = Gemini()
SETTINGS, TRUST, REGISTRY = (
    "~/.gemini/settings.json",
    "~/.gemini/trustedFolders.json",
    "~/.gemini/projects.json",
)
OWN = ".gemini/memory-bridge.md"
IMPORTED, OWN_IMPORTED = "@AGENTS.md", "@.gemini/memory-bridge.md"
USED = {"~/.gemini/": ""}

AGENTS, VIA_MAIN = [("AGENTS.md", "", True)], [("AGENTS.md", "", True), ("GEMINI.md", IMPORTED, False)]
VIA_OWN = [(OWN, "", True), ("GEMINI.md", OWN_IMPORTED, False)]
VIA_OWN_UNSEEN = [(OWN, "", True), ("GEMINI.md", f"<!-- {OWN_IMPORTED} -->", False)]
"""Claude Code reads GEMINI.md there too, and must not follow the import."""
LITTLE_ROOM = "project_doc_max_bytes = 2500"


BLOCK = "<!-- agent-bridge:memory:start -->\n- ours\n<!-- agent-bridge:memory:end -->\n"


def named(*names: str) -> str:
    return json.dumps({"context": {"fileName": names}})


CARRIERS: dict[str, tuple[dict[str, str], list[tuple[str, str, bool]], set[str]]] = {
    "nothing": ({}, VIA_MAIN, set()),
    "both files": ({"AGENTS.md": "x", "GEMINI.md": "y"}, VIA_MAIN, set()),
    "it imports AGENTS.md": ({"AGENTS.md": "x", "GEMINI.md": "@./AGENTS.md"}, AGENTS, set()),
    "it imports AGENTS.md, which isn't there": ({"GEMINI.md": "@AGENTS.md"}, AGENTS, set()),
    "an import in code is none": ({"AGENTS.md": "x", "GEMINI.md": "`@AGENTS.md`"}, VIA_MAIN, set()),
    "an import of ours doesn't count": (
        {
            "AGENTS.md": "x",
            "GEMINI.md": "<!-- agent-bridge:memory:start -->\n@AGENTS.md\n<!-- agent-bridge:memory:end -->\n",
        },
        VIA_MAIN,
        set(),
    ),
    "it imports CLAUDE.md": (
        {"AGENTS.md": "x", "CLAUDE.md": "y", "GEMINI.md": "@CLAUDE.md"},
        [("CLAUDE.md", "", True)],
        set(),
    ),
    "it imports both": (
        {"AGENTS.md": "x", "CLAUDE.md": "y", "GEMINI.md": "@CLAUDE.md @AGENTS.md"},
        AGENTS,
        {"gemini-twice"},
    ),
    "it is CLAUDE.md": (
        {"AGENTS.md": "x", "CLAUDE.md": "y", "GEMINI.md": "-> CLAUDE.md"},
        [("CLAUDE.md", "", True)],
        set(),
    ),
    "it is AGENTS.md": ({"AGENTS.md": "x", "GEMINI.md": "-> AGENTS.md"}, AGENTS, set()),
    "a name of the user's": ({SETTINGS: named("AGENTS.md")}, AGENTS, set()),
    "a name of the project's": (
        {".gemini/settings.json": named("AGENTS.md")},
        AGENTS,
        {"gemini-names-below-root"},
    ),
    "a name of both": (
        {".gemini/settings.json": named("AGENTS.md"), SETTINGS: named("AGENTS.md")},
        AGENTS,
        set(),
    ),
    "memory-bridge's own name": ({SETTINGS: named("GEMINI.md", OWN)}, [(OWN, "", True)], set()),
    "memory-bridge's own import": ({"GEMINI.md": OWN_IMPORTED}, [(OWN, "", True)], set()),
    "CLAUDE.md imports it": (
        {"CLAUDE.md": "@GEMINI.md", "GEMINI.md": "x"},
        [("AGENTS.md", "", True), ("GEMINI.md", "<!-- @AGENTS.md -->", False)],
        set(),
    ),
    "AGENTS.md imports it": ({"AGENTS.md": "@GEMINI.md", "GEMINI.md": "x"}, VIA_OWN_UNSEEN, set()),
    "it is AGENTS.md, in which there is no room": (
        {"~/.codex/config.toml": LITTLE_ROOM, "AGENTS.md": "x" * 1000, "GEMINI.md": "-> AGENTS.md"},
        VIA_OWN_UNSEEN,
        set(),
    ),
    "AGENTS.md is a directory": ({"AGENTS.md/": ""}, VIA_OWN, set()),
    "AGENTS.md leads out": ({"AGENTS.md": "-> {home}/a", "~/a": "x"}, VIA_OWN, set()),
    "no room in AGENTS.md": (
        {"~/.codex/config.toml": LITTLE_ROOM, "AGENTS.md": "x" * 1000},
        VIA_OWN,
        set(),
    ),
    "neither AGENTS.md nor its folder": (
        {"AGENTS.md/": "", ".gemini": "a file"},
        [("GEMINI.md", "", True)],
        set(),
    ),
    "it leads out": ({"GEMINI.md": "-> {home}/g", "~/g": "x"}, [], {"gemini-md-unusable"}),
    "it is a directory": ({"GEMINI.md/": ""}, [], {"gemini-md-unusable"}),
    "it leads nowhere": ({"GEMINI.md": "-> gone"}, [], {"gemini-md-unusable"}),
    "distrusted": (
        {TRUST: '{{"{root}": "DO_NOT_TRUST"}}'.replace("{{", "{").replace("}}", "}")},
        [],
        {"gemini-untrusted"},
    ),
    "settings that are no JSON": ({SETTINGS: "{"}, VIA_MAIN, {"gemini-settings"}),
    "other marks of a root": (
        {SETTINGS: '{"context": {"memoryBoundaryMarkers": [".hg"]}}'},
        VIA_MAIN,
        {"gemini-below-root"},
    ),
}


@pytest.mark.parametrize("name", CARRIERS)
def test_the_carriers(make: Make, name: str) -> None:
    files, carriers, codes = CARRIERS[name]
    site = make(USED | files)

    found = GEMINI.carriers(site, Scope.PROJECT)

    told = [(str(one.path.relative_to(site.checkout)), one.text, "gemini" in one.readers) for one in found]
    assert told == carriers
    assert {notice.code for notice in GEMINI.notices(site)} == codes
    assert all(one.local for one in found if not site.file(one.path).readable)


def test_its_own_file_is_written_when_asked_for(make: Make) -> None:
    site = make(USED)
    assert site.project is not None
    asked = replace(site, project=replace(site.project, requested=("gemini",)))

    found = GEMINI.carriers(asked, Scope.PROJECT)

    assert [(one.path.name, one.kind, one.readers) for one in found][2:] == [("memory-bridge.md", "own", ())]
    assert {notice.code for notice in GEMINI.notices(asked)} == {"gemini-own-unread"}


def test_a_double_that_this_makes_is_told(make: Make) -> None:
    site = make({SETTINGS: named("AGENTS.md", OWN)})
    assert site.project is not None
    asked = replace(site, project=replace(site.project, requested=("gemini",)))

    assert [one.path.name for one in GEMINI.carriers(asked, Scope.PROJECT)] == [
        "AGENTS.md",
        "memory-bridge.md",
    ]
    assert {notice.code for notice in GEMINI.notices(asked)} == {"gemini-twice"}


def test_nothing_is_written_into_a_tracked_file_for_a_store_out_of_git(make: Make) -> None:
    site = make(USED | {"GEMINI.md": "x"})
    assert site.project is not None
    files = {path: replace(file, tracked=file.name == "GEMINI.md") for path, file in site.files.items()}
    local = replace(site, project=replace(site.project, mode="local"), files=files)

    assert GEMINI.carriers(local, Scope.PROJECT) == ()
    assert {notice.code for notice in GEMINI.notices(local)} == {"gemini-md-unusable"}
    assert GEMINI.carriers(site, Scope.PROJECT) != ()


def test_the_users_own_file(look_at_user: Make) -> None:
    site = look_at_user(USED)
    [carrier] = GEMINI.carriers(site, Scope.GLOBAL)
    assert carrier.path == Path(site.env["HOME"]) / ".gemini/GEMINI.md"
    assert (carrier.create, carrier.text) == (True, "")


def test_a_file_of_another_harness_that_it_reads_everywhere_is_enough(look_at_user: Make) -> None:
    files = {
        SETTINGS: named("AGENTS.md"),
        "~/.gemini/AGENTS.md": "-> ../.codex/AGENTS.md",
        "~/.codex/AGENTS.md": "x",
    }
    site = look_at_user(files)
    [carrier] = GEMINI.carriers(site, Scope.GLOBAL)
    assert carrier.path == Path(site.env["HOME"]) / ".codex/AGENTS.md"


@pytest.mark.parametrize("git", [False, True], ids=["a home", "a home in Git"])
def test_its_own_file_may_import_from_a_home_in_git_only(look_at_user: Make, git: bool) -> None:
    files = {"~/.gemini/GEMINI.md": "@../.claude/CLAUDE.md", "~/.claude/CLAUDE.md": "x"}
    site = look_at_user(files | ({"~/.git/": ""} if git else {}))
    [carrier] = GEMINI.carriers(site, Scope.GLOBAL)
    assert carrier.path.name == ("CLAUDE.md" if git else "GEMINI.md")


def test_a_home_of_its_own(look_at_user: Make, sealed_home: Path) -> None:
    look_at_user({"~/other/.gemini/GEMINI.md": "x"})
    site = observe_user({"HOME": str(sealed_home), "GEMINI_CLI_HOME": str(sealed_home / "other")})
    [carrier] = GEMINI.carriers(site, Scope.GLOBAL)
    assert carrier.path == sealed_home / "other/.gemini/GEMINI.md"


def test_a_home_in_git_holds_its_file(look_at_user: Make) -> None:
    site = look_at_user({"~/.gemini/GEMINI.md": "x"})
    path = Path(site.env["HOME"]) / ".gemini/GEMINI.md"
    assert not site.file(path).tracked
    subprocess.run(["git", "init", "-q", site.env["HOME"]], check=True)
    assert observe_user(site.env).file(path).tracked


def test_it_is_used_where_its_home_or_program_is(sealed_home: Path) -> None:
    env = {"HOME": str(sealed_home), "PATH": str(sealed_home / "bin")}
    assert not GEMINI.detect(env)
    (sealed_home / "bin").mkdir()
    program = sealed_home / "bin/gemini"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    assert GEMINI.detect(env)
    program.unlink()
    (sealed_home / ".gemini").mkdir()
    assert GEMINI.detect(env)
    assert GEMINI.projection_mode(Scope.PROJECT) is Mode.RENDER


def test_a_fact_that_it_takes_for_an_import_is_told(make: Make) -> None:
    fenced = "### x [1]\n\n~~~\n@dataclass\n~~~"
    block = f"<!-- agent-bridge:memory:start -->\n{fenced}\n<!-- agent-bridge:memory:end -->\n"
    site = make(USED | {"AGENTS.md": block})
    assert [notice.code for notice in GEMINI.notices(site)] == ["gemini-import-in-fact"]


def test_what_a_session_reads(make: Make) -> None:
    site = make(
        {
            SETTINGS: "{}",
            "~/.gemini/GEMINI.md": "everywhere",
            "AGENTS.md": "shared @docs/x.md",
            "docs/x.md": "more",
            "GEMINI.md": "mine @AGENTS.md @../../home/secret",
            "~/secret": "no",
            "sub/GEMINI.md": "-> ../GEMINI.md",
            OWN: "unread",
            REGISTRY: '{"projects": {"{root}/sub": "sub"}}',
            "~/.gemini/tmp/sub/memory/MEMORY.md": "- private",
        }
    )
    root, home = site.checkout, Path(site.env["HOME"])

    read = GEMINI.reads(site, root / "sub")

    shown = [one.path for one in read if not one.hidden]
    assert shown == [
        home / ".gemini/GEMINI.md",
        home / ".gemini/tmp/sub/memory/MEMORY.md",
        root / "GEMINI.md",
        root / "AGENTS.md",
        root / "docs/x.md",
    ]
    hidden = {one.path: one.hidden for one in read if one.hidden}
    assert "lead out" in hidden[home / "secret"]
    assert "already" in hidden[root / "sub/GEMINI.md"]
    assert "names it" in hidden[root / OWN]


def test_a_session_outside_of_git_reads_nothing_above_it(make: Make) -> None:
    site = make(
        USED | {SETTINGS: '{"context": {"memoryBoundaryMarkers": []}}', "GEMINI.md": "x", "sub/y": ""}
    )
    assert [one.hidden != "" for one in GEMINI.reads(site, site.checkout)] == [False]
    assert [one.hidden != "" for one in GEMINI.reads(site, site.checkout / "sub")] == [True]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("@AGENTS.md", "GEMINI.md, which imports it, isn't read here"),
        ("x", "neither context.fileName nor an import names it"),
    ],
)
def test_what_only_an_unread_file_imports_is_told_with_that_file(make: Make, text: str, why: str) -> None:
    files = {SETTINGS: '{"context": {"memoryBoundaryMarkers": []}}', "AGENTS.md": "x", "sub/y": ""}
    site = make(USED | files | {"GEMINI.md": text})
    hidden = {one.path.name: one.hidden for one in GEMINI.reads(site, site.checkout / "sub")}
    assert hidden["AGENTS.md"].endswith(why)


MEMORIES = {
    REGISTRY: '{"projects": {"{root}": "p", "{root}/sub": "sub", "/elsewhere": "e", "/bad": "../p"}}',
    "~/.gemini/tmp/p/memory/MEMORY.md": "- One fact.\n- [Two](two.md)\n",
    "~/.gemini/tmp/p/memory/two.md": "# Two\n\nIn detail.\n",
    "~/.gemini/tmp/p/memory/skills/x.md": "not this",
    "~/.gemini/tmp/sub/memory/MEMORY.md": "- Below.\n",
    "~/.gemini/tmp/e/memory/MEMORY.md": "-> {home}/outside.md",
    "~/outside.md": "- Not its own.\n",
}


def test_its_private_notes_are_private_and_belong_to_their_directory(make: Make) -> None:
    site = make(MEMORIES)

    found = GEMINI.native_memory(site.env)

    assert [(item.text, item.title, item.directory, item.private) for item in found] == [
        ("One fact.", "", site.checkout, True),
        ("In detail.", "Two", site.checkout, True),
        ("Below.", "", site.checkout / "sub", True),
    ]
    home = Path(site.env["HOME"]) / ".gemini"
    assert GEMINI.memory_location(site) == home / "tmp/p/memory"
    assert set(GEMINI.watch_places(site)) >= {home / "tmp/p/memory", home / "tmp/sub/memory", home}
    assert home / "tmp/e/memory" not in GEMINI.watch_places(site)


def test_no_registry_no_notes(make: Make) -> None:
    site = make(USED)
    assert GEMINI.native_memory(site.env) == []
    assert GEMINI.memory_location(site) is None


def test_what_is_written_by_hand(make: Make) -> None:
    site = make(
        {
            "~/.gemini/GEMINI.md": "## Gemini Added Memories\n- Of the user.\n",
            "GEMINI.md": f"- Of the project.\n{BLOCK}",
            ".gemini/notes.md": "- Of a note.\n",
            OWN: "- generated\n",
            ".gemini/link.md": "-> {home}/outside.md",
            "~/outside.md": "- Not its own.\n",
        }
    )

    found = GEMINI.hand_written(site)

    assert [(item.text, item.directory) for item in found] == [
        ("Of the project.", site.checkout),
        ("Of a note.", site.checkout),
        ("Of the user.", None),
    ]
