"""`review`: a person's word on texts that were found, and that it holds."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from .conftest import Program

NORTH = "The harbour is in the north of the town."
SOUTH = "The harbour is in the south of the town."
TOKEN = "ghp_" + "a1B2" * 9


@pytest.fixture
def waiting(program: Program, sealed_home: Path) -> Program:
    """A set-up project with a fact, and two texts of CLAUDE.md that wait, each like the fact."""
    (sealed_home / ".claude").mkdir()
    (program.cwd / "CLAUDE.md").write_text(f"- {SOUTH}\n- In the south the harbour of the town is.\n")
    for words in (("add", "."), ("commit", "-qm", "start")):
        subprocess.run(["git", *words], cwd=program.cwd, check=True)
    assert program("init", "--yes").code == 0
    assert program("add", NORTH).code == 0
    assert program("sync", "--from", "claude", "--apply").code == 4
    return program


def _list(program: Program) -> dict[str, dict[str, Any]]:
    return {one["text"]: one for one in program("review", "--json").json["data"]["candidates"]}


def _facts(program: Program) -> list[dict[str, Any]]:
    facts = program("list", "--json").json["data"]["facts"]
    assert isinstance(facts, list)
    return facts


def test_the_list_and_what_is_shown_of_one(waiting: Program) -> None:
    found = _list(waiting)[SOUTH]
    known = _facts(waiting)[0]["id"]
    assert (found["origin"], found["source"], found["similar"]) == ("CLAUDE.md", "claude-code", known)
    assert found["found_at"]
    shown = waiting("review", "show", found["id"][:6])
    assert shown.code == 0
    for part in (
        f"[{found['id']}] CLAUDE.md",
        "differ in north, south",
        known,
        "0.75",
        f"-{NORTH}",
        f"+{SOUTH}",
    ):
        assert part in shown.out
    data = waiting("review", "--json", "show", found["id"]).json["data"]
    assert data["fact"] == {"id": known, "text": NORTH}
    assert data["candidate"] == found


def test_accepting_makes_a_fact_with_its_source_and_origin(waiting: Program) -> None:
    found = _list(waiting)[SOUTH]
    ran = waiting(
        "review", "accept", found["id"], "--tag", "town", "--type", "reference", "--title", "South", "--json"
    )
    fact = ran.json["data"]["fact"]
    assert (fact["source"], fact["tags"], fact["type"], fact["title"]) == (
        "claude-code",
        ["town"],
        "reference",
        "South",
    )
    assert "origin: CLAUDE.md" in Path(fact["file"]).read_text()
    assert SOUTH not in _list(waiting)
    assert len(_list(waiting)) == 1
    assert len(_facts(waiting)) == 2


def test_accepting_what_is_remembered_already_says_so_and_drops_it(waiting: Program) -> None:
    same = waiting.id_of(SOUTH)
    ran = waiting("review", "accept", _list(waiting)[SOUTH]["id"], "--json")
    assert ran.code == 0
    assert ran.json["data"] == {"fact": None, "duplicate": same}
    assert SOUTH not in _list(waiting)
    assert len(_facts(waiting)) == 2


def test_accepting_into_the_global_memory(waiting: Program) -> None:
    assert waiting("review", "accept", _list(waiting)[SOUTH]["id"], "--scope", "global").code == 0
    assert [fact["scope"] for fact in _facts(waiting)] == ["project", "global"]


@pytest.mark.parametrize(
    ("words", "body"),
    [
        (("--replace",), SOUTH),
        (("--append",), f"{NORTH}\n\n{SOUTH}"),
    ],
)
def test_merging_changes_the_fact_and_keeps_its_former_file(
    waiting: Program, words: tuple[str, ...], body: str
) -> None:
    known = _facts(waiting)[0]
    data = waiting("review", "merge", _list(waiting)[SOUTH]["id"], known["id"], *words, "--json").json["data"]
    assert waiting("show", known["id"], "--json").json["data"]["body"] == body
    assert NORTH in Path(data["kept"]).read_text()
    assert SOUTH not in _list(waiting)
    found = waiting("sync", "--from", "claude", "--apply", "--json").json["data"]["findings"]
    assert [one["outcome"] for one in found if one["text"] == SOUTH] == ["skipped"]
    assert SOUTH not in _list(waiting)


def test_merging_without_a_terminal_says_how(waiting: Program) -> None:
    known = _facts(waiting)[0]
    ran = waiting("review", "merge", _list(waiting)[SOUTH]["id"], known["id"])
    assert ran.code == 2
    assert "--replace or --append" in ran.err
    assert SOUTH in _list(waiting)
    assert waiting("show", known["id"], "--json").json["data"]["body"] == NORTH


def test_merging_goes_into_the_fact_that_it_resembles_unless_another_is_named(waiting: Program) -> None:
    other = waiting.id_of("Bread is sold at dawn.")
    first, second = _list(waiting).values()
    assert waiting("review", "merge", first["id"], "--replace").code == 0
    assert waiting("review", "merge", second["id"], other, "--append").code == 0
    bodies = [waiting("show", fact["id"], "--json").json["data"]["body"] for fact in _facts(waiting)]
    assert set(bodies) == {first["text"], f"Bread is sold at dawn.\n\n{second['text']}"}


def test_a_rejected_text_does_not_come_back(waiting: Program) -> None:
    first, second = _list(waiting).values()
    data = waiting("review", "reject", first["id"], first["id"], second["id"], "--json").json["data"]
    assert data["rejected"] == [first["id"], second["id"]]
    assert first["text"] in Path(data["kept"][0]).read_text()
    ran = waiting("sync", "--from", "claude", "--apply", "--json")
    assert ran.code == 0
    assert [(one["outcome"], one["why"]) for one in ran.json["data"]["findings"]] == [
        ("skipped", "rejected before")
    ] * 2
    assert _list(waiting) == {}
    assert len(_facts(waiting)) == 1


def test_a_rejected_text_that_is_written_into_a_block_does_not_come_back(waiting: Program) -> None:
    assert waiting("review", "reject", "--all", "--yes").code == 0
    file = waiting.cwd / "CLAUDE.md"
    assert NORTH in file.read_text()
    file.write_text(file.read_text().replace(NORTH, f"{NORTH}\n\n{SOUTH}\n\nSomething else."))
    assert waiting("sync").code == 0
    assert [text.strip() for text in _list(waiting)] != []
    assert SOUTH not in _list(waiting)


def test_rejecting_all_asks_first(waiting: Program) -> None:
    assert waiting("review", "reject", "--all").code == 2
    assert len(_list(waiting)) == 2
    assert waiting("review", "reject", "--all", "--yes").code == 0
    assert _list(waiting) == {}


def test_an_id_that_fits_none_or_several(waiting: Program) -> None:
    assert waiting("review", "show", "zzzz").code == 1
    known = next(iter(_list(waiting).values()))["id"]
    directory = Path(_list(waiting)[SOUTH]["file"]).parent
    (directory / f"{known[:8]}00000000.md").write_text("Another.\n")
    assert waiting("review", "show", known[:8]).code == 2
    assert waiting("review", "show", known).code == 0


def test_what_is_one_persons_is_private_and_goes_into_no_shared_fact(waiting: Program) -> None:
    (waiting.cwd / "CLAUDE.local.md").write_text("- The harbour is in the east of the town.\n")
    assert waiting("sync", "--from", "claude", "--apply").code == 4
    found = _list(waiting)["The harbour is in the east of the town."]
    assert found["private"] is True
    assert waiting("review", "merge", found["id"], "--append").code == 4
    fact = waiting("review", "accept", found["id"], "--json").json["data"]["fact"]
    assert fact["private"] is True


def test_what_is_like_a_private_fact_is_accepted_as_private(waiting: Program) -> None:
    known = _facts(waiting)[0]["id"]
    assert waiting("unshare", known, "--yes").code == 0
    fact = waiting("review", "accept", _list(waiting)[SOUTH]["id"], "--json").json["data"]["fact"]
    assert fact["private"] is True
    assert (waiting.cwd / "CLAUDE.md").read_text().count(SOUTH) == 1, "the user's own line"


def test_what_is_like_a_private_fact_goes_into_no_shared_one_nor_once_that_is_gone(waiting: Program) -> None:
    known = _facts(waiting)[0]["id"]
    assert waiting("unshare", known, "--yes").code == 0
    assert waiting("add", "Bread is baked at five.").code == 0
    (shared,) = [fact["id"] for fact in _facts(waiting) if fact["id"] != known]
    candidate = _list(waiting)[SOUTH]["id"]
    assert waiting("review", "merge", candidate, shared, "--append").code == 4
    assert waiting("rm", known, "--yes").code == 0
    assert waiting("review", "merge", candidate, shared, "--append").code == 4
    fact = waiting("review", "accept", candidate, "--json").json["data"]["fact"]
    assert fact["private"] is True


def test_what_came_by_a_private_import_goes_into_no_shared_fact(waiting: Program, sealed_home: Path) -> None:
    text = "The harbour is in the west of the town."
    (sealed_home / "notes").mkdir()
    (sealed_home / "notes" / "a.md").write_text(f"{text}\n")
    notes = str(sealed_home / "notes")
    assert waiting("import", notes, "--as", "markdown", "--private").code == 4
    found = _list(waiting)[text]
    assert found["private"] is True
    assert waiting("review", "merge", found["id"], "--append").code == 4
    fact = waiting("review", "accept", found["id"], "--json").json["data"]["fact"]
    assert fact["private"] is True


def test_a_secret_is_shown_nowhere_and_no_copy_is_kept(waiting: Program) -> None:
    (waiting.cwd / "CLAUDE.md").write_text(f"- The harbour of the town is north, in the key {TOKEN}.\n")
    assert waiting("sync", "--from", "claude", "--apply").code == 4
    (found,) = [one for one in _list(waiting).values() if "GitHub token" in one["text"]]
    for words in (("review",), ("review", "show", found["id"]), ("review", "--json")):
        assert TOKEN not in waiting(*words).out
        assert TOKEN[5:20] not in waiting(*words).out
    assert waiting("review", "reject", found["id"], "--json").json["data"]["kept"] == []


def test_ids_are_completed(waiting: Program) -> None:
    known = _list(waiting)[SOUTH]["id"]
    env = {
        **os.environ,
        "_AGENT_BRIDGE_COMPLETE": "complete_zsh",
        "_TYPER_COMPLETE_ARGS": "agent-bridge review show ",
    }
    ran = waiting(env=env)
    assert known in ran.out
