"""`init`, `plan`, `sync`, `eject` and `review`: a project's projections."""

from __future__ import annotations

from agent_bridge.cli.app import Verbs


def register(verbs: Verbs) -> None:
    """Add the commands of this module."""
