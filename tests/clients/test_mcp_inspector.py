"""The MCP inspector's command line, over each way in: what it lists, calls and reads, by its own SDK."""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
import sysconfig
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from agent_bridge.mcp import catalogue
from clients.rig.product import Product
from clients.rig.programs import Missing, find_program

INSPECTOR = "@modelcontextprotocol/inspector-cli"
TIMEOUT_S = 60.0
FACT = "The crane stands on pier four."
Json = dict[str, Any]
Inspect = Callable[..., Json]


@pytest.fixture
def bridge(product: Product, git_repo: Path) -> Iterator[Product]:
    """agent-bridge with a registry of its own, set up in the repository, running."""
    settings = product.home / ".config/agent-bridge/config.toml"
    settings.parent.mkdir(parents=True)
    with socket.create_server(("127.0.0.1", 0)) as free:
        settings.write_text(f"registry_port = {free.getsockname()[1]}\n", "utf-8")
    product.init(git_repo)
    with product.service():
        yield product


@pytest.fixture(params=["stdio", "http"])
def inspect(request: pytest.FixtureRequest, bridge: Product, git_repo: Path) -> Inspect:
    """Asks one thing through the shim, or of the registry with the token: what it printed."""
    program = find_program(INSPECTOR)
    if isinstance(program, Missing):
        pytest.skip(program.reason)
    if request.param == "stdio":
        target = [str(Path(sysconfig.get_path("scripts")) / "agent-bridge-mcp")]
        headers = []
    else:
        server = bridge.run("mcp", "server", cwd=git_repo)["data"]
        target = [server["url"]]
        token = Path(server["token_file"]).read_text("utf-8").strip()
        headers = [f"Authorization: Bearer {token}", f"X-Agent-Bridge-Project: {git_repo}"]

    def ask(method: str, *words: str) -> Json:
        node = shutil.which("node")
        assert node is not None
        command = [node, str(program), *target, "--method", method, *words]
        for header in headers:
            command += ["--header", header]
        return _asked(command, program.parent, bridge.environment() | {"AGENT_BRIDGE_PROJECT": str(git_repo)})

    return ask


def test_it_lists_calls_and_reads(inspect: Inspect, git_repo: Path) -> None:
    assert inspect("tools/list")["tools"] == catalogue.shipped()["tools"]

    added = inspect("tools/call", "--tool-name", "remember", "--tool-arg", f"text={FACT}")
    assert "Remembered: [" in added["content"][0]["text"]
    assert len(list((git_repo / ".memory/entries").iterdir())) == 1
    found = inspect("tools/call", "--tool-name", "recall", "--tool-arg", "query=crane", "limit=1")
    assert FACT in found["content"][0]["text"]
    assert found["structuredContent"]["facts"][0]["text"] == FACT
    wrong = inspect("tools/call", "--tool-name", "recall", "--tool-arg", "nope=1")
    assert wrong["isError"]

    uris = [one["uri"] for one in inspect("resources/list")["resources"]]
    assert uris == ["agent-bridge://memory/project", "agent-bridge://memory/global"]
    (index,) = inspect("resources/read", "--uri", uris[0])["contents"]
    assert (index["uri"], index["mimeType"]) == (uris[0], "text/markdown")
    assert "crane" in index["text"]


def _asked(command: list[str], directory: Path, environment: Mapping[str, str]) -> Json:
    """`directory` is the program's own: it looks for its package.json from where it is started."""
    done = subprocess.run(
        command, cwd=directory, env=environment, capture_output=True, timeout=TIMEOUT_S, check=False
    )
    assert done.returncode == 0, done.stderr.decode()
    printed: Json = json.loads(done.stdout)
    return printed
