"""`sync --from`: texts in agents' files become facts, none twice, and nothing is written unasked."""

from __future__ import annotations

import hashlib
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from corpus.rephrased import DISTINCT, FACT, REPHRASED

from .conftest import Program

HARBOUR = "The harbour is in the north of the town."


@pytest.fixture
def set_up(program: Program, sealed_home: Path) -> Program:
    """A set-up project with a fact, whose CLAUDE.md and AGENTS.md are committed."""
    for name in (".claude", ".codex"):
        (sealed_home / name).mkdir()
    (program.cwd / "AGENTS.md").write_text("# Rules\n\n- Be kind.\n")
    (program.cwd / "CLAUDE.md").write_text("# For Claude\n\n- Be brief in every answer.\n")
    _git(program.cwd, "add", ".")
    _git(program.cwd, "commit", "-qm", "start")
    assert program("init", "--yes").code == 0
    assert program("add", HARBOUR).code == 0
    return program


def _git(root: Path, *words: str) -> None:
    subprocess.run(["git", "-C", str(root), *words], check=True, capture_output=True)


def _tree(*roots: Path) -> dict[str, str]:
    """Each path below some directories with its kind, mode, times and content."""
    found: dict[str, str] = {}
    for root in roots:
        for base, folders, names in os.walk(root):
            for name in (*folders, *names):
                path = Path(base, name)
                info = path.lstat()
                data = path.read_bytes() if path.is_file() and not path.is_symlink() else b""
                sha = hashlib.sha256(data).hexdigest()
                found[str(path)] = f"{info.st_mode} {info.st_mtime_ns} {info.st_size} {info.st_ino} {sha}"
    return found


def _findings(program: Program, *words: str, code: int = 0) -> dict[str, dict[str, Any]]:
    """By their texts, the first of each; in reversed order."""
    ran = program("sync", *words, "--json")
    assert ran.code == code, ran.out
    return {one["text"]: one for one in reversed(ran.json["data"]["findings"])}


def _append(path: Path, text: str) -> None:
    with path.open("a") as file:
        file.write(text)


def _facts(program: Program) -> list[dict[str, Any]]:
    facts = program("list", "--json").json["data"]["facts"]
    assert isinstance(facts, list)
    return facts


def test_exact_is_skipped_similar_is_a_conflict_and_new_is_added_with_its_source(set_up: Program) -> None:
    _append(set_up.cwd / "CLAUDE.md", f"- {HARBOUR}\n- The harbour is in the south of the town.\n")
    found = _findings(set_up, "--from", "claude", "--apply", code=4)
    known = next(fact["id"] for fact in _facts(set_up) if fact["source"] == "cli")
    assert found[HARBOUR]["outcome"] == "skipped"
    conflict = found["The harbour is in the south of the town."]
    assert (conflict["outcome"], conflict["fact"], conflict["score"]) == ("conflict", known, 0.75)
    assert "differ in north, south" in conflict["why"]
    new = found["Be brief in every answer."]
    assert new["outcome"] == "new"
    facts = {fact["id"]: fact for fact in _facts(set_up)}
    assert set(facts) == {known, new["fact"]}
    assert facts[new["fact"]]["source"] == "claude-code"
    assert "origin: CLAUDE.md" in (set_up.cwd / ".memory" / facts[new["fact"]]["path"]).read_text()
    waiting = set_up("review", "--json").json["data"]["candidates"]
    assert [(one["text"], one["similar"]) for one in waiting] == [
        ("The harbour is in the south of the town.", known)
    ]


def test_a_second_run_adds_nothing_and_writes_nothing(set_up: Program) -> None:
    _append(set_up.cwd / "CLAUDE.md", "- The harbour is in the south of the town.\n- Ships wait outside.\n")
    _findings(set_up, "--from", "claude", "--apply", code=4)
    before, facts = _tree(set_up.cwd), _facts(set_up)
    found = _findings(set_up, "--from", "claude", "--apply", code=4)
    assert {one["outcome"] for one in found.values()} == {"skipped", "conflict"}
    assert _facts(set_up) == facts
    assert _tree(set_up.cwd) == before


@pytest.mark.parametrize("name", ["claude", "codex", "all"])
def test_without_apply_not_a_byte_changes_anywhere(
    set_up: Program, short_tmp: Path, sealed_home: Path, name: str
) -> None:
    _append(set_up.cwd / "CLAUDE.md", "- The harbour is in the south of the town.\n")
    _append(set_up.cwd / "AGENTS.md", "- The harbour is in the east of the town.\n- Ships wait outside.\n")
    _git(set_up.cwd, "worktree", "add", "-q", str(short_tmp / "tree"))
    for number in range(80):  # so many that reading them would fill a cache
        fact = f"---\nmetadata:\n  private: true\n---\nPrivate matter number {number}.\n"
        (set_up.cwd / f".memory/p{number}.md").write_text(fact)
    before = _tree(short_tmp)
    found = _findings(set_up, "--from", name, code=4)
    assert {one["outcome"] for one in found.values()} >= {"new", "conflict"}
    assert _tree(short_tmp) == before
    assert sealed_home.is_relative_to(short_tmp)
    _findings(set_up, "--from", name, "--apply", code=4)
    assert _tree(short_tmp) != before


def test_fifty_rephrasings_make_one_fact(set_up: Program) -> None:
    _append(set_up.cwd / "AGENTS.md", "".join(f"- {text}\n" for text in REPHRASED))
    found = _findings(set_up, "--from", "codex", "--apply", code=4)
    assert [text for text, one in found.items() if one["outcome"] == "new"] == [FACT, "Be kind."]
    made = found[FACT]["fact"]
    assert {one["fact"] for text, one in found.items() if one["outcome"] == "conflict"} == {made}
    assert len(_facts(set_up)) == 3


def test_different_texts_all_become_facts(set_up: Program) -> None:
    _append(set_up.cwd / "AGENTS.md", "".join(f"- {text}\n" for text in DISTINCT))
    found = _findings(set_up, "--from", "codex", "--apply")
    assert {one["outcome"] for one in found.values()} == {"new"}
    assert len(_facts(set_up)) == len(DISTINCT) + 2


def test_our_own_lines_are_no_candidates_and_an_edited_one_is_a_conflict_with_its_fact(
    set_up: Program,
) -> None:
    known = _facts(set_up)[0]["id"]
    _append(set_up.cwd / "CLAUDE.md", f"- [{known}] {HARBOUR}\n- [{known}] Bread is sold at dawn.\n")
    _append(set_up.cwd / "CLAUDE.md", "- [20200101-0001-gone] A fact that is no more.\n")
    found = _findings(set_up, "--from", "claude", code=4)
    assert found[f"[{known}] {HARBOUR}"]["outcome"] == "skipped"
    edited = found["Bread is sold at dawn."]
    assert (edited["outcome"], edited["fact"]) == ("conflict", known)
    assert found["[20200101-0001-gone] A fact that is no more."]["outcome"] == "skipped"


def test_a_secret_is_never_shared_nor_shown(set_up: Program) -> None:
    token = "ghp_" + "a1B2" * 9
    _append(set_up.cwd / "CLAUDE.md", f"- The release token is {token} for now.\n")
    ran = set_up("sync", "--from", "claude", "--apply", "--json")
    assert ran.code == 0
    assert token not in ran.out
    assert "[GitHub token]" in ran.out
    (made,) = [fact for fact in _facts(set_up) if fact["secrets"]]
    assert made["private"] is True
    assert token not in (set_up.cwd / "AGENTS.md").read_text()
    assert token not in set_up("sync", "--from", "claude").out


def test_what_is_one_persons_becomes_a_private_fact(set_up: Program) -> None:
    (set_up.cwd / "CLAUDE.local.md").write_text("- I like tea.\n")
    (set_up.cwd / ".gitignore").write_text("AGENTS.override.md\n")
    (set_up.cwd / "AGENTS.override.md").write_text("- My desk is upstairs.\n")
    found = _findings(set_up, "--from", "all", "--apply")
    privates = {fact["id"] for fact in _facts(set_up) if fact["private"]}
    assert privates == {found["I like tea."]["fact"], found["My desk is upstairs."]["fact"]}
    assert found["Be kind."]["fact"] not in privates


def test_private_keeps_all_of_it_out_of_git(set_up: Program) -> None:
    found = _findings(set_up, "--from", "codex", "--apply", "--private")
    assert {fact["id"] for fact in _facts(set_up) if fact["private"]} == {found["Be kind."]["fact"]}


def test_a_deleted_fact_does_not_come_back(set_up: Program) -> None:
    made = _findings(set_up, "--from", "codex", "--apply")["Be kind."]["fact"]
    assert set_up("rm", made, "--yes").code == 0
    found = _findings(set_up, "--from", "codex", "--apply")
    assert (found["Be kind."]["outcome"], found["Be kind."]["fact"]) == ("skipped", made)
    assert found["Be kind."]["why"] == f"{made} said it and was forgotten"
    assert len(_facts(set_up)) == 1


def test_texts_of_worktrees_come_back_too(set_up: Program, short_tmp: Path) -> None:
    tree = short_tmp / "tree"
    _git(set_up.cwd, "worktree", "add", "-q", str(tree))
    _append(tree / "AGENTS.md", "- Only in the worktree.\n")
    found = _findings(set_up, "--from", "codex", "--apply")
    assert found["Only in the worktree."]["outcome"] == "new"
    assert found["Only in the worktree."]["origin"] == str(tree / "AGENTS.md")


def test_what_stands_in_the_users_own_file_goes_into_the_memory_of_all_projects(
    set_up: Program, sealed_home: Path
) -> None:
    (sealed_home / ".gemini").mkdir()
    (sealed_home / ".gemini/GEMINI.md").write_text("## Gemini Added Memories\n- I like tea.\n")
    before = _tree(sealed_home)
    assert _findings(set_up, "--from", "gemini")["I like tea."]["scope"] == "global"
    assert _tree(sealed_home) == before
    made = _findings(set_up, "--from", "gemini", "--apply")["I like tea."]["fact"]
    assert {fact["id"]: fact["scope"] for fact in _facts(set_up)}[made] == "global"
    assert _findings(set_up, "--from", "gemini", "--apply")["I like tea."]["outcome"] == "skipped"


def test_a_symlink_that_leads_out_is_not_followed(set_up: Program, short_tmp: Path) -> None:
    (short_tmp / "diary.md").write_text("- Dear diary.\n")
    (set_up.cwd / ".claude" / "rules").mkdir(parents=True, exist_ok=True)
    (set_up.cwd / ".claude/rules/x.md").symlink_to(short_tmp / "diary.md")
    (set_up.cwd / ".claude/rules/y.md").write_text("- A rule.\n")
    (set_up.cwd / ".claude/CLAUDE.md").symlink_to(set_up.cwd / ".git/description")
    assert set(_findings(set_up, "--from", "claude")) == {"Be brief in every answer.", "A rule."}


def test_people_see_a_line_a_text_and_the_count(set_up: Program) -> None:
    _append(set_up.cwd / "CLAUDE.md", f"- {HARBOUR}\n- The harbour is in the south of the town.\n")
    known = _facts(set_up)[0]["id"]
    ran = set_up("sync", "--from", "claude")
    assert ran.code == 4
    assert "new  CLAUDE.md: Be brief in every answer." in ran.out
    assert f"skipped {known}  CLAUDE.md: {HARBOUR}" in ran.out
    assert f"conflict {known} 0.75  CLAUDE.md: The harbour is in the south of the town." in ran.out
    assert "3 texts: 1 new, 1 skipped, 1 conflict (nothing was written; --apply does it)." in ran.out
    assert set_up("review", "--json").json["data"]["count"] == 0


@pytest.mark.parametrize(
    "words", [("--apply",), ("--private",), ("--from", "claude", "--to", "codex"), ("--from", "nobody")]
)
def test_words_that_do_not_fit_together(set_up: Program, words: tuple[str, ...]) -> None:
    ran = set_up("sync", *words)
    assert ran.code == 2
    assert ran.err.startswith("agent-bridge: ")


def test_two_runs_at_once_make_each_fact_once(set_up: Program) -> None:
    _append(set_up.cwd / "AGENTS.md", "".join(f"- {text}\n" for text in DISTINCT))
    words = [*set_up.command, "sync", "--from", "codex", "--apply"]
    running = [subprocess.Popen(words, cwd=set_up.cwd, stdout=subprocess.DEVNULL) for _ in range(2)]
    assert [one.wait(60) for one in running] == [0, 0]
    assert len(_facts(set_up)) == len(DISTINCT) + 2


def test_a_text_that_several_agents_read_in_one_file_is_told_once(
    set_up: Program, sealed_home: Path, tmp_path: Path
) -> None:
    (sealed_home / ".config" / "opencode").mkdir(parents=True)
    _git(set_up.cwd, "worktree", "add", "-q", str(tmp_path / "other"))
    found = set_up("sync", "--from", "all", "--json").json["data"]["findings"]
    assert [one["outcome"] for one in found if one["text"] == "Be kind."] == ["new"]
    _append(set_up.cwd / "CLAUDE.md", "- Be kind.\n")
    found = set_up("sync", "--from", "all", "--json").json["data"]["findings"]
    assert sorted(one["outcome"] for one in found if one["text"] == "Be kind.") == ["new", "skipped"]
