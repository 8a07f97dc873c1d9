"""A fact can't make Claude Code import a file: `@path` outside code is defused."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_bridge.harnesses import claude_imports
from agent_bridge.harnesses.markdown import safe_body, safe_line


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("@AGENTS.md", "\\@AGENTS.md"),
        ("See @./docs/x.md and @~/y.", "See \\@./docs/x.md and \\@~/y."),
        ("mail me@example.org", "mail me@example.org"),
        ("`npm i @scope/pkg`", "`npm i @scope/pkg`"),
        ("```\n@AGENTS.md\n```", "```\n@AGENTS.md\n```"),
        ("a ` b\n` @AGENTS.md `c", "a ` b\n` \\@AGENTS.md `c"),
        ("**@AGENTS.md**", "**\\@AGENTS.md**"),
        ("already \\@AGENTS.md", "already \\@AGENTS.md"),
    ],
)
def test_what_would_be_imported_is_defused(text: str, shown: str) -> None:
    assert safe_body(text) == shown


@given(st.text(alphabet=st.sampled_from("@AGENTS.md/~ \n`*-#>\\<!\t1."), max_size=60))
def test_no_text_imports_anything(text: str) -> None:
    assert claude_imports.imports(safe_body(text)) == ()
    assert claude_imports.imports(safe_line(text)) == ()


@given(st.text(max_size=80))
def test_defusing_twice_changes_nothing_more(text: str) -> None:
    once = safe_body(text)
    assert claude_imports.imports(once) == ()
