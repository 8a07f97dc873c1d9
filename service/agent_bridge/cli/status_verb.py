"""`status` with options: the full dump of what is remembered."""

from __future__ import annotations

from typing import Annotated

import typer

from agent_bridge.cli.app import Verbs
from agent_bridge.cli.facts_shown import fact_json, private_ids, whole_memory
from agent_bridge.cli.result import Result, info
from agent_bridge.cli.status import status
from agent_bridge.cli.where import Place, ProjectOption, ScopeName, ScopeOption, readable
from agent_bridge.memory.presentable import presentable


def register(verbs: Verbs) -> None:
    """Add the commands of this module."""
    verbs.verb("status", panel="Service")(status_verb)


def status_verb(
    *,
    memory: Annotated[
        bool, typer.Option("--memory", help="Everything that is remembered here, in full.")
    ] = False,
    scope: ScopeOption = None,
    project: ProjectOption = None,
) -> Result:
    """Say how the service is, or with --memory what is remembered."""
    return _memory(scope, project) if memory else status()


def _memory(scope: ScopeName | None, project: ProjectOption) -> Result:
    places = readable(scope, project)
    dumps = [(place, place.store.scan()) for place in places]
    return Result(
        "status",
        data={
            "memory": [
                {
                    "scope": place.scope.value,
                    "directory": str(place.directory),
                    "documents": [{"name": one.name, "text": one.text} for one in snapshot.documents],
                    "facts": [
                        {**fact_json(place, fact, private_ids(snapshot)), "body": presentable(fact).body}
                        for fact in snapshot.facts
                    ],
                    "problems": [
                        {"path": one.path, "reason": one.reason, "remedy": one.remedy}
                        for one in snapshot.problems
                    ],
                }
                for place, snapshot in dumps
            ]
        },
        view=("\n\n".join(whole_memory(snapshot, _heading(place)) for place, snapshot in dumps),)
        if dumps
        else (),
        messages=() if dumps else (info("There is no memory here yet; `agent-bridge init` sets it up."),),
    )


def _heading(place: Place) -> str:
    return "Project memory" if place.scope is ScopeName.project else "Memory of all projects"
