"""`explain` and `history`: what an agent reads here, and where a fact came from. They write nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from agent_bridge import projects
from agent_bridge.cli.app import Verbs
from agent_bridge.cli.completion import complete_fact
from agent_bridge.cli.explain_shown import explanation_json, explanation_text
from agent_bridge.cli.history_shown import copies_json, story_json, story_text
from agent_bridge.cli.result import Result, info, warning
from agent_bridge.cli.where import (
    ProjectOption,
    ScopeName,
    ScopeOption,
    holding,
    readable,
    start_directory,
)
from agent_bridge.config import load_settings
from agent_bridge.errors import NotFoundError
from agent_bridge.projection import requests
from agent_bridge.projection.explain_here import explain_here, locate
from agent_bridge.projection.history import removed_copies, tell

_PANEL = "Set-up"


def register(verbs: Verbs) -> None:
    """Add the commands of this module."""
    verbs.verb("explain", panel=_PANEL)(explain)
    verbs.verb("history", panel="Facts")(history)


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


def history(
    fact: Annotated[
        str,
        typer.Argument(
            metavar="FACT", help="Its id, path, or the beginning of its id.", autocompletion=complete_fact
        ),
    ],
    scope: ScopeOption = None,
    project: ProjectOption = None,
) -> Result:
    """Say where a fact came from: source, session, times, commits, earlier texts, who may see it."""
    try:
        place, found = holding(fact, scope, project)
    except NotFoundError as error:
        return _of_a_removed_fact(fact, scope, project, error)
    known = None if place.root is None else projects.find_project(place.root)
    story = tell(place.store, found, known)
    return Result("history", data=story_json(place, story), view=(story_text(story),))


def _of_a_removed_fact(
    name: str, scope: ScopeName | None, directory: Path | None, error: NotFoundError
) -> Result:
    kept = [copy for place in readable(scope, directory) for copy in removed_copies(place.store.state, name)]
    if not kept:
        raise error
    lines = [f"{name} was removed.", *(f"  {copy.at}  kept as {copy.path}" for copy in kept)]
    return Result(
        "history",
        data={"fact": None, "removed": True, "copies": copies_json(kept)},
        view=("\n".join(lines),),
    )
