"""`harnesses`: what is known of each agent program, and what holds in this project."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from .conftest import Program

GOLDEN = Path(__file__).resolve().parents[2] / "corpus" / "harnesses.json"


@pytest.fixture(autouse=True)
def only_git(short_tmp: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine whose only program is Git."""
    bare = short_tmp / "bin"
    bare.mkdir()
    (bare / "git").symlink_to(str(shutil.which("git")))
    monkeypatch.setenv("PATH", str(bare))


def listed(program: Program, *words: str) -> dict[str, dict[str, Any]]:
    ran = program("harnesses", "--json", *words)
    assert ran.code == 0, ran.out
    return {one["name"]: one for one in ran.json["data"]["harnesses"]}


def test_the_json_is_as_it_was(program: Program) -> None:
    """Written anew by hand where a row changes: `agent-bridge harnesses --json`, its list alone."""
    found = list(listed(program).values())

    assert found == json.loads(GOLDEN.read_text())


def test_what_is_used_here_and_by_which_file(program: Program, sealed_home: Path) -> None:
    (sealed_home / ".config/zed").mkdir(parents=True)
    (sealed_home / ".cursor").mkdir()
    (program.cwd / ".kiro").mkdir()
    (program.cwd / ".rules").write_text("Theirs.\n")

    found = listed(program)

    assert (found["cursor"]["in_use"], found["cursor"]["reached_by"]) == (True, ["AGENTS.md"])
    assert (found["zed"]["in_use"], found["zed"]["reached_by"]) == (True, [".rules"])
    assert (found["kiro"]["in_use"], found["kiro"]["files_here"]) == (False, True)
    assert (found["amp"]["in_use"], found["amp"]["files_here"], found["amp"]["reached_by"]) == (
        False,
        False,
        [],
    )


def test_a_request_shows(program: Program) -> None:
    assert program("init", "--yes").code == 0
    assert program("sync", "--to", "amazon-q").code == 0

    found = listed(program)

    assert (found["amazon-q"]["asked_for"], found["amazon-q"]["in_use"]) == (True, True)
    assert found["amazon-q"]["reached_by"] == [".amazonq/rules/agent-bridge.md"]
    assert program("sync", "--not-to", "amazon-q").code == 0
    assert not listed(program)["amazon-q"]["asked_for"]


def test_what_a_person_should_know_stands_below(program: Program, sealed_home: Path) -> None:
    (sealed_home / ".aider").mkdir()

    ran = program("harnesses")

    assert "aider | yes | (AGENTS.md, once .aider.conf.yml names it)" in ran.out
    assert "read: AGENTS.md" in ran.err


def test_it_answers_in_the_home_too(program: Program, sealed_home: Path) -> None:
    (sealed_home / ".cursor").mkdir()

    ran = program("harnesses", "--json", "--project", str(sealed_home))

    assert ran.code == 0, ran.out
    assert ran.json["data"]["project"] is None
    used = [one["name"] for one in ran.json["data"]["harnesses"] if one["in_use"]]
    assert used == ["cursor"]


def test_nothing_is_written(program: Program, sealed_home: Path) -> None:
    before = sorted(program.cwd.rglob("*")), sorted(sealed_home.rglob("*"))

    listed(program)

    assert (sorted(program.cwd.rglob("*")), sorted(sealed_home.rglob("*"))) == before
