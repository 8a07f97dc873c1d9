"""What `mcp config --write` does: the entries of our MCP server alone, by the ledger, as `init` sets them."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from contextlib import ExitStack
from pathlib import Path

from agent_bridge import files, paths, projects
from agent_bridge.config import Settings
from agent_bridge.harnesses import all_harnesses
from agent_bridge.harnesses.base import KeyEdit
from agent_bridge.projection import housekeeping, mcp_settings, setup
from agent_bridge.projection.engine import Engine
from agent_bridge.projection.ledger import Ledger
from agent_bridge.projection.survey import survey_project
from agent_bridge.projects import Project

_PURPOSE = "MCP set-up"


def write_project(project: Project, settings: Settings, only: Collection[str]) -> mcp_settings.Wiring:
    """Give the harnesses in use our server in this project, which wants MCP from now on.

    `only`: names of harnesses, none for all. Returns what was set, and what couldn't be, with the reason.
    Raises AgentBridgeError.
    """
    engine = Engine(project, settings)
    with _locked(settings, engine.lock):
        projects.add_project(project)
        users = Ledger(paths.user_state())
        survey = survey_project(project, settings)
        if not only and mcp_settings.withdraw_stale(project, engine.ledger, users, survey.mcp):
            survey = survey_project(project, settings)
        used = survey.sites[0].used
        chosen = [one for one in all_harnesses() if one.name in used and (not only or one.name in only)]
        wired = mcp_settings.wiring(project, chosen, survey.sites)
        setup.set_keys(engine.ledger, wired.own)
        # Now that the ledger says which of the files are ours: those stay out of Git.
        housekeeping.Excluder(project, engine.ledger).keep(
            survey_project(project, settings), engine.store.scan()
        )
        setup.set_keys(users, wired.user)
    return wired


def write_user(edits: Sequence[KeyEdit], settings: Settings) -> None:
    """Set keys in files that serve all projects; they go with the last project. Raises AgentBridgeError."""
    with _locked(settings):
        setup.set_keys(Ledger(paths.user_state()), tuple(edits))


def _locked(settings: Settings, *further: Path) -> ExitStack:
    held = ExitStack()
    for lock in (paths.user_state() / "lock", *further):
        held.enter_context(files.locked(lock, timeout=settings.lock_timeout_s, purpose=_PURPOSE))
    return held
