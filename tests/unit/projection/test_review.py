"""Candidates: kept once, read back whole."""

from __future__ import annotations

import tempfile
from datetime import UTC, datetime
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from agent_bridge.projection import review

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


def test_the_same_text_is_one_candidate(tmp_path: Path) -> None:
    assert review.keep_candidate(tmp_path, "Never on Fridays.", origin="AGENTS.md", why="found", now=NOW)
    assert not review.keep_candidate(tmp_path, " Never  on Fridays.\n", origin="x", why="y", now=NOW)
    (candidate,) = review.load_candidates(tmp_path)
    assert candidate.text == "Never on Fridays."
    assert candidate.origin == "AGENTS.md"
    assert candidate.found_at == "2026-01-02T03:04:05+00:00"
    assert review.count_candidates(tmp_path) == 1


def test_what_is_no_file_is_no_candidate(tmp_path: Path) -> None:
    (review.candidates_directory(tmp_path) / "x.md").mkdir(parents=True)
    assert review.load_candidates(tmp_path) == []
    assert review.count_candidates(tmp_path) == 0


def test_nothing_is_no_candidate(tmp_path: Path) -> None:
    assert not review.keep_candidate(tmp_path, " \n", origin="x", why="y", now=NOW)
    assert review.load_candidates(tmp_path) == []


@given(st.text(alphabet=st.characters(codec="utf-8", exclude_characters="\r")), st.text())
def test_hostile_text_comes_back(text: str, origin: str) -> None:

    with tempfile.TemporaryDirectory() as directory:
        state = Path(directory)
        kept = review.keep_candidate(state, text, origin=origin, why="---\nx", now=NOW)
        assert kept == bool(text.strip())
        for candidate in review.load_candidates(state):
            assert candidate.text == text.strip("\n")


def test_half_a_surrogate_pair_is_no_obstacle(tmp_path: Path) -> None:
    assert review.keep_candidate(tmp_path, "broken \ud83d text", origin="x", why="y", now=NOW)
    assert review.load_candidates(tmp_path)[0].text == "broken ? text"
