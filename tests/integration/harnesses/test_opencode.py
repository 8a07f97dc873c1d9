"""Which files OpenCode 1.18.33 reads, which one carries the facts, and what its settings have to list."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from agent_bridge.harnesses import opencode_files
from agent_bridge.harnesses.base import Scope, Site
from agent_bridge.harnesses.claude_carriers import RULES
from agent_bridge.harnesses.claude_code import ClaudeCode
from agent_bridge.harnesses.codex import Codex
from agent_bridge.harnesses.managed_block import render_block, splice
from agent_bridge.harnesses.observe import observe_site, observe_user
from agent_bridge.harnesses.opencode import OpenCode
from agent_bridge.projects import Project, id_for

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


OWN, THEIRS = "~/.config/opencode/AGENTS.md", "~/.claude/CLAUDE.md"

GLOBAL: dict[str, tuple[dict[str, str], str | None, set[str]]] = {
    "nobody else": ({}, OWN, set()),
    "Claude Code, without a file": ({"~/.claude/": ""}, THEIRS, set()),
    "Claude Code's file": ({THEIRS: "x"}, THEIRS, set()),
    "its own file": ({OWN: "x"}, OWN, set()),
    "both": ({OWN: "x", THEIRS: "y"}, OWN, set()),
    "its own is ours": ({OWN: BLOCK}, OWN, set()),
    "its own is ours, and Claude Code came": ({OWN: BLOCK, THEIRS: "x"}, THEIRS, set()),
    "its own is ours, with the user's text": ({OWN: f"x\n{BLOCK}", THEIRS: "y"}, OWN, set()),
    "its own is empty": ({OWN: "", THEIRS: "x"}, THEIRS, {"opencode-global-empty"}),
    "both are one": ({OWN: "-> {home}/.claude/CLAUDE.md", THEIRS: "x"}, OWN, set()),
    "Claude Code's leads to Codex's": (
        {THEIRS: "-> {home}/.codex/AGENTS.md", "~/.codex/AGENTS.md": "x"},
        THEIRS,
        set(),
    ),
    "Claude Code's imports Codex's": (
        {THEIRS: "@~/.codex/AGENTS.md", "~/.codex/AGENTS.md": "x"},
        "~/.codex/AGENTS.md",
        set(),
    ),
    "Claude Code's imports Codex's, no settings can be changed": (
        {
            THEIRS: "@~/.codex/AGENTS.md",
            "~/.codex/AGENTS.md": "x",
            **{
                f"~/.config/opencode/{name}": "{"
                for name in ("config.json", "opencode.json", "opencode.jsonc")
            },
        },
        None,
        {"opencode-global-import"},
    ),
}


@pytest.mark.parametrize("case", GLOBAL)
def test_the_users_facts_are_in_the_file_that_opencode_reads(
    make: Make, sealed_home: Path, case: str
) -> None:
    files, expected, codes = GLOBAL[case]
    site = make(files if OWN in files else {**USED, **files})
    user = observe_user({"HOME": str(sealed_home)})
    path = None if expected is None else sealed_home / expected[2:]
    for seen in (site, user):
        assert [one.path for one in OPENCODE.carriers(seen, Scope.GLOBAL)] == ([] if path is None else [path])
    assert {code for code in codes_of(site) if "global" in code} == codes


def test_with_claudes_files_switched_off_it_needs_its_own(make: Make, sealed_home: Path) -> None:
    site = make({**USED, THEIRS: "x", C: "y"})
    assert edits_of(site)
    off = replace(site, env={**site.env, "OPENCODE_DISABLE_CLAUDE_CODE": "1"})
    assert [one.path for one in OPENCODE.carriers(off, Scope.GLOBAL)] == [sealed_home / OWN[2:]]
    assert edits_of(off) == []
    assert carriers_of(off)["claude-code"] == [C]


def test_asked_for_by_name_it_has_a_file_of_its_own_too_and_the_double_is_told(make: Make) -> None:
    site = make({**USED, A: "x"})
    assert site.project is not None
    assert "opencode-double" not in codes_of(site)
    asked = replace(site, project=replace(site.project, requested=("opencode",)))
    assert carriers_of(asked)["opencode"] == [A, BRIDGE]
    assert edits_of(asked) == [(FOLDER, BRIDGE, True)]
    assert "opencode-double" in codes_of(asked)


@pytest.mark.parametrize(
    ("files", "codes"),
    [
        ({A: "x"}, set()),
        ({C: "x"}, {"opencode-init-again"}),
        ({C: "x", ROOT: lists(C)}, set()),
        ({C: "x", ROOT: "{"}, {"opencode-init-again", "opencode-config"}),
        ({A: "x" * 250_000}, {"opencode-large", "opencode-init-again"}),
        ({"AGENTS.md/": ""}, {"opencode-agents-md", "opencode-init-again"}),
        ({A: f"x\n{BLOCK}", C: f"y\n{BLOCK}"}, set()),
        ({A: f"x\n{BLOCK}", C: f"y\n{BLOCK}", ROOT: lists("*.md")}, {"opencode-double"}),
        ({A: "x" * 31_000, ".opencode": "x"}, {"opencode-no-carrier"}),
        ({A: "x" * 31_000, BRIDGE: "-> ../x"}, {"opencode-no-carrier"}),
    ],
)
def test_what_a_person_is_told(make: Make, files: dict[str, str], codes: set[str]) -> None:
    assert codes_of(make({**USED, **files})) == codes


def test_a_project_whose_files_are_switched_off_gets_none(make: Make) -> None:
    site = make({**USED, C: "x"})
    off = replace(site, env={**site.env, "OPENCODE_DISABLE_PROJECT_CONFIG": "true"})
    assert carriers_of(site)["opencode"] == [A]
    assert "opencode" not in carriers_of(off)
    assert (edits_of(off), codes_of(off)) == ([], {"opencode-project-off"})


def test_a_store_that_is_kept_out_of_git_gets_into_no_tracked_file(make: Make) -> None:
    site = make({**USED, A: "x"})
    shared = replace(site.file(site.checkout / A), tracked=True)
    assert site.project is not None
    local = replace(
        site,
        project=replace(site.project, mode="local"),
        files={**site.files, str(shared.path): shared},
    )
    assert carriers_of(site)["opencode"] == [A]
    assert carriers_of(local)["opencode"] == [BRIDGE]


def test_what_a_session_reads_and_what_it_skips(make: Make) -> None:
    site = make(
        {
            THEIRS: "For all.",
            OWN: "Instead.",
            A: "One.",
            C: "Two.",
            X: "Three.",
            "sub/AGENTS.md": "Below.",
            "sub/opencode.json": lists("below.md"),
            "below.md": "Listed below.",
            "docs/a.md": "A.",
            "docs/deep/b.md": "B.",
            "notes.md": "Notes.",
            ROOT: lists(
                "docs/{a,z}.md", "notes.m[dx]", "AGENTS.md", "https://example.com/x.md", "../x.md", "docs"
            ),
            "../x.md": "Outside.",
            "~/.config/opencode/opencode.json": lists("~/mine.md", "docs/**/b.md"),
            "~/mine.md": "Mine.",
        }
    )
    read = OPENCODE.reads(site, site.checkout / "sub")
    shown = [one.text for one in read if not one.hidden]
    first, second = (
        ["Instead.", "Below.", "One.", "Mine.", "B."],
        ["A.", "Notes.", "Outside.", "Listed below."],
    )
    assert shown == first + second
    assert {one.path.name for one in read if one.hidden} == {"CLAUDE.md", "CONTEXT.md"}
    assert all(one.shown == (0 if one.hidden else one.size) and one.why for one in read)
    in_root = [one.text for one in OPENCODE.reads(site, site.checkout) if not one.hidden]
    assert in_root == [text for text in shown if "elow" not in text]


def test_what_a_session_reads_outside_of_git(make: Make, sealed_home: Path) -> None:
    root = sealed_home.parent / "plain" / "project"
    make({**USED})
    root.mkdir(parents=True)
    (root / C).write_text("Mine.", "utf-8")
    project = Project(id_for(root), root)
    site = observe_site(project, root)
    assert [one.text for one in OPENCODE.reads(site, root) if not one.hidden] == ["Mine."]
    assert edits_of(site) == [(ROOT, C, True)]
    (root.parent / A).write_text("Above.", "utf-8")
    site = observe_site(project, root)
    assert [one.text for one in OPENCODE.reads(site, root) if not one.hidden] == ["Above."]
    assert edits_of(site) == []


def test_what_people_wrote_comes_from_the_files_that_it_reads(make: Make) -> None:
    site = make(
        {
            **USED,
            A: f"# Rules\n\n- Use tabs.\n{BLOCK}",
            C: "- Not read.\n",
            "docs/a.md": "- Listed.\n",
            BRIDGE: f"- Ours.\n{BLOCK}",
            ROOT: lists("docs/*.md", BRIDGE),
            THEIRS: "- For all.\n",
        }
    )
    found = OPENCODE.hand_written(site)
    assert [one.text for one in found] == ["Use tabs.", "Listed."]
    assert {one.directory for one in found} == {site.checkout}
    assert [one.source_file.name for one in found] == ["AGENTS.md", "a.md"]


@pytest.mark.parametrize("place", [".config/opencode", ".local/share/opencode"])
def test_it_is_in_use_where_its_files_are(sealed_home: Path, place: str) -> None:
    env = {"HOME": str(sealed_home), "PATH": ""}
    assert not OPENCODE.detect(env)
    (sealed_home / place).mkdir(parents=True)
    assert OPENCODE.detect(env)


def test_it_is_in_use_where_its_program_is(sealed_home: Path) -> None:
    program = sealed_home / "bin" / "opencode"
    program.parent.mkdir()
    program.touch(mode=0o755)
    assert OPENCODE.detect({"HOME": str(sealed_home), "PATH": str(program.parent)})


def test_changes_are_looked_for_where_it_reads(make: Make, sealed_home: Path) -> None:
    site = make({})
    root, home = site.checkout, sealed_home
    assert set(OPENCODE.watch_places(site)) == {
        root,
        root / ".opencode",
        home / ".config/opencode",
        home / ".claude",
    }


def test_where_hooks_bring_the_others_the_facts_only_its_own_file_has_them(make: Make) -> None:
    site = make({**USED, C: "x"})
    assert site.project is not None
    by_hook = replace(site, project=replace(site.project, delivery="hooks"))
    assert carriers_of(site)["opencode"] == [A]
    assert carriers_of(by_hook) == {"opencode": [BRIDGE]}
    assert edits_of(by_hook) == [(FOLDER, BRIDGE, True)]


@pytest.mark.parametrize("file", ["opencode.json", "opencode.jsonc", "config.json", ""])
def test_what_claudes_file_imports_is_listed_in_the_users_settings(
    make: Make, sealed_home: Path, file: str
) -> None:
    imported = "~/.codex/AGENTS.md"
    mine = {f"~/.config/opencode/{file}": "{}"} if file else {}
    site = make({**USED, THEIRS: f"@{imported}", imported: "x", **mine})
    [edit] = OPENCODE.key_edits(observe_user({"HOME": str(sealed_home)}))
    assert edit.path == sealed_home / ".config/opencode" / (file or "opencode.json")
    assert (edit.element, edit.key, edit.value) == (True, ("instructions",), str(sealed_home / imported[2:]))
    assert "opencode-init-again" in codes_of(site)
    edit.path.write_text(lists(str(edit.value)), "utf-8")
    assert OPENCODE.key_edits(observe_user({"HOME": str(sealed_home)})) == (edit,)
    assert site.project is not None
    assert "opencode-init-again" not in codes_of(observe_site(site.project, site.checkout))


def test_a_setting_without_which_it_has_no_facts_is_a_warning(make: Make) -> None:
    site = make({**USED, A: "x" * 31_000})
    assert [one.level for one in OPENCODE.notices(site)] == ["warning"]
    (site.checkout / A).write_text("x", "utf-8")
    assert site.project is not None
    asked = replace(site.project, requested=("opencode",))
    told = OPENCODE.notices(observe_site(asked, site.checkout))
    assert [(one.code, one.level) for one in told] == [
        ("opencode-double", "info"),
        ("opencode-init-again", "info"),
    ]
