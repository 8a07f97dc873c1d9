"""Each row was shown to Claude Code 2.1.332 and its request was read."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_bridge.harnesses.claude_imports import imports, resolve


@pytest.mark.parametrize(
    "text",
    [
        "@AGENTS.md",
        "see @AGENTS.md for more",
        "**@AGENTS.md**",
        "| a | @AGENTS.md |",
        "# @AGENTS.md",
        "> @AGENTS.md",
        "- @AGENTS.md",
        "<b>@AGENTS.md</b>",
        "<!-- x --> @AGENTS.md",
        "@AGENTS.md#x",
        "intro\r\n@AGENTS.md\r\n",
        "<!-- start -->\n- @AGENTS.md\n<!-- end -->",
        "- item\n\n    @AGENTS.md",
        "a ` lonely tick\n@AGENTS.md",
    ],
)
def test_these_import_agents_md(text: str) -> None:
    assert imports(f"Title\n\n{text}\n") == ("AGENTS.md",)


@pytest.mark.parametrize(
    "text",
    [
        "x <!-- @AGENTS.md --> y",
        "    @AGENTS.md",
        "`@AGENTS.md`",
        "`` a ` @AGENTS.md ``",
        "a `b\n@AGENTS.md c` d",
        "[x](@AGENTS.md)",
        "(@AGENTS.md)",
        '@"AGENTS.md"',
        "x@AGENTS.md",
        "\\@AGENTS.md",
        "<div>\n@AGENTS.md\n</div>",
        "~~~\n@AGENTS.md\n~~~",
        "````\n```\n@AGENTS.md\n````",
        "```\n@AGENTS.md",
        "<!--\n@AGENTS.md\n-->",
        "@@AGENTS.md",
        "",
    ],
)
def test_these_import_nothing(text: str) -> None:
    assert imports(f"Title\n\n{text}\n") == ()


def test_punctuation_belongs_to_the_path_and_escaped_blanks_to_the_name() -> None:
    assert imports("@AGENTS.md, @AGENTS.md. @a\\ b.md") == ("AGENTS.md,", "AGENTS.md.", "a b.md")


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("AGENTS.md", "/r/docs/AGENTS.md"),
        ("./AGENTS.md", "/r/docs/AGENTS.md"),
        ("sub/../../AGENTS.md", "/r/AGENTS.md"),
        ("~/x.md", "/home/u/x.md"),
        ("/abs/x.md", "/abs/x.md"),
    ],
)
def test_paths_are_relative_to_the_importing_file(written: str, expected: str) -> None:
    assert resolve(written, Path("/r/docs/CLAUDE.md"), Path("/home/u")) == Path(expected)


@given(st.text(alphabet="@AGENTS.md`~<!-> \n*#[]()\\|\t", max_size=400))
def test_any_text_is_parsed_and_gives_plain_paths(text: str) -> None:
    for path in imports(text):
        assert path
        assert "\n" not in path


@pytest.mark.parametrize("unit", ["`", "`` ` ", "<!--\n", "<!-- ", "@", "* ", "<a ", "```\n", "\\ ", "@a "])
def test_hostile_texts_take_linear_time(unit: str) -> None:
    text = unit * (400_000 // len(unit))
    started = time.process_time()
    imports(text)
    assert time.process_time() - started < 5
