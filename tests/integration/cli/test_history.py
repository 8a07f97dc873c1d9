"""`history`: where a fact came from, what Git and our state know of it; it changes nothing."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

from .conftest import Program

TEXT = "The harbour master answers on channel twelve."


def _git(root: Path, *words: str) -> None:
    subprocess.run(["git", "-C", str(root), *words], check=True, capture_output=True)


def _told(program: Program, *words: str) -> dict[str, Any]:
    data: dict[str, Any] = program("history", *words, "--json").json["data"]
    return data


def test_a_fact_that_a_person_added(remembering: Program) -> None:
    fact = remembering.id_of(TEXT)

    data = _told(remembering, fact)

    assert data["fact"]["source"] == "cli"
    assert data["fact"]["created_at"].endswith("Z")
    assert (data["session"], data["taken_from"], data["tracked"], data["commits"]) == (None, None, False, [])
    assert data["privacy"].startswith("shared")
    shown = remembering("history", fact).out
    assert fact in shown
    assert "cli" in shown
    assert all(len(line) <= 200 for line in shown.splitlines())


def test_session_and_origin_of_a_fact_of_claudes(remembering: Program) -> None:
    head = "---\nname: channel\nmetadata:\n  originSessionId: 0b9c-session\n  origin: notes/old.md\n---\n"
    (remembering.cwd / ".memory/channel.md").write_text(f"{head}{TEXT}\n")

    data = _told(remembering, "channel")

    assert data["session"] == "0b9c-session"
    assert data["taken_from"] == "notes/old.md"
    assert "0b9c-session" in remembering("history", "channel").out


def test_the_commits_that_touched_the_file_renames_included(remembering: Program) -> None:
    root = remembering.cwd
    old, new = root / ".memory/old-name.md", root / ".memory/new-name.md"
    old.write_text(f"{TEXT}\n")
    _git(root, "add", "-f", str(old))
    _git(root, "commit", "-qm", "Learn the channel")
    _git(root, "mv", str(old), str(new))
    _git(root, "commit", "-qm", "A better name")
    (root / "other.txt").write_text("x")
    _git(root, "add", "other.txt")
    _git(root, "commit", "-qm", "Something else")

    data = _told(remembering, "new-name")

    assert data["tracked"]
    assert [one["subject"] for one in data["commits"]] == ["A better name", "Learn the channel"]
    assert data["commits"][0]["author"] == "Test"
    assert "Learn the channel" in remembering("history", "new-name").out


def test_why_a_fact_is_private(remembering: Program) -> None:
    marked = remembering.id_of("Only for me.", "--private")
    assert "its file says so" in _told(remembering, marked)["privacy"]
    path = next((remembering.cwd / ".memory/entries").glob("*.md"))
    path.write_text("".join(line for line in path.read_text().splitlines(True) if "private" not in line))
    judged = _told(remembering, marked)["privacy"]
    assert "judged private before" in judged
    assert "its text" in judged


def test_a_removed_fact_is_told_with_the_copy_of_its_file(remembering: Program) -> None:
    fact = remembering.id_of(TEXT)
    assert remembering("forget", fact, "--yes").code == 0

    data = _told(remembering, fact)

    assert data["removed"]
    [copy] = data["copies"]
    assert TEXT in Path(copy["path"]).read_text()
    assert copy["path"] in remembering("history", fact).out
    assert remembering("history", "never-heard-of").code == 1


def test_an_added_again_fact_tells_that_it_was_removed_before(remembering: Program) -> None:
    (remembering.cwd / ".memory/channel.md").write_text(f"{TEXT}\n")
    remembering("forget", "channel", "--yes")
    (remembering.cwd / ".memory/channel.md").write_text(f"{TEXT}\n")

    data = _told(remembering, "channel")

    assert [one["text"] for one in data["events"]] == ["its text was rejected"]
    assert [one["why"] for one in data["copies"]] == ["the fact was removed"]


def test_a_secret_is_not_told(remembering: Program) -> None:
    secret = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    fact = remembering.id_of(f"The token is {secret}")

    ran = remembering("history", fact)

    assert secret not in ran.out + ran.err
    assert "seems to hold a secret" in ran.out
