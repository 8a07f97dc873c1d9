"""Gemini CLI's private notes, cut into facts."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from agent_bridge.harnesses.gemini_notes import Note, index, note

INDEX = """# Private memory

- Run `make lint` before a commit.
- The test database listens on 5433,
  since 5432 is taken.
  - Start it by hand.
- [Releases](releases.md): how to cut one

The laptop has no GPU.
<!-- - not this -->

## Tools

1. Use `uv`.
"""


def test_the_index_has_a_fact_an_item_and_no_pointers() -> None:
    assert index(INDEX, ["releases.md"]) == [
        Note("Run `make lint` before a commit."),
        Note("The test database listens on 5433,\nsince 5432 is taken.\n- Start it by hand."),
        Note("The laptop has no GPU.", "Private memory"),
        Note("Use `uv`."),
    ]


def test_a_pointer_to_a_note_that_is_gone_is_a_fact() -> None:
    assert "[Releases](releases.md): how to cut one" in [one.text for one in index(INDEX)]


def test_a_note_has_a_fact_a_section() -> None:
    steps = "1. Tag.\n2. Push.\n\n```\n## no heading\n```"
    text = f"---\nx: y\n---\n# Releases\n\nIntro.\n\n## Cut\n\n{steps}\n\n## Empty\n"
    assert note(text) == [
        Note("Intro.", "Releases"),
        Note(steps, "Cut"),
    ]


@given(st.text(alphabet=st.sampled_from("-*1. a\n\t`~#<>!@["), max_size=200))
def test_nothing_fails_and_no_fact_is_empty(text: str) -> None:
    assert all(one.text and one.text == one.text.strip() for one in index(text) + note(text))


@given(st.text(alphabet=st.sampled_from("-*1. a\n\t"), max_size=200).filter(lambda text: "---" not in text))
def test_no_word_is_lost(text: str) -> None:
    for parse in (index, note):
        assert sum(one.text.count("a") for one in parse(text)) == text.count("a")
