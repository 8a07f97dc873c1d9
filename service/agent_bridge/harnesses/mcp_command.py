"""How clients start our MCP server, and under which name. What looks for the program reads the disk."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

SERVER = "agent-bridge"
"""Our name among a client's MCP servers."""

TOOLS = f"mcp__{SERVER}"
"""All tools of the server, as clients name them in lists of what is allowed."""

NAME = "agent-bridge-mcp"
"""The program. As a bare name it stands in files in repositories: no path of one machine goes into Git."""

ENVIRONMENT = (
    "CODEX_HOME",
    "XDG_CONFIG_HOME",
    "XDG_DATA_HOME",
    "XDG_STATE_HOME",
    "XDG_CACHE_HOME",
    "XDG_RUNTIME_DIR",
    "AGENT_BRIDGE_CONFIG_DIR",
    "AGENT_BRIDGE_DATA_DIR",
    "AGENT_BRIDGE_STATE_DIR",
    "AGENT_BRIDGE_CACHE_DIR",
    "AGENT_BRIDGE_RUNTIME_DIR",
    "AGENT_BRIDGE_IDENTITY",
    "AGENT_BRIDGE_PROJECT",
)
"""Variables by which the program finds our places and knows its session, for clients that pass none on."""


def installed(search: str | None = None) -> tuple[str, ...]:
    """The command for settings of one user: the bare name where `search` (PATH) has it.

    Else the absolute path of the one beside this Python; the bare name where there is none either.
    """
    if is_on_path(search):
        return (NAME,)
    ours = beside()
    return (str(ours),) if os.access(ours, os.X_OK) else (NAME,)


def is_on_path(search: str | None = None) -> bool:
    """Whether the bare name is enough; `search` is a PATH, that of this process by default."""
    return shutil.which(NAME, path=search) is not None


def beside() -> Path:
    """Where the program of this installation lies, or would."""
    return Path(sys.executable or sys.prefix).with_name(NAME)


def is_ours(command: object) -> bool:
    """Whether a command, without arguments, is our program: by its bare name or by a path of that name."""
    return isinstance(command, str) and (
        command == NAME or (command.startswith("/") and Path(command).name == NAME)
    )
