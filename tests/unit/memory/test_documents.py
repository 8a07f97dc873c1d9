"""Documents: whole, without frontmatter, and never with a credential."""

from __future__ import annotations

import pytest

from agent_bridge.memory.documents import parse_document
from agent_bridge.memory.fact import EmptyFact, FactProblem


def test_a_document_is_its_text() -> None:
    data = b"\xef\xbb\xbf---\nowner: us\n---\r\n# Conventions\r\n\r\n- tabs\r\n"
    assert parse_document("conventions.md", data).text == "# Conventions\n\n- tabs"


@pytest.mark.parametrize("data", [b"", b"# conventions\n", b"\n\n", b"---\na: b\n---\n# context\n"])
def test_a_heading_alone_is_nothing(data: bytes) -> None:
    with pytest.raises(EmptyFact):
        parse_document("context.md", data)


@pytest.mark.parametrize(("data", "word"), [
    (b"# x\n\nkey " + b"npm" + b"_" + b"a1" * 18, "credential"),
    (b"---\nprivate: true\n---\n# x\n\ny", "can't be private"),
    (b"\xff\xfea", "UTF-16"),
    (b"<<<<<<< a\n=======\n>>>>>>> b\n", "conflict"),
])  # fmt: skip
def test_what_must_stay_out_says_why(data: bytes, word: str) -> None:
    with pytest.raises(FactProblem, match=word):
        parse_document("context.md", data)
