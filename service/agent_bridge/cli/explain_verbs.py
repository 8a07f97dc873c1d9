"""`explain` and `history`: what an agent reads here, and where a fact came from. They write nothing."""

from __future__ import annotations

from typing import Annotated

import typer

from agent_bridge.cli.app import Verbs
from agent_bridge.cli.explain_shown import explanation_json, explanation_text
from agent_bridge.cli.result import Result, info, warning
from agent_bridge.cli.where import ProjectOption, start_directory
from agent_bridge.config import load_settings
from agent_bridge.projection import requests
from agent_bridge.projection.explain_here import explain_here, locate

_PANEL = "Set-up"


def register(verbs: Verbs) -> None:
    """Add the commands of this module."""
    verbs.verb("explain", panel=_PANEL)(explain)


def explain(
    agent: Annotated[
        str | None, typer.Argument(metavar="AGENT", help="One agent; without it, each one that is in use.")
    ] = None,
    project: ProjectOption = None,
) -> Result:
    """Say what an agent reads when it is started here: files, cuts, doubles, and facts that it lacks."""
    settings = load_settings()
    named = () if agent is None else requests.named(agent)
    here = locate(start_directory(project))
    told = explain_here(here, settings, named)
    messages = [warning(text) for text in settings.warnings]
    if not told:
        messages.append(info("No agent program is in use here; `agent-bridge explain all` tells of each."))
    return Result(
        "explain",
        data={
            "start": str(here.start),
            "root": str(here.project.root),
            "set_up": here.is_set_up,
            "harnesses": [explanation_json(one) for one in told],
        },
        view=("\n\n".join(explanation_text(one, here.start) for one in told),) if told else (),
        messages=tuple(messages),
    )
