"""Carrying a change to the agents at once, where no service does it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent_bridge import projects
from agent_bridge.cli.result import Message, info, warning
from agent_bridge.cli.where import Place, ScopeName
from agent_bridge.daemon.client import service_is_running
from agent_bridge.errors import AgentBridgeError
from agent_bridge.projection.guard import guard_private

if TYPE_CHECKING:
    from agent_bridge.projection.engine import Report


def carry_now(place: Place) -> tuple[Message, ...]:
    """One pass over the place's store, whether a service runs or not; all that it has to say."""
    from agent_bridge.cli.pass_shown import report_messages

    unseen = _not_set_up(place)
    return (info(unseen),) if unseen else report_messages(_passed(place))


def carry_unless_served(place: Place) -> tuple[Message, ...]:
    """The same where no service runs; only what keeps the change from the agents.

    What was written stays written: trouble here is only told.
    """
    try:
        unseen = _not_set_up(place)
        if unseen:
            guard_private(place.store)
            return (info(unseen),)
        if service_is_running():
            return ()
        from agent_bridge.cli.pass_shown import hindrances

        return hindrances(_passed(place))
    except AgentBridgeError as error:
        return (warning(f"The agents don't see the change yet: {error.sentence()}"),)


def _passed(place: Place) -> Report:
    # Late: these take 0.2 s, and where a service runs it carries.
    from agent_bridge.config import load_settings
    from agent_bridge.projection.engine import Engine, global_engine

    known = None if place.root is None else projects.find_project(place.root)
    engine = global_engine(load_settings()) if known is None else Engine(known, load_settings())
    return engine.reconcile()


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
