"""Asking before something is removed or a foreign file is changed. `--json` and a pipe are no consent."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from agent_bridge.cli.printing import ask
from agent_bridge.errors import RefusedError, UsageError

YesOption = Annotated[bool, typer.Option("--yes", "-y", help="Don't ask.")]


def consent(question: str, *, yes: bool) -> None:
    """Return if the person agrees. Raises UsageError where nobody can be asked, RefusedError on no."""
    if yes:
        return
    if not can_ask():
        raise UsageError(
            "This asks first, and there is no terminal to ask at.", remedy="Say yes with `--yes`."
        )
    if not ask(question):
        raise RefusedError("Nothing was changed.")


def can_ask() -> bool:
    """Whether a person sits at stdin."""
    return sys.stdin.isatty()


def agree(question: str) -> bool:
    """Whether the person says yes to a choice in which no is as good; without a terminal: no."""
    return can_ask() and ask(question)
