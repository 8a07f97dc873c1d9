"""Normal forms: Unicode's own for every text, and bounded for those that nobody writes."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_bridge.memory import search, similarity
from agent_bridge.memory.canonical import Form, canonical

FORMS: tuple[Form, ...] = ("NFC", "NFKC", "NFKD")
MARKS = "\u0301\u0316\u0323\u0315"


@given(form=st.sampled_from(FORMS), text=st.text(max_size=60))
def test_it_is_unicodes_form(form: Form, text: str) -> None:
    assert canonical(form, text) == unicodedata.normalize(form, text)


@pytest.mark.parametrize("form", FORMS)
def test_thirty_marks_are_still_sorted_together(form: Form) -> None:
    text = "e" + (MARKS * 8)[:30] + "x"

    assert canonical(form, text) == unicodedata.normalize(form, text)


@given(st.text(alphabet=MARKS + "a", max_size=200))
def test_no_mark_is_lost(text: str) -> None:
    decomposed = canonical("NFKD", text).replace("\u034f", "")

    assert sorted(decomposed) == sorted(text)


# Sorting a million marks in one run would take a day; the time limit of a test would end it.
@pytest.mark.timeout(60)
def test_a_text_of_marks_alone_is_compared_and_searched_in_time() -> None:
    text = "a" + MARKS * 250_000

    assert similarity.text_hash(text) == similarity.text_hash(text + " ")
    assert similarity.words(text)
    assert search.fold(text) == search.fold(text)
