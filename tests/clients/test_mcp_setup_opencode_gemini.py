"""What `init` writes for OpenCode and Gemini CLI makes the real clients offer our tools to the model."""

from __future__ import annotations

import dataclasses
import json
import sysconfig
from pathlib import Path

import pytest

from agent_bridge.projection import skill
from clients.rig.gemini import Gemini
from clients.rig.opencode import OpenCode
from clients.rig.product import Product

COMMENTED = '{\n  // mine\n  "ui": {"theme": "GitHub"}\n}\n'


@pytest.fixture
def environment() -> dict[str, str]:
    """Our program is on PATH, and starts no service."""
    scripts = sysconfig.get_path("scripts")
    return {"PATH": f"{scripts}:/usr/local/bin:/usr/bin:/bin", "AGENT_BRIDGE_NO_AUTO": "1"}


def test_opencode_offers_the_tools_in_its_first_request_and_lists_the_skill_once(
    opencode: OpenCode, product: Product, git_repo: Path, environment: dict[str, str]
) -> None:
    (opencode.home / ".config/opencode").mkdir(parents=True)
    (git_repo / "opencode.jsonc").write_text('{\n  // mine\n  "theme": "system",\n}\n', "utf-8")
    product.init(git_repo, mcp=True)
    assert not (git_repo / "opencode.json").exists(), "the user's file has it"

    run = dataclasses.replace(opencode, env=environment).run(git_repo)

    assert {"agent-bridge_remember", "agent-bridge_recall"} <= set(run.tools)
    listed = run.prompt.count(f"/{skill.NAME}/SKILL.md</location>")
    assert listed == 1, "Claude Code's copy serves it"


def test_what_opencode_adds_to_a_file_of_ours_goes_with_it(
    opencode: OpenCode, product: Product, git_repo: Path, environment: dict[str, str]
) -> None:
    (opencode.home / ".config/opencode").mkdir(parents=True)
    product.init(git_repo, mcp=True)
    dataclasses.replace(opencode, env=environment).run(git_repo)
    assert "$schema" in json.loads((git_repo / "opencode.json").read_text("utf-8"))

    product.run("eject", "--yes", cwd=git_repo)

    assert not (git_repo / "opencode.json").exists()


def test_gemini_offers_the_tools_in_its_first_request_without_a_service(
    gemini: Gemini, product: Product, git_repo: Path, environment: dict[str, str]
) -> None:
    (gemini.home / ".gemini").mkdir()
    (git_repo / ".gemini").mkdir()
    settings = git_repo / ".gemini/settings.json"
    settings.write_text(COMMENTED, "utf-8")
    product.init(git_repo, mcp=True)

    run = dataclasses.replace(gemini, env=environment).run(git_repo)

    offered = json.dumps(run.requests[0].body["tools"])
    assert '"mcp_agent-bridge_remember"' in offered
    assert '"mcp_agent-bridge_recall"' in offered
    product.run("eject", "--yes", cwd=git_repo)
    assert settings.read_text("utf-8") == COMMENTED
