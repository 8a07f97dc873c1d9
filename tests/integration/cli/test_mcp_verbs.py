"""`mcp config`, `mcp status`, `mcp server`: what clients need, written alone, respected, and undone."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agent_bridge import paths

from .conftest import Program

HOMES = (".claude", ".codex", ".config/opencode", ".gemini/antigravity-cli")
CLIENTS = ["claude-code", "codex", "opencode", "gemini", "antigravity"]
OURS = {"command": "agent-bridge-mcp", "args": []}


@pytest.fixture
def harbour(program: Program, sealed_home: Path, monkeypatch: pytest.MonkeyPatch) -> Program:
    """A project where nothing is set up, used with every client; our programs are on PATH."""
    for name in HOMES:
        (sealed_home / name).mkdir(parents=True)
    (program.cwd / "AGENTS.md").write_text("Be kind.\n")
    for words in (("add", "."), ("commit", "-qm", "start")):
        subprocess.run(["git", *words], cwd=program.cwd, check=True)
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    return program


@pytest.fixture
def without(harbour: Program) -> Program:
    """The same, set up without MCP."""
    assert harbour("init", "--yes", "--no-mcp").code == 0
    return harbour


def _entries(program: Program, *words: str, code: int = 0) -> list[dict[str, Any]]:
    ran = program("mcp", "config", *words, "--json")
    assert ran.code == code, ran.out
    found = ran.json["data"]["entries"]
    assert isinstance(found, list)
    return found


def _states(entries: list[dict[str, Any]]) -> dict[str, str]:
    return {f"{entry['client']} {Path(entry['path']).name}": entry["state"] for entry in entries}


def _tree(*tops: Path) -> dict[str, bytes]:
    """Every file but Git's own and our state."""
    return {
        str(path): path.read_bytes()
        for top in tops
        for path in top.rglob("*")
        if path.is_file() and not {".git", ".local", ".cache"} & set(path.parts)
    }


def test_it_prints_each_clients_entry_and_writes_nothing(harbour: Program, sealed_home: Path) -> None:
    before = _tree(harbour.cwd, sealed_home)

    entries = _entries(harbour)

    assert list(dict.fromkeys(entry["client"] for entry in entries)) == CLIENTS
    assert set(_states(entries).values()) == {"missing"}
    text = {Path(entry["path"]).name: entry["entry"] for entry in entries}
    assert json.loads(text[".mcp.json"])["mcpServers"]["agent-bridge"]["alwaysLoad"] is True
    assert json.loads(text["settings.local.json"])["permissions"] == {"allow": ["mcp__agent-bridge"]}
    assert "CODEX_HOME" in tomllib.loads(text["config.toml"])["mcp_servers"]["agent-bridge"]["env_vars"]
    assert json.loads(text["opencode.json"])["mcp"]["agent-bridge"]["command"] == ["agent-bridge-mcp"]
    assert json.loads(text["settings.json"])["mcpServers"]["agent-bridge"] == OURS | {"trust": True}
    assert json.loads(text["mcp_config.json"])["mcpServers"]["agent-bridge"] == OURS
    assert _tree(harbour.cwd, sealed_home) == before


def test_people_see_files_and_entries(harbour: Program) -> None:
    ran = harbour("mcp", "config", "--client", "claude")

    assert ran.code == 0
    assert f"claude-code: {harbour.cwd / '.mcp.json'} (not there yet)\n{{" in ran.out
    assert "opencode" not in ran.out


def test_before_init_nothing_is_written(harbour: Program, sealed_home: Path) -> None:
    before = _tree(harbour.cwd, sealed_home)

    ran = harbour("mcp", "config", "--write", "--yes")

    assert (ran.code, "agent-bridge init" in ran.err) == (1, True)
    assert _tree(harbour.cwd, sealed_home) == before


def test_it_writes_them_alone_once_and_eject_takes_them_out(without: Program, sealed_home: Path) -> None:
    before = _tree(without.cwd, sealed_home)
    assert without("mcp", "config", "--write").code == 2, "it asks first"
    assert _tree(without.cwd, sealed_home) == before

    assert set(_states(_entries(without, "--write", "--yes")).values()) == {"set"}

    after = _tree(without.cwd, sealed_home)
    changed = {name for name in after if before.get(name) != after[name]}
    assert {Path(name).name for name in changed} == {
        ".mcp.json",
        "settings.local.json",
        "config.toml",
        "opencode.json",
        "settings.json",
        "mcp_config.json",
    }
    assert subprocess.check_output(["git", "status", "--short", "--", ".mcp.json"], cwd=without.cwd) == b""
    assert _entries(without, "--write", "--yes")
    assert _tree(without.cwd, sealed_home) == after, "twice is once"
    assert without("init", "--yes").code == 0
    now = _tree(without.cwd, sealed_home)
    assert {name: now[name] for name in changed} == {name: after[name] for name in changed}, "as by init"
    assert without("eject", "--yes").code == 0
    left = _tree(without.cwd, sealed_home)
    assert not [name for name in changed if name in left]


def test_one_client_alone(without: Program) -> None:
    entries = _entries(without, "--client", "gemini", "--write", "--yes")

    assert _states(entries) == {"gemini settings.json": "set"}
    others = {state for name, state in _states(_entries(without)).items() if not name.startswith("gemini")}
    assert others == {"missing"}


def test_a_client_that_is_not_there_is_not_written_for(program: Program, sealed_home: Path) -> None:
    (sealed_home / ".claude").mkdir()
    assert program("init", "--yes", "--no-mcp").code == 0

    ran = program("mcp", "config", "--client", "gemini", "--write", "--yes")

    assert (ran.code, "sync --to gemini" in ran.err) == (1, True)
    assert not (program.cwd / ".gemini").exists()
    assert program("mcp", "config", "--client", "gemini").code == 0, "it may be looked at"


def test_an_entry_of_the_users_own_stays(without: Program) -> None:
    mine = '{\n  "mcpServers": {"agent-bridge": {"command": "mine"}}\n}\n'
    (without.cwd / ".mcp.json").write_text(mine)

    entries = _entries(without, "--client", "claude", "--write", "--yes", code=4)

    assert _states(entries)["claude-code .mcp.json"] == "different"
    assert (without.cwd / ".mcp.json").read_text() == mine


def test_a_broken_file_stays_and_is_told_with_its_place(without: Program) -> None:
    broken = '{\n  "mcpServers": {,}\n}\n'
    (without.cwd / ".mcp.json").write_text(broken)

    ran = without("mcp", "config", "--client", "claude", "--write", "--yes", "--json")

    assert ran.code == 4
    (found,) = (one for one in ran.json["data"]["entries"] if one["path"].endswith(".mcp.json"))
    assert found["state"] == "unreadable"
    assert "line 2" in found["problem"]
    assert (without.cwd / ".mcp.json").read_text() == broken


def test_a_pipe_in_its_place_is_not_waited_for(harbour: Program) -> None:
    os.mkfifo(harbour.cwd / ".mcp.json")

    assert _states(_entries(harbour, "--client", "claude"))["claude-code .mcp.json"] == "unreadable"


def test_for_all_projects(without: Program, sealed_home: Path) -> None:
    before = _tree(sealed_home)
    settings = sealed_home / ".config/opencode/opencode.json"
    ran = without("mcp", "config", "--global", "--json")
    assert ran.code == 0
    told = [message["text"] for message in ran.json["messages"]]
    assert any("`claude mcp add --scope user agent-bridge -- agent-bridge-mcp`" in text for text in told)
    assert _tree(sealed_home) == before

    entries = _entries(without, "--global", "--write", "--yes")

    assert set(_states(entries).values()) == {"set"}
    assert [entry["client"] for entry in entries] == ["codex", "opencode", "gemini", "antigravity"]
    assert all(Path(entry["path"]).is_relative_to(sealed_home) for entry in entries)
    assert json.loads(settings.read_text())["mcp"]["agent-bridge"]["enabled"] is True
    assert not (without.cwd / "opencode.json").exists()
    assert without("eject", "--yes").code == 0
    assert {name for name in _tree(sealed_home) if name not in before} == set()


def test_for_all_projects_from_anywhere(without: Program, sealed_home: Path) -> None:
    at_home = Program(sealed_home)

    assert at_home("mcp", "config").code != 0, "the home is no project"
    entries = _entries(at_home, "--global")
    assert [entry["client"] for entry in entries] == ["codex", "opencode", "gemini", "antigravity"]
    assert set(_states(_entries(at_home, "--global", "--write", "--yes")).values()) == {"set"}


def test_for_all_projects_not_before_init(harbour: Program, sealed_home: Path) -> None:
    before = _tree(sealed_home)

    assert harbour("mcp", "config", "--global", "--write", "--yes").code == 1
    assert _tree(sealed_home) == before


def test_the_status_without_a_service(without: Program) -> None:
    ran = without("mcp", "status", "--json")

    assert ran.code == 3
    data = ran.json["data"]
    assert data["state"] == "not running"
    assert Path(data["program"]).name == "agent-bridge-mcp"
    assert data["project"] == str(without.cwd)
    assert {entry["state"] for entry in data["entries"]} == {"missing"}
    assert [data["tools"][0], data["tools"][-1], len(data["tools"])] == ["remember", "agent_bridge_guide", 11]


def test_the_status_says_that_the_program_is_not_found(
    harbour: Program, short_tmp: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bare = short_tmp / "bin"
    bare.mkdir()
    (bare / "git").symlink_to("/usr/bin/git")
    monkeypatch.setenv("PATH", str(bare))

    ran = harbour("mcp", "status")

    assert (ran.code, "not found on PATH" in ran.out) == (3, True)
    assert "isn't set up" in ran.out


@pytest.fixture
def served(harbour: Program) -> Iterator[Program]:
    """The project set up, and a service."""
    assert harbour("init", "--yes").code == 0
    ran = harbour("up")
    assert ran.code == 0, ran.err
    yield harbour
    harbour("down")


def test_the_status_and_the_address_with_a_service_and_a_client(served: Program) -> None:
    hello = {"name": "codex-mcp-client", "version": "0.171.0"}
    first = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": hello}
    lines = [
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": first},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {
            "jsonrpc": "2.0",
            "id": 2,
            "method": "tools/call",
            "params": {"name": "list_memory", "arguments": {}},
        },
    ]
    program = Path(sys.executable).with_name("agent-bridge-mcp")
    with subprocess.Popen(
        [program], cwd=served.cwd, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as shim:
        assert shim.stdin is not None
        assert shim.stdout is not None
        shim.stdin.write("".join(json.dumps(line) + "\n" for line in lines))
        shim.stdin.flush()
        answers = [json.loads(shim.stdout.readline()) for _ in range(2)]
        ran = served("mcp", "status", "--json")
        shown = served("mcp", "status")
        shim.stdin.close()
    assert [answer["id"] for answer in answers] == [1, 2]
    data = ran.json["data"]
    assert (ran.code, data["state"], data["calls"]) == (0, "ok", 1)
    (client,) = data["clients"]
    assert (client["client"], client["version"]) == ("codex-mcp-client", "0.171.0")
    assert client["project"] == str(served.cwd)
    assert {entry["state"] for entry in data["entries"]} == {"set"}
    assert "1 session connected:\n  codex-mcp-client 0.171.0" in shown.out

    ran = served("mcp", "server")

    token_file = paths.registry_token()
    token = token_file.read_text().strip()
    assert ran.code == 0
    assert stat.S_IMODE(token_file.stat().st_mode) == 0o600
    assert (str(token_file) in ran.out, token in ran.out + ran.err) == (True, False)
    assert "/mcp (streamable HTTP)" in ran.out


def test_eject_says_before_what_goes_from_files_of_all_projects(harbour: Program, sealed_home: Path) -> None:
    other = sealed_home / "other"
    subprocess.run(["git", "init", "-q", str(other)], check=True)
    for where in ((), ("--project", str(other))):
        assert harbour("init", "--yes", *where).code == 0
    users = {str(sealed_home / name) for name in (".codex/config.toml", ".claude/skills/agent-bridge")}
    told = harbour("eject", "--dry-run", "--json").json["data"]["would_undo"]
    assert not users & set(told), "they stay while another project has MCP"
    assert users <= set(harbour("eject", "--dry-run", "--all", "--json").json["data"]["would_undo"])
    harbour("init", "--yes", "--no-mcp", "--project", str(other))
    told = harbour("eject", "--dry-run", "--json").json["data"]["would_undo"]
    assert users <= set(told), "they go with the last that has it"

    undone = [one["path"] for one in harbour("eject", "--yes", "--json").json["data"]["undone"]]

    assert [path for path in undone if not any(Path(path).is_relative_to(one) for one in told)] == []
    assert str(sealed_home / ".codex/config.toml") in undone


def test_eject_removes_a_file_of_ours_in_which_opencode_named_its_schema(harbour: Program) -> None:
    file = harbour.cwd / "opencode.json"
    assert harbour("init", "--yes").code == 0
    schema = {"$schema": "https://opencode.ai/config.json"}
    file.write_text(json.dumps(schema | json.loads(file.read_text()), indent=2) + "\n")
    assert harbour("eject", "--yes").code == 0
    assert not file.exists()

    assert harbour("init", "--yes").code == 0
    file.write_text(json.dumps(schema | {"theme": "system"} | json.loads(file.read_text()), indent=2) + "\n")
    assert harbour("eject", "--yes").code == 0
    assert json.loads(file.read_text()) == schema | {"theme": "system"}
