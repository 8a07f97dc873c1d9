"""The ledger: what is put comes back, whoever wrote it, and damage is told."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from agent_bridge.errors import AgentBridgeError
from agent_bridge.projection.ledger import Entry, KeyRecord, Kind, Ledger, digest

FULL = Entry(
    path="/p/config.toml",
    kind=Kind.KEYS,
    first="ab",
    after="cd",
    separator="\n\n",
    directories=("/p",),
    keys=(KeyRecord(("features", "memories"), "true", "false", put_back=True), KeyRecord(("x",), None, "1")),
    format="toml",
    header="---\n",
    target="/t",
    backup="tree-1",
    known=("a.md", "b.md"),
    taken=(("old.md", "a.md", "ab"),),
)


def test_an_entry_comes_back_whole(tmp_path: Path) -> None:
    Ledger(tmp_path).put(FULL)
    assert Ledger(tmp_path).entries() == (FULL,)


def test_another_process_s_entries_are_seen(tmp_path: Path) -> None:
    one, other = Ledger(tmp_path), Ledger(tmp_path)
    assert one.entries() == ()
    other.put(FULL)
    assert one.get(Path(FULL.path)) == FULL
    one.put(replace(FULL, path="/p/two"))
    assert [entry.path for entry in other.entries()] == [FULL.path, "/p/two"]
    other.drop(FULL.path)
    assert [entry.path for entry in one.entries()] == ["/p/two"]


def test_the_first_bytes_are_kept_once_and_for_all(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path)
    entry = ledger.first_record(Path("/p/AGENTS.md"), Kind.BLOCK, b"theirs")
    ledger.put(entry)
    again = ledger.first_record(Path("/p/AGENTS.md"), Kind.BLOCK, b"with our block")
    assert again.first == digest(b"theirs")
    assert ledger.kept_bytes(digest(b"theirs")) == b"theirs"
    assert not again.created
    assert ledger.first_record(Path("/p/new"), Kind.OWN, None).created


def test_damage_is_told_and_stops_writing(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path)
    name = ledger.keep(b"bytes")
    (ledger.kept / name).write_bytes(b"other")
    with pytest.raises(AgentBridgeError, match="damaged"):
        ledger.kept_bytes(name)
    (ledger.kept / name).unlink()
    with pytest.raises(AgentBridgeError, match="gone"):
        ledger.kept_bytes(name)
    (tmp_path / "ledger.json").write_bytes(b'{"schema": 1, "entries": [{')
    with pytest.raises(AgentBridgeError, match="can't be read"):
        Ledger(tmp_path).entries()
