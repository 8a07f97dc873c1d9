"""`explain` as a person runs it: in a project, below it, in a worktree and where nothing is set up."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from .conftest import Program
from .test_facts import tree

TEXT = "Releases leave on Tuesdays, from the harbour branch."
SPACES = "Indent with four spaces in every file of this project."


@pytest.fixture
def agents(sealed_home: Path) -> Path:
    """Homes of both clients; the user has texts of their own in them."""
    for name, text in ((".claude/CLAUDE.md", "Be brief.\n"), (".codex/AGENTS.md", "Be kind.\n")):
        (sealed_home / name).parent.mkdir()
        (sealed_home / name).write_text(text)
    return sealed_home


def _told(program: Program, *words: str) -> dict[str, Any]:
    data: dict[str, Any] = program("explain", *words, "--json").json["data"]
    return data


def _one(program: Program, name: str, *words: str) -> dict[str, Any]:
    [one] = _told(program, name, *words)["harnesses"]
    found: dict[str, Any] = one
    return found


def _paths(found: dict[str, Any]) -> list[str]:
    return [read["path"] for read in found["reads"]]


def test_where_nothing_is_set_up_it_says_what_is_read_and_to_run_init(program: Program, agents: Path) -> None:
    (program.cwd / "AGENTS.md").write_text(f"- {SPACES}\n")
    before = tree(program.cwd.parent)

    told = _told(program)

    assert tree(program.cwd.parent) == before
    assert not told["set_up"]
    by_name = {one["name"]: one for one in told["harnesses"]}
    assert _paths(by_name["codex"]) == [str(agents / ".codex/AGENTS.md"), str(program.cwd / "AGENTS.md")]
    assert _paths(by_name["claude-code"])[0] == str(agents / ".claude/CLAUDE.md")
    assert all("agent-bridge init" in " ".join(one["advice"]) for one in told["harnesses"])
    text = program("explain").out
    assert "Claude Code, started in" in text
    assert "Codex, started in" in text
    assert "agent-bridge init" in text


def test_in_a_directory_without_git(short_tmp: Path, agents: Path) -> None:
    place = short_tmp / "plain/sub"
    place.mkdir(parents=True)
    (place.parent / "AGENTS.md").write_text("Above.\n")
    (place / "AGENTS.md").write_text("Here.\n")

    told = Program(place)
    assert _paths(_one(told, "codex")) == [str(agents / ".codex/AGENTS.md"), str(place / "AGENTS.md")]
    assert str(place.parent / "AGENTS.md") in _paths(_one(told, "claude"))


def test_nobody_in_use(program: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/usr/bin:/bin")

    ran = program("explain")

    assert ran.code == 0
    assert ran.out == ""
    assert "No agent program is in use" in ran.err


def test_a_set_up_project_from_its_root_from_below_and_from_a_worktree(
    program: Program, agents: Path
) -> None:
    root = program.cwd
    (root / "CLAUDE.md").write_text("Here.\n\n@AGENTS.md\n")
    (root / "AGENTS.md").write_text("Shared.\n")
    subprocess.run(["git", "-C", str(root), "add", "-A"], check=True)
    subprocess.run(["git", "-C", str(root), "commit", "-qm", "x"], check=True)
    side = root.parent / "side"
    subprocess.run(["git", "-C", str(root), "worktree", "add", "-q", str(side)], check=True)
    assert program("init", "--yes").code == 0
    fact = program.id_of(TEXT)
    private = program.id_of("Only for me, not for others.", "--private")
    below = root / "src"
    below.mkdir()

    here = _one(program, "claude")
    assert _paths(here)[1:3] == [str(root / "CLAUDE.md"), str(root / "AGENTS.md")]
    assert {read["path"]: read["facts"] for read in here["reads"]}[str(root / "AGENTS.md")] == 1
    [missing] = here["missing"]
    assert (missing["why"], missing["facts"], missing["titled"]) == ("private", [private], [private])

    deep = _one(Program(below), "claude")
    assert {group["why"]: group["facts"] for group in deep["missing"]} == {
        "private": [private],
        "hidden": [fact],
    }
    assert "claude-import-below-root" in {notice["code"] for notice in deep["notices"]}
    assert any("project's root" in text for text in deep["advice"])
    assert _paths(_one(program, "claude", "--project", str(below))) == _paths(deep)

    aside = _one(Program(side), "codex")
    assert str(side / "AGENTS.md") in _paths(aside)
    assert [group["facts"] for group in aside["missing"]] == [[private]]


def test_cuts_doubles_and_facts_without_room_are_told(program: Program, agents: Path) -> None:
    root = program.cwd
    (agents / ".codex/config.toml").write_text("project_doc_max_bytes = 6000\n")
    (root / "AGENTS.md").write_text(f"- {SPACES}\n")
    (root / "sub").mkdir()
    (root / "sub/AGENTS.md").write_text(f"{SPACES}\n\n{'x' * 900}\n")
    assert program("init", "--yes").code == 0
    for number in range(4):
        program("add", f"Fact number {number}: " + f"word{number} " * 250)

    told = _one(program, "codex")
    [group] = told["missing"]
    assert group["why"] == "budget"
    assert any("agent-bridge search" in text for text in told["advice"])
    assert told["doubles"] == []

    (root / "sub/AGENTS.md").write_text(f"{SPACES}\n\n{'x' * 9000}\n")
    below = _one(Program(root / "sub"), "codex")
    assert [double["text"] for double in below["doubles"]] == [SPACES]
    [cut] = [read for read in below["reads"] if read["cut"]]
    assert cut["path"] == str(root / "sub/AGENTS.md")
    assert cut["shown"] < cut["size"]
    assert "project_doc_max_bytes is 6000" in cut["cut"]
    text = Program(root / "sub")("explain", "codex").out
    assert f"{cut['shown']:,} of {cut['size']:,} bytes" in text
    assert "Shown twice:" in text


def test_what_a_hook_prints_is_part_of_it(program: Program, agents: Path) -> None:
    (program.cwd / "CLAUDE.md").write_text("Here.\n")
    assert program("init", "--yes", "--hooks").code == 0
    fact = program.id_of(TEXT)

    for name in ("claude", "codex"):
        told = _one(program, name)
        [hook] = [read for read in told["reads"] if "hook" in read["why"]]
        assert hook["facts"] == 1
        assert fact in Path(hook["path"]).read_text()
        assert told["missing"] == []
        assert told["doubles"] == []


def test_it_fits_eighty_columns_and_changes_nothing(program: Program, agents: Path) -> None:
    (program.cwd / "CLAUDE.md").write_text(f"{SPACES}\n@AGENTS.md\n")
    (program.cwd / "AGENTS.md").write_text(f"{SPACES}\n")
    assert program("init", "--yes").code == 0
    for number in range(80):  # more than a store's cache is made for
        (program.cwd / f".memory/fact-{number}.md").write_text(f"Fact number {number} of many.\n")
    assert program("sync").code == 0
    (program.cwd / ".memory/new.md").write_text("---\nprivate: true\n---\nNobody has seen this one yet.\n")
    before = tree(program.cwd.parent)

    for words in ((), ("claude",), ("codex", "--json"), ("all", "--json")):
        ran = program("explain", *words)
        assert ran.code == 0, ran.err
        assert tree(program.cwd.parent) == before

    lines = program("explain").out.splitlines()
    assert [line for line in lines if len(line) > 80 and " " in line.strip()] == []


def test_hostile_names_and_texts_are_harmless(program: Program, agents: Path) -> None:
    (program.cwd / "CLAUDE.md").write_text(f"\x1b[2J {SPACES}\n\n@AGENTS.md\n")
    (program.cwd / "AGENTS.md").write_text(f"\x1b[2J {SPACES}\n")

    ran = program("explain", "claude")

    assert "\x1b" not in ran.out
    assert "\\x1b" in ran.out
    assert json.loads(program("explain", "claude", "--json").out)
