"""What a merge makes of a fact, and what is remembered of decisions."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from agent_bridge.memory.fact import Fact, parse_fact
from agent_bridge.memory.similarity import text_hash
from agent_bridge.projection import judged, review, reviewing
from agent_bridge.projection.judged import Verdict
from agent_bridge.projection.review import Candidate

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


def _fact(text: str) -> Fact:
    return parse_fact("a.md", text.encode())


def _candidate(text: str) -> Candidate:
    return Candidate("abc", text, "CLAUDE.md", "", "")


@pytest.mark.parametrize(
    ("fact", "text", "replaced", "appended"),
    [
        ("North.", "South.", "South.", "North.\n\nSouth."),
        ("# Harbour\n\nNorth.", "Harbour\n\nSouth.", "# Harbour\n\nSouth.", "# Harbour\n\nNorth.\n\nSouth."),
        ("# Harbour\n\nNorth.", "South.", "South.", "# Harbour\n\nNorth.\n\nSouth."),
        ("---\nname: Harbour\n---\nNorth.", "Harbour\n\nSouth.", "South.", "North.\n\nSouth."),
        ("North.", "Harbour\n\nSouth.", "Harbour\n\nSouth.", "North.\n\nHarbour\n\nSouth."),
        ("North.", "\ufeff\n\nSouth.\r\n", "South.", "North.\n\nSouth."),
    ],
)
def test_the_text_of_a_merged_fact(fact: str, text: str, replaced: str, appended: str) -> None:
    known, found = _fact(fact), _candidate(text)
    assert reviewing.merged_text(known, found, replace=True) == replaced
    assert reviewing.merged_text(known, found, replace=False) == appended


def test_a_verdict_holds_for_the_normalised_text_and_the_latest_counts(tmp_path: Path) -> None:
    judged.record(tmp_path, ["Never  on Fridays.\n"], Verdict.MERGED, now=NOW, fact_id="x")
    assert judged.load(tmp_path)[text_hash("Never on Fridays.")].fact_id == "x"
    assert not judged.is_rejected(tmp_path, "Never on Fridays.")
    judged.record(tmp_path, ["Never on Fridays.", "Other."], Verdict.REJECTED, now=NOW)
    assert judged.is_rejected(tmp_path, "Never on  Fridays.")
    assert judged.is_rejected(tmp_path, "Other.")
    assert not judged.is_rejected(tmp_path, "never on Fridays.")
    assert "Fridays" not in judged.judged_file(tmp_path).read_text()


@pytest.mark.parametrize(
    "data", ["", "[]", "{", '{"texts": []}', '{"texts": {"x": {"verdict": "maybe"}}}', "[" * 9999]
)
def test_a_damaged_record_says_nothing_and_is_written_anew(tmp_path: Path, data: str) -> None:
    judged.judged_file(tmp_path).write_text(data)
    assert judged.load(tmp_path) == {}
    judged.record(tmp_path, ["Other."], Verdict.REJECTED, now=NOW)
    assert judged.is_rejected(tmp_path, "Other.")


def test_a_rejected_candidate_is_gone_and_kept_aside_unless_it_holds_a_secret(tmp_path: Path) -> None:
    token = "ghp_" + "a1B2" * 9
    for text in ("Never on Fridays.", f"The key is {token}."):
        assert review.keep_candidate(tmp_path, text, origin="x", why="y", now=NOW)
    kept = reviewing.reject(tmp_path, review.load_candidates(tmp_path), now=NOW)
    assert review.load_candidates(tmp_path) == []
    assert ["Never on Fridays." in path.read_text() for path in kept] == [True]
    assert not any(token in path.read_text() for path in tmp_path.rglob("*.*") if path.is_file())
    assert not review.keep_candidate(tmp_path, "Never on  Fridays.", origin="x", why="y", now=NOW)


def test_all_that_is_known_of_a_candidate_comes_back(tmp_path: Path) -> None:
    wanted = Candidate(
        id=review.candidate_id("Text."), text="Text.", origin="a: b", found_at="2026-01-02T03:04:05+00:00",
        why="it is like x", similar="x", score=0.5, source="codex", created_at="2026-01-01T00:00:00Z",
        title="On macOS", private=True,
    )  # fmt: skip
    review.keep_candidate(
        tmp_path, "Text.", origin=wanted.origin, why=wanted.why, now=NOW, similar="x", score=0.5,
        source="codex", created_at=wanted.created_at, title=wanted.title, private=True,
    )  # fmt: skip
    assert review.load_candidates(tmp_path) == [wanted]
