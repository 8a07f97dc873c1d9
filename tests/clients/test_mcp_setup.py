"""What `init` sets for MCP, as the real Claude Code and Codex understand it, and `eject` after they wrote."""

from __future__ import annotations

import json
import sysconfig
import tomllib
from collections.abc import Mapping
from pathlib import Path

import pytest

from agent_bridge.harnesses import mcp_command
from clients.rig.anthropic import FakeAnthropic
from clients.rig.claude import Claude
from clients.rig.codex import Codex
from clients.rig.product import Product
from clients.rig.script import Script
from clients.rig.sealed import base_environment, run_sealed

pytestmark = pytest.mark.timeout(300)


def run(program: Path, home: Path, cwd: Path, *words: str, env: Mapping[str, str] | None = None) -> str:
    """What one command of a client prints; our program is on PATH and starts no service."""
    scripts = sysconfig.get_path("scripts")
    environment = base_environment(home) | {"AGENT_BRIDGE_NO_AUTO": "1"} | dict(env or {})
    environment["PATH"] = f"{scripts}:{environment['PATH']}"
    outcome = run_sealed(
        lambda _: [str(program), *words], lambda _: environment, cwd=cwd, model=FakeAnthropic(Script(()))
    )
    assert outcome.exit_code == 0, outcome.summary()
    return outcome.stdout


def listed_by_claude(claude: Claude, root: Path) -> str:
    quiet = {"DISABLE_TELEMETRY": "1", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1"}
    lines = run(claude.program, claude.home, root, "mcp", "list", env=quiet).splitlines()
    return next((line for line in lines if line.startswith("agent-bridge:")), "")


def test_claude_starts_the_server_unasked_where_its_user_trusts_the_project(
    claude: Claude, product: Product, git_repo: Path
) -> None:
    trust = {"projects": {str(git_repo): {"hasTrustDialogAccepted": True}}}
    (claude.home / ".claude.json").write_text(json.dumps(trust))
    product.init(git_repo, mcp=True)

    assert "Connected" in listed_by_claude(claude, git_repo)

    settings = git_repo / ".claude/settings.local.json"
    unapproved = json.loads(settings.read_text())
    unapproved["enabledMcpjsonServers"].remove(mcp_command.SERVER)
    settings.write_text(json.dumps(unapproved))
    assert "Pending approval" in listed_by_claude(claude, git_repo)


def test_codex_has_the_server_with_its_variables_and_may_write_its_settings_anew(
    codex: Codex, product: Product, git_repo: Path
) -> None:
    place = codex.home / ".codex/config.toml"
    place.write_text('# Mine.\nmodel = "gpt-5"\n\n[mcp_servers.tickets]\ncommand = "tickets-mcp" # ask\n')
    product.run("init", "--yes", "--mcp", cwd=git_repo)

    listed = json.loads(run(codex.program, codex.home, git_repo, "mcp", "list", "--json"))
    (entry,) = [server for server in listed if server["name"] == mcp_command.SERVER]
    assert entry["enabled"]
    assert Path(entry["transport"]["command"]).name == mcp_command.NAME
    assert entry["transport"]["env_vars"] == list(mcp_command.ENVIRONMENT)

    run(codex.program, codex.home, git_repo, "mcp", "add", "other", "--", "foo", "bar")
    assert "# ask" not in place.read_text()  # it has written all of these tables anew
    run(codex.program, codex.home, git_repo, "mcp", "remove", "tickets")
    product.run("eject", "--yes", cwd=git_repo)

    assert place.read_text().startswith('# Mine.\nmodel = "gpt-5"\n')
    assert tomllib.loads(place.read_text()) == {
        "model": "gpt-5",
        "mcp_servers": {"other": {"command": "foo", "args": ["bar"]}},
    }
