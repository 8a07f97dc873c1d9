"""Which files Claude Code shows, on a disk that is a dictionary; tests/clients asks the real program."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_bridge.harnesses import claude_text
from agent_bridge.harnesses.base import FileKind, InstructionFile, Read, Site
from agent_bridge.harnesses.claude_reads import Disk, reads
from agent_bridge.projects import Project

ROOT = Path("/w/project")
HOME = Path("/h")
STORE_KEY = ".claude/settings.local.json"
_BOTH = {
    "pluginConfigs": {
        "cc-plugin-agents-md@builtin": {"options": {"instructionFiles": "claude-md-and-agents-md"}}
    }
}


def _disk(files: dict[str, str], links: dict[str, str]) -> Disk:
    data = {_place(name): text for name, text in files.items()}
    targets = {_place(name): _place(target) for name, target in links.items()}

    def look(path: Path) -> InstructionFile:
        real = targets.get(path, path)
        if real in data:
            kind = FileKind.SYMLINK if path in targets else FileKind.FILE
            return InstructionFile(str(path), path, real, kind, data[real].encode())
        below = [one for one in data if one.is_relative_to(real)]
        kind = FileKind.DIRECTORY if below else FileKind.DANGLING if path in targets else FileKind.ABSENT
        return InstructionFile(str(path), path, real, kind)

    def names(place: Path) -> tuple[str, ...]:
        known = (*data, *targets)
        return tuple(
            dict.fromkeys(one.relative_to(place).parts[0] for one in known if one.is_relative_to(place))
        )

    return Disk(look, names)


def _place(name: str) -> Path:
    if name.startswith("~/"):
        return HOME / name[2:]
    return Path(os.path.normpath(ROOT / name))


def _reads(
    files: dict[str, str],
    start: str = ".",
    *,
    links: dict[str, str] | None = None,
    is_git: bool = True,
    env: dict[str, str] | None = None,
) -> tuple[Read, ...]:
    project = Project("0" * 16, ROOT)
    config = {str(_place(name)): text.encode() for name, text in files.items() if name.endswith(".json")}
    site = Site(project, ROOT, env={"HOME": str(HOME), **(env or {})}, is_git=is_git, config=config)
    return reads(site, ROOT / start, _disk(files, links or {}))


def _shown(found: tuple[Read, ...]) -> list[str]:
    return [_name(read.path) for read in found if not read.hidden]


def _hidden(found: tuple[Read, ...]) -> dict[str, str]:
    return {_name(read.path): read.hidden for read in found if read.hidden}


def _name(path: Path) -> str:
    if path.is_relative_to(ROOT):
        return path.relative_to(ROOT).as_posix()
    return f"~/{path.relative_to(HOME)}" if path.is_relative_to(HOME) else str(path)


EVERYTHING = {
    name: f"This is {name}."
    for name in (
        "~/.claude/CLAUDE.md",
        "~/.claude/rules/mine.md",
        "CLAUDE.md",
        ".claude/CLAUDE.md",
        ".claude/rules/one.md",
        ".claude/rules/deep/two.md",
        ".claude/rules/three.txt",
        "CLAUDE.local.md",
        "AGENTS.md",
        "sub/CLAUDE.md",
        "sub/.claude/rules/three.md",
    )
}


def test_the_order_in_the_root_and_below() -> None:
    users = ["~/.claude/CLAUDE.md", "~/.claude/rules/mine.md"]
    roots = ["CLAUDE.md", ".claude/CLAUDE.md", ".claude/rules/one.md", ".claude/rules/deep/two.md"]

    assert _shown(_reads(EVERYTHING)) == [*users, *roots, "CLAUDE.local.md"]
    below = ["sub/CLAUDE.md", "sub/.claude/rules/three.md"]
    assert _shown(_reads(EVERYTHING, "sub")) == [*users, *roots, "CLAUDE.local.md", *below]


@pytest.mark.parametrize(
    "hiding", ["CLAUDE.md", ".claude/CLAUDE.md", "CLAUDE.local.md", "../CLAUDE.md", "../.claude/CLAUDE.md"]
)
def test_agents_md_is_read_only_where_nothing_hides_it(hiding: str) -> None:
    files = {"AGENTS.md": "Shared.", ".claude/rules/r.md": "A rule.", "~/.claude/CLAUDE.md": "Mine."}
    alone = _reads(files)
    hidden = _reads({**files, hiding: "Here."})

    assert _shown(alone) == ["~/.claude/CLAUDE.md", ".claude/rules/r.md", "AGENTS.md"]
    assert "AGENTS.md" not in _shown(hidden)
    assert str(_place(hiding)) in _hidden(hidden)["AGENTS.md"]


@pytest.mark.parametrize("text", ["", " \n", "<!-- nothing -->\n", "---\na: b\n---\n"])
def test_a_file_that_says_nothing_hides_nothing(text: str) -> None:
    found = _reads({"AGENTS.md": "Shared.", "CLAUDE.md": text})

    assert _shown(found) == ["AGENTS.md"]
    assert "CLAUDE.md" in _hidden(found)


def test_a_nested_claude_md_hides_agents_md_for_its_own_directory_only() -> None:
    files = {"AGENTS.md": "Shared.", "sub/CLAUDE.md": "Below.", "sub/AGENTS.md": "Shared below."}

    assert _shown(_reads(files)) == ["AGENTS.md"]
    assert _shown(_reads(files, "sub")) == ["sub/CLAUDE.md"]
    assert _shown(_reads(files, "other")) == ["AGENTS.md"]


def test_both_are_read_by_a_setting_of_the_user_and_the_reason_names_it() -> None:
    files = {"AGENTS.md": "Shared.", "CLAUDE.md": "Mine.", "~/.claude/settings.json": json.dumps(_BOTH)}

    found = _reads(files)

    assert _shown(found) == ["CLAUDE.md", "AGENTS.md"]
    assert "instructionFiles in /h/.claude/settings.json" in found[1].why


def test_an_import_is_followed_below_the_sessions_directory_only() -> None:
    files = {"CLAUDE.md": "@AGENTS.md @sub/x.md", "AGENTS.md": "Shared.", "sub/x.md": "X."}

    assert _shown(_reads(files)) == ["CLAUDE.md", "AGENTS.md", "sub/x.md"]
    below = _reads(files, "sub")
    assert _shown(below) == ["CLAUDE.md", "sub/x.md"]
    assert "only to places below" in _hidden(below)["AGENTS.md"]


def test_the_users_own_file_imports_from_anywhere() -> None:
    files = {"~/.claude/CLAUDE.md": "@~/.codex/AGENTS.md", "~/.codex/AGENTS.md": "Everywhere."}

    assert _shown(_reads(files)) == ["~/.claude/CLAUDE.md", "~/.codex/AGENTS.md"]


def test_imports_end_after_four_levels() -> None:
    files = {f"{name}.md": f"@{after}.md" for name, after in zip("abcdef", "bcdefg", strict=True)}

    assert _shown(_reads({**files, "CLAUDE.md": "@a.md"})) == ["CLAUDE.md", "a.md", "b.md", "c.md", "d.md"]


def test_one_file_under_two_names_is_shown_once() -> None:
    found = _reads({"AGENTS.md": "Shared."}, links={"CLAUDE.md": "AGENTS.md"})

    assert _shown(found) == ["CLAUDE.md"]


def test_rules_behind_a_link_are_read_in_the_root_only() -> None:
    files = {"shared/r.md": "Linked.", "CLAUDE.md": "Here."}
    links = {".claude/rules/r.md": "shared/r.md"}

    assert _shown(_reads(files, links=links)) == ["CLAUDE.md", "shared/r.md"]
    below = _reads(files, "sub", links=links)
    assert _shown(below) == ["CLAUDE.md"]
    assert "/w/project/shared/r.md" in _hidden(below)[".claude/rules/r.md"]


@pytest.mark.parametrize(
    ("paths", "is_read"),
    [
        ("paths: ['*.py']", False),
        ("paths: '**/*'", False),
        ("paths:\n  - src/**", False),
        ("paths: '**'", True),
        ("paths: '/**'", True),
        ("paths: []", True),
        ("paths:", True),
        ("globs: '*.py'", True),
        ("paths: &x [*x", True),
    ],
)
def test_a_rule_for_certain_files_comes_later(paths: str, is_read: bool) -> None:
    found = _reads({".claude/rules/r.md": f"---\n{paths}\n---\nA rule.\n"})

    assert bool(_shown(found)) == is_read
    assert ("paths" in _hidden(found).get(".claude/rules/r.md", "")) != is_read


def test_excluded_files_name_the_settings_that_exclude_them() -> None:
    files = {"CLAUDE.md": "Here.", "AGENTS.md": "Shared."}
    setting = json.dumps({"claudeMdExcludes": ["**/CLAUDE.md"]})

    shared = {**files, ".claude/settings.json": setting}
    assert _shown(_reads(shared)) == ["AGENTS.md"]
    assert "/w/project/.claude/settings.json" in _hidden(_reads(shared))["CLAUDE.md"]
    assert _shown(_reads(shared, "sub")) == ["CLAUDE.md"]  # shared settings are those of its own directory
    assert _shown(_reads({**files, STORE_KEY: setting}, "sub")) == ["AGENTS.md"]
    assert _shown(_reads({**files, f"sub/{STORE_KEY}": setting}, "sub")) == ["AGENTS.md"]


def test_a_switch_hides_all_files_but_not_the_index() -> None:
    files = {
        "CLAUDE.md": "Here.",
        "m/MEMORY.md": "- one\n",
        STORE_KEY: '{"autoMemoryDirectory": "/w/project/m"}',
    }

    off = _reads(files, env={"CLAUDE_CODE_DISABLE_CLAUDE_MDS": "1"})

    assert _shown(off) == ["m/MEMORY.md"]
    assert "CLAUDE_CODE_DISABLE_CLAUDE_MDS" in _hidden(off)["CLAUDE.md"]
    assert _shown(_reads(files)) == ["CLAUDE.md", "m/MEMORY.md"]


def test_the_index_is_that_of_the_directory_that_a_setting_names() -> None:
    files = {"m/MEMORY.md": "- one\n", STORE_KEY: '{"autoMemoryDirectory": "/w/project/m"}'}

    [index] = [read for read in _reads(files, "sub") if not read.hidden]

    assert index.text == "- one"
    assert f"autoMemoryDirectory in {ROOT / STORE_KEY}" in index.why
    assert not _shown(_reads(files, "sub", is_git=False))  # the session's own directory counts there
    off = _reads({**files, "~/.claude/settings.json": '{"autoMemoryEnabled": false}'})
    assert "switches the memory off" in _hidden(off)["m/MEMORY.md"]


def test_a_worktree_inside_its_main_checkout_reads_only_the_local_file_of_that() -> None:
    worktree = ROOT / ".wt/a"
    files = {
        "CLAUDE.md": "Main.",
        "AGENTS.md": "Main.",
        ".wt/a/CLAUDE.md": "Tree.",
        "CLAUDE.local.md": "Mine.",
    }
    site = Site(Project("0" * 16, ROOT), worktree, is_main=False, env={"HOME": str(HOME)})

    found = reads(site, worktree, _disk(files, {}))

    assert _shown(found) == ["CLAUDE.local.md", ".wt/a/CLAUDE.md"]
    alone = replace(site, project=Project("0" * 16, worktree, main=ROOT), is_main=True)
    assert _shown(reads(alone, worktree, _disk(files, {}))) == _shown(found)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a\n\n<!-- x -->\n\nb\n", "a\n\nb"),
        ("a\n<!-- x -->\nb", "a\nb"),
        ("a <!-- x --> b", "a <!-- x --> b"),
        ("<!--\nx\n--> tail\nb", "tail\nb"),
        ("<!-- a --><!-- b -->\n\nend", "end"),
        ("```\n<!-- code -->\n```", "```\n<!-- code -->\n```"),
        ("    <!-- indented -->\n\nb", "<!-- indented -->\n\nb"),
        ("- li\n\n  <!-- in the item -->\n", "- li\n\n  <!-- in the item -->"),
        ("- li\n<!-- after -->\n- li2", "- li\n- li2"),
        ("a\n<!-- never closed", "a\n<!-- never closed"),
        ("---\nfoo: bar\n---\na", "a"),
        ("a\r\nb", "a\r\nb"),
        ("a\r\n\r\n<!-- x -->\r\nb", "a\n\nb"),
        ("\ufeff  \n\nbom\n\n", "bom"),
    ],
)
def test_what_stands_in_the_prompt_of_a_text(text: str, shown: str) -> None:
    assert claude_text.shown(text.encode()) == shown


@given(st.text(st.sampled_from("ab<!->\n` -#\r"), max_size=60))
def test_any_text_is_shown_without_failing_and_gains_nothing(text: str) -> None:
    shown = claude_text.shown(text.encode())

    assert len(shown) <= len(text)
    assert not set(shown) - set(text)


def test_the_index_is_cut_by_lines_and_then_by_characters() -> None:
    lines = [f"- line {number}" for number in range(1, 251)]
    by_lines = claude_text.shown_index("\n".join(lines).encode())
    assert by_lines.text.split("\n") == lines[:200]
    assert by_lines.cut.startswith("the last 50 of 250 lines")

    wide = [f"{number:03} {'x' * 295}" for number in range(100)]
    by_characters = claude_text.shown_index("\n".join(wide).encode())
    assert by_characters.text.split("\n") == wide[:83]
    assert by_characters.cut.startswith("the last 17 of 100 lines")

    one = claude_text.shown_index(b"x" * 30_000)
    assert len(one.text) == 25_000
    assert "25,000 characters" in one.cut
    assert not claude_text.shown_index("\n".join(lines[:200]).encode()).cut
