"""`--json` on every verb: one envelope with the verb's name, its exit code, and nothing else on stdout."""

from __future__ import annotations

import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
import typer

from agent_bridge.cli.app import _application

from .conftest import Program

FACT = "FACT"
"""Stands for the id of a fact that is there."""

TEXT = "TEXT"
"""Stands for the id of a text that waits for review."""

_GROUPS = ("service", "opencode", "mcp", "review", "agents", "registry")


@dataclass(frozen=True)
class Case:
    """Words after the program's name, the exit code, and the code of the error if there is one."""

    words: tuple[str, ...]
    code: int = 0
    error: str = ""

    @property
    def verb(self) -> str:
        """What the envelope calls it."""
        return " ".join(self.words[: 2 if self.words[0] in _GROUPS else 1])


CASES = (
    Case(("init", "--yes")),
    Case(("init",), 2, "usage"),
    Case(("init", "--dry-run")),
    Case(("plan",)),
    Case(("sync",)),
    Case(("sync", "--to", "claude")),
    Case(("sync", "--to", "codex")),
    Case(("sync", "--to", "all")),
    Case(("eject", "--yes")),
    Case(("eject",), 2, "usage"),
    Case(("harnesses",)),
    Case(("review",)),
    Case(("review", "show", TEXT)),
    Case(("review", "show", "nothing"), 1, "not_found"),
    Case(("review", "accept", TEXT)),
    Case(("review", "merge", TEXT, FACT, "--append")),
    Case(("review", "merge", TEXT, FACT, "--replace", "--append"), 2, "usage"),
    Case(("review", "reject", TEXT)),
    Case(("review", "reject", "--all", "--yes")),
    Case(("review", "reject"), 2, "usage"),
    Case(("sync", "--from", "codex", "--apply")),
    Case(("sync", "--apply"), 2, "usage"),
    Case(("add", "Another one.")),
    Case(("add", "The harbour is north."), 1, "duplicate"),
    Case(("edit", FACT, "--text", "The harbour is south.")),
    Case(("edit", "nothing", "--text", "x"), 1, "not_found"),
    Case(("rm", FACT, "--yes")),
    Case(("rm", FACT), 2, "usage"),
    Case(("forget", FACT, "--yes")),
    Case(("search", "harbour")),
    Case(("list",)),
    Case(("show", FACT)),
    Case(("show", "nothing"), 1, "not_found"),
    Case(("explain",)),
    Case(("explain", "claude")),
    Case(("explain", "nobody"), 2, "usage"),
    Case(("history", FACT)),
    Case(("history", "nothing"), 1, "not_found"),
    Case(("share", FACT)),
    Case(("unshare", FACT, "--yes")),
    Case(("import", "nowhere"), 1, "not_found"),
    Case(("import", "AGENTS.md", "--as", "markdown")),
    Case(("opencode", "install-plugin")),
    Case(("opencode", "install-plugin", "--global", "--project", "."), 2, "usage"),
    Case(("opencode", "remove-plugin")),
    Case(("opencode", "status")),
    Case(("opencode", "context")),
    Case(("mcp", "config")),
    Case(("mcp", "config", "--global")),
    Case(("mcp", "config", "--client", "nobody"), 2, "usage"),
    Case(("mcp", "config", "--client", "gemini", "--write", "--yes"), 1, "not_found"),
    Case(("mcp", "config", "--write", "--yes")),
    Case(("mcp", "status"), 3),
    Case(("mcp", "server")),
    Case(("agents",), 3, "not_running"),
    Case(("agents", "health"), 3, "not_running"),
    Case(("send", "somebody", "Is it green?"), 3, "not_running"),
    Case(("inbox",), 3, "not_running"),
    Case(("inbox", "--all", "--expired"), 2, "usage"),
    Case(("reply", "something", "It is."), 3, "not_running"),
    Case(("conversations",), 3, "not_running"),
    Case(("tail",), 3, "not_running"),
    Case(("prune",), 3, "not_running"),
    Case(("registry", "start")),
    Case(("registry", "stop")),
    Case(("registry", "status"), 3, "not_running"),
    Case(("status",), 3),
    Case(("status", "--memory")),
    Case(("up",)),
    Case(("down",)),
    Case(("logs",)),
    Case(("service", "run", "--quiet-ms", "-1"), 2, "config"),
    Case(("service", "install"), 1, "no_manager"),
    Case(("service", "uninstall"), 1, "no_manager"),
    Case(("service", "start")),
    Case(("service", "stop")),
    Case(("service", "restart")),
    Case(("service", "status"), 3),
    Case(("service", "logs")),
)


@pytest.fixture
def alone(program: Program, sealed_home: Path, monkeypatch: pytest.MonkeyPatch) -> Program:
    """A set-up project with one fact, on a machine without a service manager."""
    bare = program.cwd.parent / "bin"
    bare.mkdir()
    git = shutil.which("git")
    assert git is not None
    (bare / "git").symlink_to(git)
    monkeypatch.setenv("PATH", str(bare))
    for name in (".claude", ".codex"):
        (sealed_home / name).mkdir()
    (program.cwd / "AGENTS.md").write_text("Be kind.\n")
    for words in (("add", "."), ("commit", "-qm", "start")):
        subprocess.run(["git", *words], cwd=program.cwd, check=True)
    assert program("init", "--yes").code == 0
    return program


@pytest.mark.skipif(sys.platform != "linux", reason="a Mac always has a service manager")
@pytest.mark.parametrize("case", CASES, ids=lambda case: " ".join(case.words))
def test_the_envelope_and_the_exit_code(alone: Program, case: Case) -> None:
    ids = {FACT: alone.id_of("The harbour is north.")}
    if case.words[0] == "review":
        ids[TEXT] = _waiting(alone)
    try:
        ran = alone(*(ids.get(word, word) for word in case.words), "--json")
    finally:
        if case.words[0] == "up" or case.words[-1] in ("start", "restart", "server"):
            alone("down")
    document = ran.json  # the five keys, schema 1, and nothing on stderr
    assert ran.code == case.code, document
    assert document["command"] == case.verb
    assert [error["code"] for error in document["errors"]] == ([case.error] if case.error else [])
    assert all(error["title"] for error in document["errors"])
    assert (document["data"] is not None) is (not case.error)
    assert all(set(message) == {"level", "text"} for message in document["messages"])


def _waiting(alone: Program) -> str:
    """Write a text into a block, have it found, and return its id."""
    agents = alone.cwd / "AGENTS.md"
    agents.write_text(agents.read_text().replace("harbour is north.", "harbour is north.\n\nShips wait.", 1))
    assert alone("sync").code == 0
    (found,) = alone("review", "--json").json["data"]["candidates"]
    assert isinstance(found["id"], str)
    return found["id"]


def test_no_verb_is_left_out() -> None:
    said = {case.verb for case in CASES}

    # `mcp start` prints no envelope: its standard output belongs to the protocol.
    assert said | {"mcp start"} == set(_verbs(typer.main.get_command(_application([]).app)))
    assert "mcp start" not in said


def _verbs(group: object, prefix: str = "") -> list[str]:
    found: list[str] = []
    for name, command in getattr(group, "commands", {}).items():
        title = f"{prefix} {name}".strip()
        below = _verbs(command, title)
        found += below
        if not below or getattr(command, "invoke_without_command", False):
            found.append(title)
    return found


@pytest.mark.parametrize("words", [("add", "x"), ("sync",), ("service", "run"), ("up",)], ids=" ".join)
def test_a_bad_setting_in_the_file_is_found_from_the_message(
    alone: Program, sealed_home: Path, words: tuple[str, ...]
) -> None:
    file = sealed_home / ".config/agent-bridge/config.toml"
    file.parent.mkdir(parents=True)
    file.write_text('# mine\n\nquiet_ms = "soon"\n')
    ran = alone(*words)
    assert ran.code == 2
    assert [part for part in ("quiet_ms", "'soon'", f"{file}, line 3") if part not in ran.err] == []
