"""The command that a harness runs when a session starts, as it stands in the harness's settings. Pure.

Claude Code 2.1.332 runs it with `sh -c`, Codex 0.171.0 with `$SHELL -lc`: the shell may be fish, so a plain
`/bin/sh` does the work, quoted so that each of them passes it on. Where the program is gone nothing happens:
a client that is told of a failing hook shows that to its user at every start.
"""

from __future__ import annotations

import shlex

_SCRIPT = '[ -x "$0" ] && "$0" "$@" 2>/dev/null; exit 0'
_MODULE = ("-E", "-P", "-m", "agent_bridge.cli.entry", "hook", "session-start", "--harness")
"""Neither PYTHON* variables nor the session's directory (it may be anybody's) can change what is run."""


def session_start(program: str, harness: str) -> str:
    """The command for a harness (`claude-code`, …); `program` is the absolute path of the Python to run."""
    return shlex.join(["/bin/sh", "-c", _SCRIPT, program, *_MODULE, harness])


def program_of(command: object) -> str:
    """The program of a command that we made, "" for anybody else's."""
    if not isinstance(command, str):
        return ""
    try:
        words = shlex.split(command)
    except ValueError:
        return ""
    ours = words[:3] == ["/bin/sh", "-c", _SCRIPT] and tuple(words[4:-1]) == _MODULE
    return words[3] if ours else ""


def program_in(element: object) -> str:
    """The program of the command in an element of a `SessionStart` array, "" where it isn't ours."""
    if not isinstance(element, dict):
        return ""
    hooks = element.get("hooks")
    found = [program_of(hook.get("command")) for hook in hooks or () if isinstance(hook, dict)]
    return next(filter(None, found), "")
