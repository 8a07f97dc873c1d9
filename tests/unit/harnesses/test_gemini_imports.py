"""Which `@path` Gemini CLI follows; the real program is asked in tests/clients/test_gemini_facts.py."""

from __future__ import annotations

import re
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_bridge.harnesses.gemini_files import import_would_work, imports_in_block
from agent_bridge.harnesses.gemini_imports import code_regions, imports, resolve
from agent_bridge.harnesses.managed_block import around
from agent_bridge.harnesses.markdown import safe_body

BLOCK = b"<!-- agent-bridge:memory:start (managed, do not edit) -->\n%s\n<!-- agent-bridge:memory:end -->\n"

_PAIRED = re.compile(r"(`+)([\s\S]*?)\1")
"""How the program finds code; quadratic for some texts, which is why ours is another way."""


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("@AGENTS.md", ["AGENTS.md"]),
        ("see @./a.md, @../b.md\t@/c", ["./a.md,", "../b.md", "/c"]),
        ("(@a) x@a @#a @~/a @1 @", []),
        ("\\@a **@a**", []),
        ("`@a` ``x` @a`` @b", ["b"]),
        ("```\n@a\n```\n@b", ["b"]),
        ("~~~\n@a\n~~~", ["a"]),
        ("<!-- @a -->", ["a"]),
        ("it's ` stray\n```\n@a\n```", []),
        ("two `` of them\n@a\n` and one", ["a"]),
        ("@a @a", ["a", "a"]),
        ("@https://a.md @http://a @file:///etc/passwd", []),
    ],
)
def test_what_is_an_import(text: str, found: list[str]) -> None:
    assert [one.path for one in imports(text)] == found
    assert all(text[one.start :].startswith(f"@{one.path}") for one in imports(text))


@given(st.text(alphabet=st.sampled_from("`a\n "), max_size=80))
def test_code_is_found_as_the_program_finds_it(text: str) -> None:
    assert code_regions(text) == [match.span() for match in _PAIRED.finditer(text)]


def test_a_hostile_text_takes_no_time() -> None:
    text = " ".join("`" * length for length in range(1, 1400)) + " @a"
    started = time.perf_counter()
    imports(text)
    imports("` @" * 300_000)
    assert time.perf_counter() - started < 5


@given(st.text(alphabet=st.sampled_from("@AGENTS.md/~ \n`*-#>\\<!\t1."), max_size=60))
def test_prose_of_a_fact_imports_nothing(text: str) -> None:
    """Fenced code is left as it is, and inside of it the program may find what it takes for an import."""
    body = safe_body(text)
    fenced = "```" in body or "~~~" in body
    assert fenced or imports(body) == ()


@pytest.mark.parametrize(
    ("data", "works"),
    [
        (b"", True),
        (b"Mine.\n", True),
        (b"a ` b\n", True),
        (b"a ` b\n" + BLOCK % b"@x", True),
        (b"a ` b\n" + BLOCK % b"@x" + b"`c`\n", False),
        (b"```\ncode\n```\n" + BLOCK % b"@x" + b"`c`\n", True),
        (b"\xff ` \xff\n" + BLOCK % b"@x" + b"`\n", False),
    ],
)
def test_where_an_import_of_ours_works(data: bytes, works: bool) -> None:
    assert import_would_work(data, "@AGENTS.md") is works
    assert import_would_work(data, "<!-- @AGENTS.md -->") is works


def test_our_block_is_told_from_the_users_text() -> None:
    data = b"@mine.md \xff\n" + BLOCK % b"~~~\n@ours.md\n~~~" + b"@mine.md\n"
    assert imports_in_block(data) == ("ours.md",)
    own = b"\n".join(around(data)).decode("utf-8", "replace")
    assert [one.path for one in imports(own)] == ["mine.md"] * 2
    assert imports_in_block(b"@mine.md\n") == ()
    assert imports_in_block((BLOCK % b"@x") * 2) == ()  # doubled markers are told elsewhere


def test_a_path_is_relative_to_the_file_that_names_it() -> None:
    assert resolve("../a.md", Path("/p/docs")) == Path("/p/a.md")
    assert resolve("/etc/x", Path("/p")) == Path("/etc/x")
