"""When a text is so much like another that it must not become a fact by itself."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_bridge.memory import similarity
from agent_bridge.memory.likeness import CONTAINED, KnownTexts, compare, containment, telling_words

FACT = "The staging database runs on port 5433."

REPHRASED = (
    FACT,
    "Port 5433 is used by the staging database.",
    "Connect to the staging database via port 5433.",
    "For staging, the database port is 5433.",
    "Our staging Postgres is reachable on 5433.",
    "Staging DB listens at 5433.",
    "The database in staging listens on 5433, not on 5432.",
    "Use 5433 when you talk to the staging database.",
    "In staging the database is on port 5433.",
    "Remember: staging database port = 5433.",
    "The port of the staging database is 5433.",
    "Staging: database on port 5433",
    "On staging, connect to the DB through port 5433.",
    "5433 is the port on which the staging database is served.",
    "When working with staging, point the database client to port 5433.",
    "The staging DB's port is 5433.",
    "Staging's database can be reached at port 5433.",
    "If you need the staging database, it is on port 5433.",
    "Postgres for staging runs on port 5433.",
    "We run the staging database on port 5433.",
    "The staging environment's database is bound to port 5433.",
    "Set the port to 5433 for the staging database.",
    "Database connections for staging go to port 5433.",
    "Always connect to staging's database on port 5433.",
    "Note that the staging database uses a non-standard port, 5433.",
    "Staging database: port 5433 (not the default).",
    "The database server for staging is listening on port 5433.",
    "Access the staging database using port 5433.",
    "Point your client at port 5433 to reach the staging database.",
    "Port for the staging database: 5433.",
    "Tests against staging need database port 5433.",
    "You will find the staging database on port 5433.",
    "The staging instance of the database is exposed on port 5433.",
    "Make sure to use port 5433 for the staging database.",
    "Never use 5432 for staging; the database runs on 5433.",
    "Don't forget: the staging database is at port 5433.",
    "The staging database isn't on 5432 but on 5433.",
    "The user said the staging database runs on port 5433.",
    "It turned out that the staging database runs on port 5433.",
    "Staging's Postgres port is 5433.",
    "Staging database lives on port 5433.",
    "To query the staging database, use port 5433.",
    "psql to staging goes through port 5433 of the database host.",
    "The DB of staging: 5433.",
    "Database host for staging exposes 5433.",
    "5433 = staging database",
    "staging db port 5433",
    "The port that our staging database listens to is 5433.",
    "Staging traffic to the database passes port 5433.",
    "Database port in the staging environment: 5433.",
)
"""Fifty ways to say one thing."""

DISTINCT = (
    "Use pnpm, never npm.",
    "Run the tests with pytest -q.",
    "Run the linter with ruff before each commit.",
    "Deploy the docs with make docs.",
    "API keys live in .env.local.",
    "API tests live in tests/api.",
    "The production database is backed up every night at 02:00.",
    "Staging data is anonymised every night.",
    "Use tabs in Go files.",
    "Use spaces in Python files.",
    "Commit messages are in English and imperative.",
    "Don't commit generated files.",
    "Don't edit files under vendor/.",
    "Prefer small functions.",
    "Prefer early returns over nested ifs.",
    "Dates are stored in UTC.",
    "Dates are shown in the user's time zone.",
    "Redis is used for caching only.",
    "Redis runs on port 6380 in development.",
    "Releases are tagged from main by the release workflow.",
    "The main branch is protected; open a pull request.",
    "Tests must not use the network.",
    "Slow tests are marked with @slow.",
    "The worker retries failed jobs five times.",
    "The worker reads jobs from the queue named default.",
)


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
