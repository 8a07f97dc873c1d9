"""Many facts in one go: nothing overwritten, no id twice, nothing written in a dry run."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from agent_bridge.errors import LockTimeoutError
from agent_bridge.memory.fact import FactProblem, new_fact_bytes
from agent_bridge.memory.intake import Intake
from agent_bridge.memory.store import Store

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / ".memory", state=tmp_path / "state", lock_timeout_s=0.2)


def _bytes(text: str, fact_id: str = "one") -> bytes:
    return new_fact_bytes(text, fact_id=fact_id, now=NOW)


def test_what_was_put_is_known_at_once(store: Store) -> None:
    with Intake(store, threshold=0.5) as intake:
        fact = intake.put("entries/one", _bytes("The tide turns at six."))
        assert intake.duplicate_of("The  tide turns\nat six.") == fact.id == "one"
        assert intake.duplicate_of("The tide turns at seven.") == ""
        alike = intake.alike("The tide turns at seven.")
    assert alike is not None
    assert (alike.key, round(alike.score, 2)) == ("one", 0.67)
    assert [found.body for found in store.scan().facts] == ["The tide turns at six."]


def test_a_taken_name_and_a_taken_id_are_given_to_nobody_else(store: Store) -> None:
    with Intake(store, threshold=0.5) as intake:
        intake.put("entries/one", _bytes("First."))
        second = intake.put("entries/one", _bytes("Another thing."))
        third = intake.put("notes/one", _bytes("Quite different."))
    assert (store.root / "entries/one.md").read_bytes() == _bytes("First.")
    assert second.path == "entries/one.imported-1.md"
    assert len({"one", second.id, third.id}) == 3
    assert {fact.id for fact in store.scan().facts} == {"one", second.id, third.id}
    assert store.scan().problems == ()


def test_a_file_that_is_no_fact_keeps_its_name_too(store: Store) -> None:
    store.create()
    (store.root / "entries/one.md").write_bytes(b"\xff\xfe")
    with Intake(store, threshold=0.5) as intake:
        assert intake.put("entries/one", _bytes("First.")).path == "entries/one.imported-1.md"
    assert (store.root / "entries/one.md").read_bytes() == b"\xff\xfe"


def test_ids_of_a_day_go_on_where_the_store_is(store: Store) -> None:
    first = store.add("A fact.", now=NOW).fact.id
    with Intake(store, threshold=0.5) as intake:
        ids = [intake.free_id(text, NOW, is_secret=False) for text in ("x", "y")]
        assert intake.free_id("token", NOW, is_secret=True)[14:].startswith("memory-")
    assert [first[:13], *(fact_id[:13] for fact_id in ids)] == [
        "20260301-0001",
        "20260301-0002",
        "20260301-0003",
    ]


def test_a_dry_run_writes_nothing_and_says_the_same(store: Store, tmp_path: Path) -> None:
    with Intake(store, threshold=0.5, dry=True) as intake:
        fact = intake.put("entries/one", _bytes("First."))
        assert intake.duplicate_of("First.") == fact.id
        with pytest.raises(FactProblem):
            intake.put("entries/two", b"\xff\xfe")
    assert list(tmp_path.iterdir()) == []


def test_settling_passes_over_what_is_gone_by_then(store: Store) -> None:
    with Intake(store, threshold=0.5) as intake:
        intake.put("entries/one", _bytes("First."))
        (store.root / intake.put("entries/two", _bytes("Another thing.")).path).unlink()
        intake.settle()
    assert [fact.body for fact in store.scan().facts] == ["First."]


def test_the_lock_is_held_and_given_back(store: Store) -> None:
    with Intake(store, threshold=0.5), pytest.raises(LockTimeoutError):
        Store(store.root, state=store.state, lock_timeout_s=0.05).add("Meanwhile.")
    assert store.add("Afterwards.").fact.body == "Afterwards."
