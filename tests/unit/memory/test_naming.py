"""Ids and file names of facts."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_bridge.memory.naming import fact_id_for, next_number, safe_stem, slug_for

NOW = datetime(2026, 3, 4, 5, 6, 7, 89_000, tzinfo=UTC)


@pytest.mark.parametrize(("text", "slug"), [
    ("Use port 5000!", "use-port-5000"),
    ("Größe über Ærø, façade", "grosse-uber-aero-facade"),
    ("日本語", "memory"),
    ("", "memory"),
    ("a" * 60, "a" * 48),
    ("x " * 60, ("x-" * 24).rstrip("-")),
])  # fmt: skip
def test_slugs_fold_accents(text: str, slug: str) -> None:
    assert slug_for(text) == slug


def test_no_word_of_a_secret_text_is_in_its_name() -> None:
    assert fact_id_for("token hunter", 3, NOW, is_secret=True).startswith("20260304-0003-memory-")


def test_ids_differ_between_branches() -> None:
    one, other = fact_id_for("Use port 5000", 3, NOW), fact_id_for("Use port 5001", 3, NOW)
    assert one.startswith("20260304-0003-use-port-5000-")
    assert one[-4:] != other[-4:]
    assert fact_id_for("Use  port 5000\n", 3, NOW) == one


@pytest.mark.parametrize(("taken", "number"), [
    ([], 1),
    (["20260304-0001-a-0000.md", "20260304-0007-b", "20260303-0099-c", "notes"], 8),
    (["20260304-9999-a", "20260304-12345-b"], 12346),
])  # fmt: skip
def test_the_next_number_is_above_all_of_the_day(taken: list[str], number: int) -> None:
    assert next_number(taken, NOW) == number


@given(st.text(max_size=40), st.text(max_size=20))
def test_a_name_never_leads_out_or_hides(name: str, body: str) -> None:
    parts = f"{safe_stem(name, body)}.md".split("/")
    assert all(part and not part.startswith(".") for part in parts)
    assert parts[-1] != "MEMORY.md"


@pytest.mark.parametrize("name", ["caf\udce9.md", "a\u2028b.md", "\x85.md", "tab\there.md"])
def test_a_name_that_cannot_be_shown_is_made_one_that_can(name: str) -> None:
    stem = safe_stem(name, "text")
    assert stem.isprintable()
    assert "_" in stem
