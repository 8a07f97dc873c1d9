"""`init` and `eject` for a user of all five programs, whose files for MCP are all there already."""

from __future__ import annotations

import sys
import tomllib
from pathlib import Path

import pytest

from agent_bridge.config import Settings
from agent_bridge.harnesses import mcp_command
from agent_bridge.projection import setup

from .conftest import git

HOMES = (".claude", ".codex", ".config/opencode", ".gemini/antigravity-cli")
OF_PROJECT = {
    ".mcp.json": b'\xef\xbb\xbf{\r\n  // mine\r\n  "mcpServers": {"db": {"command": "db-mcp"}}\r\n}\r\n',
    ".claude/settings.local.json": b'{"permissions": {"allow": ["WebFetch"], "deny": []}, "unknown": [1, 2]}',
    "opencode.jsonc": b'{\n\t/* mine */\n\t"mcp": {\n\t\t"db": {"type": "remote", "url": "http://x.invalid"},\n\t},\n}',
    ".gemini/settings.json": b'{\r\n    "ui": {"theme": "GitHub"} // mine\r\n}',
    ".agents/mcp_config.json": b'{"mcpServers":{"db":{"serverUrl":"http://x.invalid"}}}\n',
}
TRACKED = (".mcp.json", ".gemini/settings.json", ".agents/mcp_config.json")
"""OpenCode's isn't: where it is, ours goes into a file of its own that isn't."""
CODEX = b'# mine\r\nmodel = "gpt-5"\r\nmcp_servers.db = { command = "db-mcp" } # inline\r\n\r\n[tui]\r\nx = 1'


@pytest.fixture
def places(sealed_home: Path, repository: Path, monkeypatch: pytest.MonkeyPatch) -> dict[Path, bytes]:
    """The user's files. Our program isn't on PATH."""
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    for name in HOMES:
        (sealed_home / name).mkdir(parents=True, exist_ok=True)
    found = {repository / name: data for name, data in OF_PROJECT.items()}
    found[sealed_home / ".codex/config.toml"] = CODEX
    for path, data in found.items():
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(data)
    git(repository, "add", *TRACKED)
    git(repository, "commit", "-qm", "settings")
    return found


def test_each_gets_our_server_once_with_no_path_of_this_machine_and_eject_leaves_every_byte(
    places: dict[Path, bytes], repository: Path, settings: Settings, sealed_home: Path
) -> None:
    project = setup.describe(repository)
    setup.init(project, settings)

    with_ours = {path: path.read_bytes() for path in places}
    assert {path for path in places if b"agent-bridge" not in with_ours[path]} == set()
    (codex,) = [data for path, data in with_ours.items() if path.name == "config.toml"]
    assert set(tomllib.loads(codex.decode())["mcp_servers"]) == {"db", mcp_command.SERVER}
    for path, data in with_ours.items():
        comments = [data.count(word) for word in (b"mine", b"inline")]
        assert comments == [places[path].count(word) for word in (b"mine", b"inline")]
    of_machine = (sealed_home, sys.prefix, mcp_command.beside())
    for name in OF_PROJECT.keys() - {".claude/settings.local.json"}:
        assert [one for one in of_machine if str(one).encode() in with_ours[repository / name]] == [], name

    setup.init(setup.describe(repository), settings)
    assert {path: path.read_bytes() for path in places} == with_ours

    assert not setup.eject(project, settings).refused
    assert {path: path.read_bytes() for path in places} == places
    assert git(repository, "status", "--porcelain", "--", *TRACKED) == ""
