"""Carrying a change to the agents at once, where no service does it."""

from __future__ import annotations

from agent_bridge import projects
from agent_bridge.cli.result import Message, info, warning
from agent_bridge.cli.where import Place, ScopeName
from agent_bridge.daemon.client import service_is_running
from agent_bridge.errors import AgentBridgeError


def carry_now(place: Place) -> tuple[Message, ...]:
    """One pass over the place's store, whether a service runs or not; what it has to say."""
    # Late: these take 0.2 s, and where a service runs it carries.
    from agent_bridge.cli.pass_shown import report_messages
    from agent_bridge.config import load_settings
    from agent_bridge.projection.engine import Engine, global_engine

    unseen = _not_set_up(place)
    if unseen:
        return (info(unseen),)
    known = None if place.root is None else projects.find_project(place.root)
    if known is None:
        return report_messages(global_engine(load_settings()).reconcile())
    return report_messages(Engine(known, load_settings()).reconcile())


def carry_unless_served(place: Place) -> tuple[Message, ...]:
    """The same where no service runs. What was written stays written: trouble here is only told."""
    try:
        unseen = _not_set_up(place)
        if unseen:
            return (info(unseen),)
        return () if service_is_running() else carry_now(place)
    except AgentBridgeError as error:
        return (warning(f"The agents don't see the change yet: {error.sentence()}"),)


def _not_set_up(place: Place) -> str:
    """Why no agent reads this place's facts yet, "" where some do."""
    if place.scope is ScopeName.global_:
        seen, what = bool(projects.load_projects()), "No project is"
    else:
        seen, what = (
            place.root is not None and projects.find_project(place.root) is not None,
            "This project isn't",
        )
    return "" if seen else f"{what} set up, so no agent sees the change: `agent-bridge init`."
