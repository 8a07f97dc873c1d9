"""How a plan looks to people."""

from __future__ import annotations

from pathlib import Path

from agent_bridge.cli.pass_shown import preview_json, preview_text, steps_in_words
from agent_bridge.harnesses.base import Notice
from agent_bridge.projection.preview import Preview, Step, unified_diff
from agent_bridge.projects import Project

PROJECT = Project("0" * 16, Path("/p"))
BLOCK = b"<start>\n## Project memory\n\n### A [a]\n<end>\n"


def would(*steps: Step, notices: tuple[Notice, ...] = (), shared: tuple[str, ...] = ()) -> Preview:
    return Preview(PROJECT, steps, notices, shared, (), {}, {})


def step(name: str, before: bytes, after: bytes) -> Step:
    path = Path("/p") / name
    return Step("block", path, f"gets the block for {name}", unified_diff(path, before, after))


def test_a_block_that_two_files_get_is_shown_once() -> None:
    plan = would(step("AGENTS.md", b"# A\n", b"# A\n" + BLOCK), step("CLAUDE.md", b"# C\n", b"# C\n" + BLOCK))
    text = preview_text(plan)
    assert text.count("### A [a]") == 1
    assert "- /p/CLAUDE.md: gets the block for CLAUDE.md\n    the same 5 lines as in /p/AGENTS.md" in text
    assert all("### A [a]" in one["diff"] for one in preview_json(plan)["steps"])


def test_a_change_that_differs_or_is_short_is_shown_for_each_file() -> None:
    text = preview_text(
        would(step("A", b"", BLOCK), step("B", b"", BLOCK + b"more\n"), step("C", b"", b"x\n"))
    )
    assert text.count("### A [a]") == 2
    assert "the same" not in preview_text(would(step("C", b"", b"x\n"), step("D", b"", b"x\n")))


def test_what_happens_to_several_files_in_the_same_words_is_one_line() -> None:
    steps = [Step("block", Path(f"/w{number}/GEMINI.md"), "will get the block") for number in (1, 2)]
    assert steps_in_words(steps) == ["/w1/GEMINI.md, /w2/GEMINI.md: will get the block"]
    assert "- /w1/GEMINI.md, /w2/GEMINI.md: will get the block" in preview_text(would(*steps))


def test_who_would_see_what_is_told_where_something_would_be_done() -> None:
    heading = "These become shared"
    assert heading in preview_text(would(step("A", b"", BLOCK), shared=("A (a.md)",)))
    assert heading not in preview_text(would(shared=("A (a.md)",)))


def test_a_notice_about_each_worktree_is_told_once() -> None:
    notices = tuple(Notice("info", "x", "Read in the root only.", Path(f"/w{n}/CLAUDE.md")) for n in (1, 2))
    assert preview_text(would(notices=notices)).count("Read in the root only.") == 1
