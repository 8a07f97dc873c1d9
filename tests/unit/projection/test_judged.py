"""What is remembered of decisions: by text, whoever wrote it last, and of a damaged file nothing."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from agent_bridge.projection import judged
from agent_bridge.projection.judged import Judged, Verdict

NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)
AT = "2026-11-30T12:00:00.000Z"


def _verdicts(state: Path) -> list[Judged]:
    return list(judged.load(state).values())


def test_the_latest_verdict_on_a_text_counts(tmp_path: Path) -> None:
    judged.record(tmp_path, ["Be  kind."], Verdict.ADDED, now=NOW, fact_id="x")
    assert _verdicts(tmp_path) == [Judged(Verdict.ADDED, "x", AT)]
    assert not judged.is_rejected(tmp_path, "Be kind.")
    judged.record(tmp_path, ["Be kind."], Verdict.REJECTED, now=NOW)
    assert _verdicts(tmp_path) == [Judged(Verdict.REJECTED, "", AT)]
    assert judged.is_rejected(tmp_path, "Be kind.\n")


def test_many_verdicts_are_one_writing(tmp_path: Path) -> None:
    judged.record_all(
        tmp_path, {"one": Judged(Verdict.ADDED, "a", AT), " \n": Judged(Verdict.ADDED, "b", AT)}
    )
    first = judged.judged_file(tmp_path).stat()
    assert _verdicts(tmp_path) == [Judged(Verdict.ADDED, "a", AT)]
    judged.record_all(
        tmp_path, {"one": Judged(Verdict.ADDED, "c", AT)}
    )  # the same verdict: nothing is written
    judged.record_all(tmp_path, {})
    assert judged.judged_file(tmp_path).stat().st_ino == first.st_ino
    assert _verdicts(tmp_path) == [Judged(Verdict.ADDED, "a", AT)]


def test_what_another_process_wrote_counts_at_once(tmp_path: Path) -> None:
    judged.record(tmp_path, ["one"], Verdict.ADDED, now=NOW, fact_id="aa")
    assert not judged.is_rejected(tmp_path, "one")
    file = judged.judged_file(tmp_path)
    other = file.with_name("other")
    other.write_bytes(file.read_bytes().replace(b'"added"', b'"rejected"'))
    other.replace(file)
    assert judged.is_rejected(tmp_path, "one")
    file.unlink()
    assert _verdicts(tmp_path) == []


@pytest.mark.parametrize(
    "damaged",
    [b"", b"\xff", b"[]", b'{"texts": 3}', b'{"texts": {"k": {"verdict": "liked"}}}', b"[" * 100_000],
    ids=["empty", "no UTF-8", "a list", "a number", "unknown", "deep"],
)
def test_of_a_damaged_file_none_count_and_it_is_written_anew(tmp_path: Path, damaged: bytes) -> None:
    judged.judged_file(tmp_path).write_bytes(damaged)
    assert _verdicts(tmp_path) == []
    judged.record(tmp_path, ["one"], Verdict.MERGED, now=NOW, fact_id="x")
    assert _verdicts(tmp_path) == [Judged(Verdict.MERGED, "x", AT)]
