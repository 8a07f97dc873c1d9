"""What adding knows of a store's texts: the same as a look at all of them would find."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_bridge.memory.fact import Fact
from agent_bridge.memory.finding import similar_facts
from agent_bridge.memory.similarity import text_hash
from agent_bridge.memory.texts import INDEXED_FROM, Texts

NOW = datetime(2026, 3, 4, tzinfo=UTC)
WORDS = st.lists(st.sampled_from(["port", "uses", "make", "test", "never", "tab", "zsh"]), max_size=8).map(
    " ".join
)


def fact(path: str, body: str, fact_id: str = "") -> Fact:
    return Fact(path, fact_id or path.removesuffix(".md"), "Title", "", body, text_hash=text_hash(body))


def indexed(threshold: float = 0.5) -> Texts:
    """One that has made its index, which it then has to keep."""
    texts = Texts(threshold)
    for _ in range(INDEXED_FROM):
        texts.alike("warm up")
    return texts


@given(
    st.lists(st.lists(WORDS, max_size=8), min_size=1, max_size=4),
    WORDS,
    st.sampled_from([0.0, 0.3, 0.5, 0.75, 1.0]),
    st.booleans(),
)
def test_it_finds_what_a_look_at_all_finds_however_the_store_changed(
    looks: list[list[str]], text: str, threshold: float, is_indexed: bool
) -> None:
    texts = indexed(threshold) if is_indexed else Texts(threshold)
    for bodies in looks:
        facts = [fact(f"{number}.md", body) for number, body in enumerate(bodies)]
        texts.follow(facts)
        wanted = sorted(similar_facts(facts, text, threshold=threshold), key=lambda one: one.fact.id)
        found = sorted(texts.alike(text), key=lambda one: one.fact.id)
        assert found == wanted
        holder = texts.holder(text_hash(text))
        assert (holder is not None) is any(one.text_hash == text_hash(text) for one in facts)


def test_the_most_alike_come_first() -> None:
    texts = Texts(0.5)
    texts.follow([fact("a.md", "use port 4999 now"), fact("b.md", "now use port 5000"), fact("c.md", "else")])
    assert [one.fact.id for one in texts.alike("use port 5000 now")] == ["b", "a"]


@pytest.mark.parametrize("texts", [Texts(0.5), indexed()], ids=["compared", "indexed"])
def test_what_is_added_edited_and_removed_is_known(texts: Texts) -> None:
    one, two = fact("one.md", "Tabs are four wide."), fact("two.md", "Tabs are four wide.")
    texts.follow([one])
    texts.add(two)
    assert [each.fact.id for each in texts.alike("tabs are four wide")] == ["one", "two"]
    texts.follow([two])
    assert texts.holder(two.text_hash) == "two"
    texts.follow([replace(two, id="renamed")])
    assert texts.holder(two.text_hash) == "renamed"
    texts.follow([fact("two.md", "Something else by now.")])
    assert texts.holder(two.text_hash) is None
    assert texts.alike("tabs are four wide") == []
    assert texts.alike("something else by now")
    texts.follow([])
    assert texts.alike("something else by now") == []


def test_numbers_are_those_of_the_day_of_facts_and_of_files_that_are_none() -> None:
    texts = Texts(0.5)
    assert texts.next_number(NOW) == 1
    texts.follow([
        fact("entries/20260304-0007-a-xxxx.md", "a", "20260304-0003-a-xxxx"),
        fact("entries/20260303-0099-b-xxxx.md", "b"),
    ])  # fmt: skip
    assert texts.next_number(NOW) == 8
    assert texts.next_number(NOW, ["20260304-0041-broken.md", "20260303-0500-c.md", "notes.md"]) == 42
    assert texts.next_number(NOW.replace(day=3)) == 100
