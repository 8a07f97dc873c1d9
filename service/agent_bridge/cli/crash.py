"""What a user sees of an error that nobody foresaw: one line, and where the details are."""

from __future__ import annotations

import errno
import os
import sys
import tempfile
import traceback
from collections.abc import Sequence
from pathlib import Path

from agent_bridge import __version__, paths
from agent_bridge.cli.printing import show, silence
from agent_bridge.cli.result import Result, failure
from agent_bridge.errors import AgentBridgeError

_FILE = "last-crash.txt"
_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO}


def report(error: Exception, words: Sequence[str]) -> int:
    """Tell `error` in one line and keep its traceback in a file; with AGENT_BRIDGE_DEBUG=1 show it."""
    if os.environ.get("AGENT_BRIDGE_DEBUG") == "1":
        traceback.print_exception(error, file=sys.stderr)
    is_full = isinstance(error, OSError) and error.errno in _FULL and error.filename is None
    if is_full:
        silence()
    result = _result(error, words)
    show(result, as_json=wants_json(words) and not is_full)
    return result.exit_code


def wants_json(words: Sequence[str]) -> bool:
    """Whether `--json` stands among the options: what can be told when the words couldn't be parsed."""
    before = list(words)
    return "--json" in (before[: before.index("--")] if "--" in before else before)


def _result(error: Exception, words: Sequence[str]) -> Result:
    command = next((word for word in words if not word.startswith("-")), "")
    if isinstance(error, AgentBridgeError):
        return failure(command, error)
    if isinstance(error, OSError) and error.filename and error.strerror:
        return failure(command, AgentBridgeError(error.strerror, path=os.fsdecode(error.filename)))
    if isinstance(error, OSError) and error.errno in _FULL:
        return failure(command, AgentBridgeError(f"The answer can't be written: {error.strerror}."))
    told = AgentBridgeError(
        f"Something unexpected went wrong: {type(error).__name__}: {error}".splitlines()[0],
        remedy=_keep_traceback(error),
    )
    return failure(command, told)


def _keep_traceback(error: Exception) -> str:
    text = f"agent-bridge {__version__}, Python {sys.version}\n" + "".join(traceback.format_exception(error))
    try:
        return f"Details are in {_write(text)}"
    except OSError as failed:
        return f"The details could not be written ({failed}); AGENT_BRIDGE_DEBUG=1 shows them."


def _write(text: str) -> Path:
    """Into the state directory, which a crash doesn't make; else into a temporary file."""
    state = paths.state_dir()
    if state.is_dir():
        descriptor = os.open(state / _FILE, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600)
        name = str(state / _FILE)
    else:
        descriptor, name = tempfile.mkstemp(prefix="agent-bridge-crash-", suffix=".txt")
    with os.fdopen(descriptor, "w", encoding="utf-8", errors="backslashreplace") as file:
        file.write(text)
    return Path(name)
