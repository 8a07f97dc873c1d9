"""Asking before something is removed or a foreign file is changed. `--json` and a pipe are no consent."""

from __future__ import annotations

import sys

from agent_bridge.cli.printing import ask
from agent_bridge.errors import RefusedError, UsageError


def consent(question: str, *, yes: bool) -> None:
    """Return if the person agrees. Raises UsageError where nobody can be asked, RefusedError on no."""
    if yes:
        return
    if not sys.stdin.isatty():
        raise UsageError(
            "This asks first, and there is no terminal to ask at.", remedy="Say yes with `--yes`."
        )
    if not ask(question):
        raise RefusedError("Nothing was changed.")
