"""How small a shim is, as there is one for each session of each client: its memory, and what it loads."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from integration.mcp.shim.rig import Service, Shim, answer, call

Start = Callable[..., Shim]
MOST_BYTES = 15 * 1024 * 1024


@pytest.mark.skipif(sys.platform != "linux", reason="the size is read from /proc")
def test_it_takes_little_memory_with_everything_loaded(service: Service, shim: Start) -> None:
    client = shim()
    client.begin()
    client.say({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}, call(2))
    assert client.hear()["id"] == 1
    peer = service.accept()
    peer.greet()
    assert peer.hear() == call(2)
    peer.say(answer(2, {}))
    assert client.hear() == answer(2, {})

    pages = int(Path(f"/proc/{client.process.pid}/statm").read_text().split()[1])
    assert pages * os.sysconf("SC_PAGE_SIZE") < MOST_BYTES


def test_the_command_goes_to_it_before_anything_heavy_is_loaded(sealed_home: Path) -> None:
    program = (
        "import sys\n"
        "before = set(sys.modules)\n"
        "sys.argv = ['agent-bridge', 'mcp', 'start', '--no-auto']\n"
        "from agent_bridge.cli.entry import main\n"
        "code = main()\n"
        "print(code, *sorted(set(sys.modules) - before), file=sys.stderr)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], input="", capture_output=True, text=True, timeout=20
    )
    code, *loaded = done.stderr.split()

    assert (code, done.stdout) == ("0", "")
    assert "agent_bridge.mcp.shim.loop" in loaded
    assert not {"asyncio", "typer", "pydantic", "argparse", "pathlib", "subprocess", "mcp"} & {*loaded}
    ours = {name for name in loaded if name.startswith("agent_bridge") and ".shim" not in name}
    assert ours == {"agent_bridge", "agent_bridge.cli", "agent_bridge.cli.entry", "agent_bridge.mcp"}
