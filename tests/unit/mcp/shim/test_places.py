"""The shim's own rules for places are those of `paths`, in any environment."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from agent_bridge import paths
from agent_bridge.errors import AgentBridgeError
from agent_bridge.mcp import hello
from agent_bridge.mcp.shim import hello as shim_hello
from agent_bridge.mcp.shim import places

_VARIABLES = (
    "HOME",
    "XDG_STATE_HOME",
    "XDG_RUNTIME_DIR",
    "XDG_CONFIG_HOME",
    "AGENT_BRIDGE_STATE_DIR",
    "AGENT_BRIDGE_RUNTIME_DIR",
)
_PARTS = st.sampled_from(["", ".", "..", "a", "/", "//", "~", "~/", "/tmp", "é", "\udcff", " ", "x" * 60])
_VALUES = st.lists(_PARTS, max_size=5).map("/".join) | st.lists(_PARTS, max_size=3).map("".join)


def _of_paths(name: str, env: dict[str, str]) -> str | None:
    try:
        return str(getattr(paths, name)(env))
    except AgentBridgeError:
        return None


def _of_shim(name: str, env: dict[str, str]) -> str | None:
    try:
        return str(getattr(places, name)(env))
    except ValueError:
        return None


@pytest.mark.parametrize("platform", ["linux", "darwin"])
@given(env=st.dictionaries(st.sampled_from(_VARIABLES), _VALUES))
@example(env={"HOME": "//two"})
@example(env={"HOME": "/", "AGENT_BRIDGE_STATE_DIR": "~//etc"})
@example(env={"HOME": "/h", "AGENT_BRIDGE_RUNTIME_DIR": "/a/./b//c/"})
@example(env={"HOME": "/h", "XDG_RUNTIME_DIR": "/tmp/."})
def test_places_are_the_same(platform: str, env: dict[str, str]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "platform", platform)
        assert _of_shim("socket_path", env) == _of_paths("mcp_socket", env)
        assert _of_shim("catalogue_path", env) == _of_paths("mcp_catalogue", env)


def test_runtime_directory_of_the_user_is_taken(tmp_path: Path) -> None:
    env = {"HOME": "/h", "XDG_RUNTIME_DIR": str(tmp_path)}
    if len(os.fsencode(tmp_path)) < 70:
        assert (
            places.socket_path(env) == str(tmp_path / "agent-bridge/mcp.sock") == str(paths.mcp_socket(env))
        )


def test_same_variables_are_passed_on() -> None:
    assert shim_hello.ENVIRONMENT == hello.ENVIRONMENT
    assert shim_hello.HELLO_VERSION == hello.HELLO_VERSION
