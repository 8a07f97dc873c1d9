"""Options and their twins in the environment; and what the shim imports."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import agent_bridge
from agent_bridge.mcp.shim.main import UsageError, options


@pytest.mark.parametrize(
    ("words", "env", "found"),
    [
        ([], {}, ("", "global", True)),
        ([], {"AGENT_BRIDGE_IDENTITY": ""}, ("", "global", True)),
        ([], {"AGENT_BRIDGE_IDENTITY": "team"}, ("", "team", True)),
        (["--identity", "mine"], {"AGENT_BRIDGE_IDENTITY": "team"}, ("", "mine", True)),
        (["--project=/a=b", "--no-auto"], {}, ("/a=b", "global", False)),
        (["--project", "--no-auto"], {}, ("--no-auto", "global", True)),
        ([], {"AGENT_BRIDGE_NO_AUTO": "1"}, ("", "global", False)),
        ([], {"AGENT_BRIDGE_NO_AUTO": "0"}, ("", "global", True)),
    ],
)
def test_options(words: list[str], env: dict[str, str], found: tuple[str, str, bool]) -> None:
    assert options(words, env) == found


@pytest.mark.parametrize("words", [["--project"], ["--no-auto=1"], ["x"], [""], ["--identity"]])
def test_wrong_options(words: list[str]) -> None:
    with pytest.raises(UsageError):
        options(words, {})


def test_little_is_imported_before_the_tools_are_answered() -> None:
    """Each of these takes longer than all of the shim's own modules."""
    source = str(Path(agent_bridge.__file__).parents[1])
    program = (
        f"import sys; sys.path.append({source!r})\n"
        "from agent_bridge.mcp.shim.main import main; main(['--no-auto'])\n"
        "print(*sorted(sys.modules), file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-S", "-c", program], input="", capture_output=True, text=True, check=True
    )
    loaded = set(done.stderr.split())

    assert "agent_bridge.mcp.shim.relay" in loaded
    assert "agent_bridge.mcp.shim.link" not in loaded
    assert not loaded & {
        "typing",
        "argparse",
        "pathlib",
        "subprocess",
        "dataclasses",
        "asyncio",
        "socket",
        "signal",
    }
    ours = {name for name in loaded if name.startswith("agent_bridge") and ".shim" not in name}
    assert ours == {"agent_bridge", "agent_bridge.mcp"}
