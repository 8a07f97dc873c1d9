"""Texts found in harnesses, sorted by what a memory says of them already."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_bridge.harnesses.base import NativeItem
from agent_bridge.memory.documents import Document
from agent_bridge.memory.fact import Fact, parse_fact
from agent_bridge.memory.similarity import text_hash
from agent_bridge.projection.judged import Judged, Verdict
from agent_bridge.projection.review import Candidate
from agent_bridge.projection.sorting import Finding, Memory, Outcome, sort_texts
from corpus.rephrased import DISTINCT, FACT, REPHRASED

NORTH = "The harbour is in the north of the town."
SOUTH = "The harbour is in the south of the town."
TOKEN = "ghp_" + "a1B2" * 9


def _fact(text: str, fact_id: str = "20260101-0001-harbour-aaaa", tags: str = "") -> Fact:
    head = f"id: {fact_id}\n" + (f"tags: [{tags}]\n" if tags else "")
    return parse_fact(f"entries/{fact_id}.md", f"---\n{head}---\n\n{text}\n".encode())


def _item(text: str, file: str = "/home/u/p/CLAUDE.md") -> NativeItem:
    return NativeItem(text, "", Path("/home/u/p"), Path(file), harness="claude-code")


def _sorted(texts: list[str], memory: Memory | None = None, threshold: float = 0.5) -> list[Finding]:
    return sort_texts(map(_item, texts), memory or Memory(), threshold=threshold)


def _outcomes(findings: list[Finding]) -> list[str]:
    return [one.outcome.value for one in findings]


def test_the_three_outcomes() -> None:
    fact = _fact(NORTH)
    same, like, new = _sorted([f"  {NORTH} ", SOUTH, "Bread is sold at dawn."], Memory((fact,)))
    assert (same.outcome, same.fact_id) == (Outcome.SKIPPED, fact.id)
    assert (like.outcome, like.fact_id, like.score) == (Outcome.CONFLICT, fact.id, 0.75)
    assert like.why == (
        f"it is like {fact.id}: they share 6 of 8 words (harbour, in, is, of, the, town); "
        "differ in north, south"
    )
    assert (new.outcome, new.fact_id, new.why) == (Outcome.NEW, "", "")


def test_case_counts_for_equality_and_not_for_likeness() -> None:
    (found,) = _sorted([NORTH.upper()], Memory((_fact(NORTH),)))
    assert (found.outcome, found.score) == (Outcome.CONFLICT, 1.0)
    assert "only their order differs" in found.why


def test_the_most_similar_fact_is_named() -> None:
    far, near = (
        _fact(f"{NORTH} Really it is.", "20260101-0001-far-aaaa"),
        _fact(NORTH, "20260101-0002-near-aaaa"),
    )
    (found,) = _sorted([SOUTH], Memory((far, near)))
    assert found.fact_id == near.id


@pytest.mark.parametrize(("threshold", "outcome"), [(0.75, "conflict"), (0.76, "new")])
def test_the_threshold_is_a_setting_and_counts_itself(threshold: float, outcome: str) -> None:
    # Words that say little, so that containment has nothing to say.
    (found,) = _sorted(["what do we do then"], Memory((_fact("what do we do"),)), threshold)
    assert _outcomes([found]) == [outcome]


def test_a_text_of_a_document_is_remembered() -> None:
    document = Document("conventions.md", "# Conventions\n\n- Use tabs.\n")
    (found,) = _sorted(["Use tabs."], Memory(documents=(document,)))
    assert (found.outcome, found.why) == (Outcome.SKIPPED, "it stands in conventions.md")


def test_texts_are_compared_with_each_other_in_reading_order() -> None:
    first, second, third = _sorted([NORTH, SOUTH, NORTH])
    assert (first.outcome, second.outcome, third.outcome) == (Outcome.NEW, Outcome.CONFLICT, Outcome.SKIPPED)
    assert second.follows == 0
    assert f"an earlier text, '{NORTH}'" in second.why
    assert third.why == "it stands in /home/u/p/CLAUDE.md too"


def test_a_chain_of_likeness_is_one_fact() -> None:
    chain = ["a b c d", "b c d e", "c d e f", "d e f g", "e f g h"]
    found = _sorted(chain)
    assert _outcomes(found) == ["new", "conflict", "conflict", "conflict", "conflict"]
    assert [one.follows for one in found] == [None, 0, 0, 0, 0]


def test_fifty_rephrasings_are_one_new_text_in_any_store() -> None:
    assert _outcomes(_sorted(list(REPHRASED))).count("new") == 1
    assert "new" not in _outcomes(_sorted(list(REPHRASED), Memory((_fact(FACT),))))
    assert _outcomes(_sorted(list(DISTINCT), Memory((_fact(FACT),)))) == ["new"] * len(DISTINCT)


def test_what_waits_for_review_is_no_new_text_nor_is_what_is_like_it() -> None:
    waiting = Candidate("abc", SOUTH, "CLAUDE.md", "", "", similar="x", score=0.75)
    same, like = _sorted([SOUTH, NORTH], Memory(waiting=(waiting,)))
    assert (same.outcome, same.fact_id, same.score) == (Outcome.CONFLICT, "x", 0.75)
    assert same.why == "it waits for review as abc"
    assert (like.outcome, like.fact_id) == (Outcome.CONFLICT, "x")


@pytest.mark.parametrize(
    ("verdict", "fact_id", "why"),
    [
        (Verdict.REJECTED, "", "rejected before"),
        (Verdict.REJECTED, "x", "x said it and was forgotten"),
        (Verdict.MERGED, "x", "merged into x before"),
        (Verdict.ADDED, "x", "taken over before; its fact was changed or removed since"),
    ],
)
def test_what_was_decided_on_is_skipped(verdict: Verdict, fact_id: str, why: str) -> None:
    judged = {text_hash(SOUTH): Judged(verdict, fact_id)}
    (found,) = _sorted([f"{SOUTH}\n"], Memory((_fact(NORTH),), judged=judged))
    assert (found.outcome, found.fact_id, found.why) == (Outcome.SKIPPED, fact_id, why)


@pytest.mark.parametrize(
    "line",
    [
        "[{id}] {text}",
        "[{id}] {text} (town, sea)",
        "[{id}] Harbour (town, sea)",
        "[{id}] Harbour (town, sea) {text}",
        "[20200101-0001-gone] Whatever.",
    ],
)
def test_our_own_lines_are_no_candidates(line: str) -> None:
    fact = _fact(f"# Harbour\n\n{NORTH}", tags="town, sea")
    plain = _fact(NORTH, "20260101-0002-plain-aaaa", tags="town, sea")
    for one in (fact, plain):
        text = line.format(id=one.id, text=one.body)
        if "Harbour" in line and one is plain:
            continue
        (found,) = _sorted([text], Memory((fact, plain)))
        assert found.outcome is Outcome.SKIPPED, text


def test_an_edited_line_of_ours_is_a_conflict_with_its_fact_however_unlike() -> None:
    fact = _fact(NORTH, tags="town")
    (found,) = _sorted([f"[{fact.id}] Bread is sold. (town)"], Memory((fact,)))
    assert (found.outcome, found.fact_id, found.item.text) == (Outcome.CONFLICT, fact.id, "Bread is sold.")
    assert found.score < 0.5
    assert "the edited line" in found.why


@pytest.mark.parametrize("text", ["[TODO] Sell bread.", "[docs](x.md) tell more.", "[x]: y"])
def test_other_brackets_are_the_texts_own(text: str) -> None:
    assert _outcomes(_sorted([text], Memory((_fact(NORTH),)))) == ["new"]


def test_no_reason_tells_a_word_of_a_secret() -> None:
    fact = _fact(f"The key of the harbour is {TOKEN} in the town.")
    texts = [
        f"The key of the harbour was {TOKEN} in the town.",
        "The key of the harbour is lost in the town.",
    ]
    for found in _sorted(texts, Memory((fact,))):
        assert found.outcome is Outcome.CONFLICT
        assert TOKEN[4:12].lower() not in found.why.lower()
        assert "secret" in found.why


_WORDS = st.lists(
    st.sampled_from(["use", "tabs", "never", "spaces", "port", "4999", "5000", "the", "in"]), max_size=5
)


@given(st.lists(_WORDS.map(" ".join), max_size=10))
def test_a_second_look_finds_nothing_new(texts: list[str]) -> None:
    first = _sorted(texts)
    added = [one.item.text for one in first if one.outcome is Outcome.NEW]
    facts = tuple(_fact(text, f"20260101-{at:04}-f-aaaa") for at, text in enumerate(added))
    assert "new" not in _outcomes(_sorted(texts, Memory(facts)))
