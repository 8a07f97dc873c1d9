"""Equality and likeness of texts."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_bridge.memory.similarity import jaccard, most_similar, normalise, text_hash, words


@pytest.mark.parametrize(("one", "other", "equal"), [
    ("Use uv.", " Use\n\tuv. \r\n", True),
    ("caf\u00e9", "cafe\u0301", True),
    ("Use uv.", "use uv.", False),
    ("x²", "x2", False),
])  # fmt: skip
def test_equality(one: str, other: str, equal: bool) -> None:
    assert (normalise(one) == normalise(other)) is equal
    assert (text_hash(one) == text_hash(other)) is equal


def test_white_space_has_no_hash() -> None:
    assert text_hash(" \n") == ""


@pytest.mark.parametrize(("one", "other", "score"), [
    ("use port 4999", "use port 5000", 0.5),
    ("Always use uv", "never use uv", 0.5),
    ("snake_case", "case snake", 1.0),
    ("ＦＵＬＬ width", "full WIDTH", 1.0),
    ("Straße", "STRASSE", 1.0),
    ("", "", 0.0),
    ("...", "!!!", 0.0),
    ("a b", "c d", 0.0),
])  # fmt: skip
def test_the_figure(one: str, other: str, score: float) -> None:
    assert jaccard(words(one), words(other)) == score


@given(st.text(), st.text())
def test_the_figure_is_symmetric_and_between_0_and_1(one: str, other: str) -> None:
    score = jaccard(words(one), words(other))
    assert 0 <= score <= 1
    assert score == jaccard(words(other), words(one))


def test_the_most_similar_come_first_and_say_why() -> None:
    found = most_similar(
        "use port 5000 now", [("a", "use port 4999 now"), ("b", "now use port 5000"), ("c", "something else")]
    )
    assert [(key, score) for key, score, _ in found] == [("b", 1.0), ("a", 0.6)]
    assert found[0][2] == "share 4 of 4 words (5000, now, port, use); only their order differs"
    assert found[1][2] == "share 3 of 5 words (now, port, use); differ in 4999, 5000"


def test_the_threshold_counts_itself() -> None:
    assert most_similar("use port 4999", [("a", "use port 5000")])
    assert not most_similar("use port 4999", [("a", "use port 5000")], threshold=0.51)


def test_half_a_surrogate_pair_has_a_hash_too() -> None:
    assert text_hash("broken \ud83d text") != text_hash("broken text")
