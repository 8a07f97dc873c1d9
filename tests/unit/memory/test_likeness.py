"""When a text is so much like another that it must not become a fact by itself."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_bridge.memory import similarity
from agent_bridge.memory.likeness import CONTAINED, KnownTexts, compare, containment, telling_words
from corpus.rephrased import DISTINCT, FACT, REPHRASED


def test_fifty_rephrasings_are_alike_each_to_an_earlier_one() -> None:
    known = KnownTexts()
    alone = []
    for number, text in enumerate(REPHRASED):
        if known.most_like(text) is None:
            alone.append(text)
        known.add(str(number), text)
    assert len(REPHRASED) == len(set(REPHRASED)) == 50
    assert alone == [FACT]


def test_facts_about_different_things_are_not_alike() -> None:
    known = KnownTexts()
    for number, text in enumerate(DISTINCT):
        assert known.most_like(text) is None, text
        known.add(str(number), text)


def test_jaccard_counts_before_containment() -> None:
    known = KnownTexts([("short", "staging database port"), ("same", f"{FACT} Really.")])
    found = known.most_like(FACT)
    assert found is not None
    assert (found.key, found.measure) == ("same", "jaccard")
    assert found.score == similarity.jaccard(similarity.words(FACT), similarity.words(f"{FACT} Really."))


def test_a_short_text_within_a_long_one_is_alike_by_containment() -> None:
    long = (
        "Everything about our environments: the staging database runs on port 5433, the one of production "
        "on another; both are backed up nightly, and nobody may log in without a hardware key."
    )
    found = KnownTexts([("long", long)]).most_like(FACT)
    assert found is not None
    assert (found.measure, found.score) == ("containment", 1.0)
    assert "5 of the 5 telling words" in found.why
    assert "staging" in found.why


@pytest.mark.parametrize(
    ("one", "other", "word"),
    [
        ("Always push to main.", "Never push to main.", "never"),
        ("Push to main on Fridays.", "Do not push to main on Fridays.", "not"),
        ("You can use the network in tests.", "You can't, don't use the network in tests.", "don"),
    ],
)
def test_a_negation_in_only_one_of_them_is_told(one: str, other: str, word: str) -> None:
    found = KnownTexts([("fact", one)]).most_like(other)
    assert found is not None
    assert f"only one of them has {word!r}" in found.why
    both = KnownTexts([("fact", other)]).most_like(f"{other} Please.")
    assert both is not None
    assert "opposite" not in both.why


@pytest.mark.parametrize("text", ["", "!!", "the of and", "never"])
def test_texts_without_telling_words_are_contained_in_nothing(text: str) -> None:
    assert containment(telling_words(text), telling_words(FACT)) == 0.0
    assert KnownTexts([("fact", FACT)]).most_like(text) is None


def test_two_shared_words_are_too_few_unless_one_is_a_long_number() -> None:
    assert containment(telling_words("staging database"), telling_words(FACT)) == 0.0
    assert containment(telling_words("staging 5433"), telling_words(FACT)) == 1.0


def test_what_is_compared_with_one_text_is_told_whether_alike_or_not() -> None:
    score, why = compare("Use tabs.", "Never run on Fridays.")
    assert score == 0.0
    assert "share 0 of 6 words" in why


_TEXTS = st.lists(
    st.sampled_from(
        ["port", "5433", "staging", "database", "use", "the", "never", "tests", "run", "on", "db"]
    ),
    max_size=8,
)


@given(_TEXTS.map(" ".join), st.lists(_TEXTS.map(" ".join), max_size=6))
def test_the_index_finds_what_comparing_with_each_finds(text: str, others: list[str]) -> None:
    found = KnownTexts((str(at), other) for at, other in enumerate(others)).most_like(text)
    mine = similarity.words(text)
    figures = [similarity.jaccard(mine, similarity.words(other)) for other in others]
    contained = [containment(telling_words(text), telling_words(other)) for other in others]
    if max(figures, default=0.0) >= similarity.THRESHOLD:
        assert found is not None
        assert (found.measure, found.score) == ("jaccard", max(figures))
    elif max(contained, default=0.0) >= CONTAINED:
        assert found is not None
        assert (found.measure, found.score) == ("containment", max(contained))
    else:
        assert found is None


def test_the_second_measure_can_be_left_out() -> None:
    texts = [("long", f"The tide service listens on port 7312. {' '.join(f'w{n}' for n in range(40))}")]
    text = "Tide service: port 7312."
    assert (found := KnownTexts(texts).most_like(text)) is not None
    assert found.measure == "containment"
    assert KnownTexts(texts, contained=False).most_like(text) is None
    assert KnownTexts([("x", text)], contained=False).most_like("tide service port 7312") is not None
