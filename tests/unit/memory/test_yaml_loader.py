"""Frontmatter is read by hand or by libyaml, never by the loader written in Python."""

from __future__ import annotations

import pytest
import yaml

from agent_bridge.memory import frontmatter
from agent_bridge.memory.fact import parse_fact

NEEDS_LIBYAML = """\
name: "a \\"quoted\\" name"
description: >
  over two
  lines
tags:
  - one
  - two
metadata: {type: feedback, pinned: true}
"""


@pytest.fixture
def no_python_loader(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever has the Python reader take in a text, or its scanner go on, fails."""

    def refuse(*_: object) -> None:
        raise AssertionError("the YAML loader written in Python was used")

    monkeypatch.setattr(yaml.reader.Reader, "__init__", refuse)
    monkeypatch.setattr(yaml.scanner.Scanner, "fetch_more_tokens", refuse)


@pytest.mark.usefixtures("no_python_loader")
def test_the_guard_notices_the_python_loader() -> None:
    with pytest.raises(AssertionError, match="in Python"):
        yaml.safe_load("a: b")


@pytest.mark.usefixtures("no_python_loader")
def test_what_is_not_plain_goes_to_libyaml() -> None:
    assert frontmatter.fast_mapping(NEEDS_LIBYAML) is None
    fact = parse_fact("a.md", f"---\n{NEEDS_LIBYAML}---\n\nA text.\n".encode())
    assert (fact.name, fact.description) == ('a "quoted" name', "over two lines")
    assert (fact.tags, fact.type, fact.pinned) == (("one", "two"), "feedback", True)


@pytest.mark.usefixtures("no_python_loader")
def test_broken_yaml_is_refused_without_it() -> None:
    with pytest.raises(frontmatter.FactProblem, match="not valid YAML"):
        parse_fact("a.md", b"---\nname: [a\n---\n\nA text.\n")
