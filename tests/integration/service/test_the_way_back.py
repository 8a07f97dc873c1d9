"""Texts come back while the service runs: asked for by a command, or written by a harness for itself."""

from __future__ import annotations

from pathlib import Path

from .user import User, serving, write

LEARNT = "Nox runs the tests here, tox is gone since March."
NOTE = "2026-01-02T03-04-05-{}.md"


def _notes(user: User) -> Path:
    return user.home / ".codex/memories/extensions/ad_hoc/notes"


def test_what_a_command_brings_back_is_rendered_by_the_service(user: User) -> None:
    root = user.repository("project", {"AGENTS.md": "- Use tabs.\n", "CLAUDE.md": f"- {LEARNT}\n"})
    user.init(root)
    with serving(user) as served:
        told = user.run("sync", "--from", "claude", "--apply", cwd=root)["data"]
        served.until_in(root / "AGENTS.md", LEARNT)
        assert told["counts"]["new"] == 1
        again = user.run("sync", "--from", "all", "--apply", cwd=root)["data"]
        assert [one["outcome"] for one in again["findings"] if one["text"] == LEARNT] == ["skipped"]


def test_a_note_in_a_directory_that_was_not_there_is_taken_over_at_once(user: User) -> None:
    root = user.repository("project")
    (user.home / ".codex").mkdir(exist_ok=True)
    user.init(root)
    with serving(user) as served:
        _notes(user).mkdir(parents=True)
        write(_notes(user) / NOTE.format("a"), f"cwd: {root}\n\n{LEARNT}\n")
        served.until_in(root / "AGENTS.md", LEARNT)
        write(_notes(user) / NOTE.format("b"), "I like tea in the morning.\n")
        served.until_in(user.home / ".codex/AGENTS.md", "I like tea in the morning.")
        sources = {fact["source"] for fact in user.run("list", cwd=root)["data"]["facts"]}
    assert sources == {"codex"}
    assert "tea" not in (root / "AGENTS.md").read_text()


def test_what_was_rejected_stays_away_while_the_service_runs(user: User) -> None:
    root = user.repository("project")
    _notes(user).mkdir(parents=True)
    user.init(root)
    user.add(root, "The harbour is in the north of the town.")
    like = "The harbour is in the south of the town."
    with serving(user) as served:
        with served.change(root):
            write(_notes(user) / NOTE.format("a"), f"cwd: {root}\n\n{like}\n")
        (waiting,) = user.run("review", cwd=root)["data"]["candidates"]
        assert (waiting["text"], waiting["source"]) == (like, "codex")
        user.run("review", "reject", waiting["id"], cwd=root)
        write(_notes(user) / NOTE.format("b"), f"cwd: {root}\n\n{like}\n\nOnce more.\n")
        write(_notes(user) / NOTE.format("c"), f"cwd: {root}\n\n{like}\n")
        write(_notes(user) / NOTE.format("d"), f"cwd: {root}\n\n{LEARNT}\n")
        served.until_in(root / "AGENTS.md", LEARNT)
        texts = [one["text"] for one in user.run("review", cwd=root)["data"]["candidates"]]
        assert like not in texts
    assert like not in (root / "AGENTS.md").read_text()
