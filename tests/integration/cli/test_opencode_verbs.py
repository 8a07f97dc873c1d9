"""`opencode …` as a person types it, and what the plugin asks for."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from .conftest import Program

SHARED = "Ships leave on Tuesdays."
PRIVATE = "The keeper sleeps until noon."


@pytest.fixture
def harbour(program: Program, sealed_home: Path) -> Program:
    """A set-up project, used with OpenCode, with a shared and a private fact; AGENTS.md is tracked."""
    (sealed_home / ".config/opencode").mkdir(parents=True)
    (program.cwd / "AGENTS.md").write_text("Be kind.\n")
    for words in (("add", "."), ("commit", "-qm", "start")):
        subprocess.run(["git", *words], cwd=program.cwd, check=True)
    assert program("init", "--yes").code == 0
    assert program("add", SHARED).code == program("add", "--private", PRIVATE).code == 0
    return program


def _context(program: Program, *words: str) -> dict[str, Any]:
    ran = program("opencode", "context", "--json", *words)
    assert ran.code == 0, ran.out
    data = ran.json["data"]
    assert isinstance(data, dict)
    return data


def test_a_session_is_told_what_agents_md_does_not_say(harbour: Program) -> None:
    assert SHARED in (harbour.cwd / "AGENTS.md").read_text()
    text = _context(harbour)["text"]
    assert (PRIVATE in text, SHARED in text) == (True, False)

    (harbour.cwd / "AGENTS.md").unlink()
    text = _context(harbour)["text"]
    assert (PRIVATE in text, SHARED in text) == (True, True)


def test_what_a_nested_file_hides_is_no_reason_to_tell_twice(harbour: Program) -> None:
    below = harbour.cwd / "deep"
    below.mkdir()
    (below / "AGENTS.md").write_text("Deep.\n")
    text = _context(harbour, "--project", str(below))["text"]
    assert (PRIVATE in text, SHARED in text) == (True, False)


def test_a_worktree_is_told_the_projects_memory(harbour: Program, short_tmp: Path) -> None:
    side = short_tmp / "side"
    subprocess.run(["git", "worktree", "add", "-q", "-b", "side", str(side)], cwd=harbour.cwd, check=True)
    text = _context(harbour, "--project", str(side))["text"]
    assert (PRIVATE in text, SHARED in text) == (True, True), "its AGENTS.md has no block yet"
    assert harbour("sync").code == 0
    text = _context(harbour, "--project", str(side))["text"]
    assert (PRIVATE in text, SHARED in text) == (True, False)


def test_a_secret_is_told_to_nobody(harbour: Program) -> None:
    key = "AKIA" + "QZ7RTY2WPLM4XN5V"
    assert harbour("add", f"The key is {key}.").code == 0
    assert key not in _context(harbour)["text"]


def test_the_memory_of_all_projects_is_told_where_no_file_brings_it(
    harbour: Program, sealed_home: Path
) -> None:
    everywhere = "Speak plainly everywhere."
    assert harbour("add", "--scope", "global", everywhere).code == 0
    shown = [path for path in sealed_home.rglob("*.md") if ".local" not in path.parts]
    brings = any(everywhere in path.read_text() for path in shown)
    assert (everywhere in _context(harbour)["text"]) is not brings
    for path in shown:
        path.unlink()
    assert everywhere in _context(harbour)["text"]


def test_a_directory_that_is_no_project_is_told_nothing(harbour: Program, short_tmp: Path) -> None:
    plain = short_tmp / "plain"
    plain.mkdir()
    assert _context(harbour, "--project", str(plain))["text"] == ""
    assert list(plain.iterdir()) == []
    assert Program(plain)("opencode", "install-plugin", "--json").json["errors"][0]["code"] == "not_found"
    assert list(plain.iterdir()) == []


def test_the_plugin_comes_and_goes(harbour: Program, sealed_home: Path) -> None:
    user = sealed_home / ".config/opencode"
    assert _states(harbour) == {"global": "absent", "project": "absent"}

    assert harbour("opencode", "install-plugin").code == 0

    assert _states(harbour) == {"global": "absent", "project": "current"}
    assert (user / "package-lock.json").exists()
    status = subprocess.run(
        ["git", "status", "--porcelain", "-uall"], cwd=harbour.cwd, capture_output=True, text=True, check=True
    ).stdout
    assert "opencode" not in status
    assert harbour("opencode", "install-plugin").out.startswith("Up to date")
    assert harbour("opencode", "remove-plugin").code == 0
    assert not (harbour.cwd / ".opencode").exists()
    assert [place.name for place in user.iterdir()] == ["skills"]
    assert ".opencode" not in (harbour.cwd / ".git/info/exclude").read_text()


def test_what_both_places_need_goes_with_the_last_one(harbour: Program, sealed_home: Path) -> None:
    lock = sealed_home / ".config/opencode/package-lock.json"
    for words in (("install-plugin",), ("install-plugin", "--global"), ("remove-plugin", "--global")):
        assert harbour("opencode", *words).code == 0
    assert _states(harbour) == {"global": "absent", "project": "current"}
    assert lock.exists()
    assert harbour("opencode", "remove-plugin").code == 0
    assert not lock.exists()


def test_installing_names_every_file_that_it_makes(harbour: Program, sealed_home: Path) -> None:
    ran = harbour("opencode", "install-plugin")
    for lock in (harbour.cwd / ".opencode", sealed_home / ".config/opencode"):
        assert (lock / "package-lock.json").is_file()
        assert str(lock / "package-lock.json") in ran.err
    assert "package-lock.json" not in harbour("opencode", "install-plugin").err


def test_a_file_of_that_name_is_left_and_told(harbour: Program, sealed_home: Path) -> None:
    file = harbour.cwd / ".opencode/plugins/agent-bridge.js"
    file.parent.mkdir(parents=True)
    file.write_text("// mine\n")
    ran = harbour("opencode", "install-plugin", "--json")
    assert ran.code == 4
    assert str(file) in str(ran.json["errors"])
    assert file.read_text() == "// mine\n"
    assert [it.name for it in (sealed_home / ".config/opencode").iterdir()] == ["skills"], "what init made"


@pytest.mark.parametrize(("option", "value"), [("--source", "a b"), ("--source", ""), ("--session", "x\ny")])
def test_an_origin_that_could_break_the_frontmatter_is_refused(
    harbour: Program, option: str, value: str
) -> None:
    assert harbour("add", "Another one.", f"{option}={value}").code == 2
    assert harbour("add", "Another one.", "--source=opencode", "--session=ses_1", "--json").code == 0


def _states(program: Program) -> dict[str, str]:
    plugins = program("opencode", "status", "--json").json["data"]["plugins"]
    return {one["scope"]: one["state"] for one in plugins}


def test_a_session_is_answered_without_the_parser_of_the_command_line(harbour: Program) -> None:
    code = (
        "import sys; from agent_bridge.cli import entry; "
        f"sys.argv = ['agent-bridge', 'opencode', 'context', '--json', '--project', {str(harbour.cwd)!r}]; "
        "entry.main(); print(*sorted({'typer', 'asyncio', 'pydantic_settings'} & set(sys.modules)))"
    )
    ran = Program(harbour.cwd, (sys.executable, "-c", code))()
    assert PRIVATE in ran.out
    assert ran.out.splitlines()[-1] == ""


def test_a_directory_that_is_gone_is_told_as_an_error(harbour: Program, short_tmp: Path) -> None:
    ran = harbour("opencode", "context", "--json", "--project", str(short_tmp / "gone"))
    assert (ran.code, ran.json["errors"][0]["code"]) == (2, "usage")
