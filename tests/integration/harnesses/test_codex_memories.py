"""Reading Codex's memories of both layouts, from databases like those of 0.171.0, and changing nothing."""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent_bridge.harnesses.codex import Codex

A, B, C = (f"0199aaaa-0000-7000-8000-00000000000{number}" for number in "abc")


def tree(home: Path) -> dict[str, tuple[int, bytes]]:
    return {
        str(path): (path.stat().st_mtime_ns, path.read_bytes())
        for path in sorted(home.rglob("*"))
        if path.is_file() and not path.name.endswith("-shm")
    } | {str(path): (0, b"") for path in home.rglob("*") if path.name.endswith("-shm")}


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def database(path: Path, statements: list[tuple[str, tuple[object, ...]]]) -> sqlite3.Connection:
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA journal_mode = wal")
    for statement, values in statements:
        connection.execute(statement, values)
    connection.commit()
    return connection


OUTPUTS = """
CREATE TABLE stage1_outputs (
    thread_id TEXT PRIMARY KEY, source_updated_at INTEGER NOT NULL, raw_memory TEXT NOT NULL,
    rollout_summary TEXT NOT NULL, rollout_slug TEXT, selected_for_phase2 INTEGER NOT NULL DEFAULT 0
)
"""
INSERT = "INSERT INTO stage1_outputs VALUES (?, 1767225600, ?, ?, NULL, ?)"


@pytest.fixture
def codex(sealed_home: Path) -> Iterator[Path]:
    """A CODEX_HOME with both layouts; its databases are open, with rows in the log only, as while it runs."""
    home = sealed_home / ".codex"
    write(
        home / "memories/MEMORY.md",
        "# Task Group: a\napplies_to: cwd=/w/a; x\n## Reusable knowledge\n- in a\n",
    )
    write(home / "memories/memory_summary.md", "v1\n## User preferences\n- everywhere\n- in a\n")
    write(home / "memories/extensions/ad_hoc/notes/2026-01-02T03-04-05-x.md", "noted")
    write(home / "memories_v2/rollout_summaries/r.md", f"thread_id: {A}\n\n## Found\nby thread\n")
    write(home / "memories_v2/rollout_summaries/s.md", f"thread_id: {C}\n\n## Found\nby rollout\n")
    write(home / "memories_v2/extensions/ad_hoc/notes/n.md", "noted")
    meta = {"type": "session_meta", "payload": {"id": C, "cwd": "/w/c"}}
    write(home / f"sessions/2026/01/02/rollout-2026-01-02T03-04-05-{C}.jsonl", json.dumps(meta) + "\n{}\n")
    write(home / "state_4.sqlite", "an older one, not even a database")
    insert = ("INSERT INTO threads VALUES (?, ?)", (A, "/w/by-thread"))
    connections = [
        database(
            home / "state_5.sqlite", [("CREATE TABLE threads (id TEXT PRIMARY KEY, cwd TEXT)", ()), insert]
        ),
        database(
            home / "memories_1.sqlite",
            [(OUTPUTS, ()), (INSERT, (B, "cwd: /w/b\n\nReusable knowledge:\n- raw\n", "s", 0))],
        ),
        database(
            home / "memories_v2_1.sqlite",
            [
                (OUTPUTS, ()),
                (INSERT, (A, "", "## S\nsummed up\n", 0)),
                (INSERT, (C, "", "## S\nold news\n", 1)),
            ],
        ),
    ]
    assert (home / "state_5.sqlite-wal").stat().st_size > 0
    yield home
    for connection in connections:
        connection.close()


def found(home: Path) -> set[tuple[str, str | None]]:
    items = Codex().native_memory({"HOME": str(home.parent)})
    return {(item.text, None if item.directory is None else str(item.directory)) for item in items}


def test_everything_is_found_once_and_placed(codex: Path) -> None:
    assert found(codex) == {
        ("in a", "/w/a"),
        ("in a", None),
        ("everywhere", None),
        ("noted", None),
        ("by thread", "/w/by-thread"),
        ("by rollout", "/w/c"),
        ("raw", "/w/b"),
        ("summed up", "/w/by-thread"),
    }
    items = Codex().native_memory({"HOME": str(codex.parent)})
    assert len(items) == 8
    created = {item.text: item.created_at for item in items}
    assert created["noted"] == "2026-01-02T03:04:05Z"
    assert created["raw"] == "2026-01-01T00:00:00Z"


def test_reading_changes_no_byte_and_leaves_nothing_behind(codex: Path) -> None:
    before = tree(codex)
    found(codex)
    assert tree(codex) == before


def test_a_directory_that_exists_is_given_by_its_real_path(sealed_home: Path) -> None:
    real = sealed_home / "my project"
    real.mkdir()
    (sealed_home / "link").symlink_to(real)
    notes = sealed_home / ".codex/memories/extensions/ad_hoc/notes"
    write(notes / "a.md", "cwd: ~/link\n\none\n")
    write(notes / "b.md", f"cwd: {real}\n\ntwo\n")
    write(notes / "c.md", f"cwd: {real} checkout\n\nthree\n")
    assert found(sealed_home / ".codex") == {("one", str(real)), ("two", str(real)), ("three", str(real))}


def test_broken_foreign_and_hostile_files_are_passed_over(codex: Path) -> None:
    notes = codex / "memories/extensions/ad_hoc/notes"
    os.mkfifo(notes / "fifo.md")
    (notes / "dir.md").mkdir()
    (notes / "out.md").symlink_to("/etc/passwd")
    (notes / "bytes.md").write_bytes(b"\xff\xfe caf\xe9 stays\r\n")
    (codex / "memories_v2/memory_summary.md").symlink_to("memory_summary.md")
    write(codex / "memories_2.sqlite", "SQLite format 3\0 broken")
    write(codex / f"sessions/2026/01/02/rollout-x-{B}.jsonl", "[1]\n")
    texts = {text for text, _ in found(codex)}
    assert {"in a", "everywhere", "noted", "summed up"} <= texts
    assert any("stays" in text for text in texts)
    assert not any("root:" in text for text in texts)


def test_no_home_no_memories(sealed_home: Path) -> None:
    assert Codex().native_memory({"HOME": str(sealed_home)}) == []
    assert not (sealed_home / ".codex").exists()
