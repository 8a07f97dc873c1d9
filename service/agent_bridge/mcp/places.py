"""Where a session works: what its shim, its environment or its client says, and the project's root there."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from urllib.parse import unquote, urlsplit

from agent_bridge import projects
from agent_bridge.errors import AgentBridgeError
from agent_bridge.mcp.hello import Hello

_PATH = 4_096


def told_start(hello: Hello) -> Path | None:
    """The directory that somebody named on purpose: the shim's option, else the environment's variables."""
    for text in (
        hello.project,
        hello.environment.get("AGENT_BRIDGE_PROJECT", ""),
        hello.environment.get("CLAUDE_PROJECT_DIR", ""),
    ):
        if text.startswith("/"):
            return Path(text)
    return None


def first_start(hello: Hello) -> Path | None:
    """The same, else the working directory; what holds until the client's roots are known."""
    return told_start(hello) or (Path(hello.cwd) if hello.cwd else None)


def first_root(uris: Iterable[str]) -> Path | None:
    """The first of a client's roots that is a directory's path on this machine."""
    for uri in uris:
        path = _path_of(uri)
        if path is not None:
            return path
    return None


def root_of(start: Path | None) -> str:
    """The root of the project that a directory would belong to, as an absolute path; "" for none. Blocks."""
    if start is None:
        return ""
    try:
        return str(projects.locate(start))
    except (AgentBridgeError, OSError, ValueError):
        return os.path.normpath(start)


def _path_of(uri: str) -> Path | None:
    if len(uri) > 4 * _PATH:
        return None
    try:
        parts = urlsplit(uri)
        host = parts.hostname or ""
    except ValueError:
        return None
    path = unquote(parts.path, errors="surrogateescape")  # as the names of files come from the system
    if parts.scheme.lower() != "file" or host not in ("", "localhost"):
        return None
    if not path.startswith("/") or "\0" in path or len(os.fsencode(path)) > _PATH:
        return None
    return Path(path)
