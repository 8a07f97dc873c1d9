"""`rm` and `forget`: a fact leaves the memory and every file that shows it."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated

import typer

from agent_bridge import projects
from agent_bridge.cli.app import Verbs
from agent_bridge.cli.consent import YesOption, consent
from agent_bridge.cli.pass_shown import hindrances
from agent_bridge.cli.result import Json, Message, Result, info, warning
from agent_bridge.cli.where import Place, ProjectOption, ScopeName, ScopeOption, holding
from agent_bridge.cli.write_verbs import FactArgument, written_json
from agent_bridge.config import load_settings
from agent_bridge.errors import EXIT_DONE, EXIT_LEFT_UNDONE
from agent_bridge.memory.presentable import presentable
from agent_bridge.projection import forget as forgetting
from agent_bridge.projection.forget import Forgotten

_PANEL = "Facts"


def register(verbs: Verbs) -> None:
    """Add the commands of this module."""
    verbs.verb("rm", panel=_PANEL)(forget)
    verbs.verb("forget", hidden=True)(forget)


def forget(
    fact: FactArgument,
    *,
    yes: YesOption = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would be removed.")] = False,
    scope: ScopeOption = None,
    project: ProjectOption = None,
) -> Result:
    """Forget a fact, in every file that shows it. A copy of its file is kept in the state directory."""
    settings = load_settings()
    place, found = holding(fact, scope, project)
    owned = _owned(place)
    title = presentable(found).title
    data: dict[str, Json] = {"fact": written_json(place, found), "removed": False}
    if dry_run:
        paths = [str(path) for path in forgetting.stands_in(owned, found, settings)]
        listing = "\n  ".join([f"Would remove {found.id}: {title}", *paths])
        return Result("rm", data={**data, "stands_in": paths}, view=(listing,))
    consent(f"Forget {found.id} ({title})?", yes=yes)
    done = forgetting.forget(owned, found, settings, now=datetime.now(UTC))
    lines = [f"Removed {found.id} from", *(f"  {path}" for path in done.gone_from)]
    return Result(
        "rm",
        data={
            **data,
            "removed": True,
            "kept": None if done.kept is None else str(done.kept),
            "gone_from": [str(path) for path in done.gone_from],
            "still_in": [str(path) for path in done.still_in],
            "said_by_others": [str(path) for path in done.said_by_others],
            "in_git": [str(path) for path in done.in_git],
        },
        view=("\n".join(lines),),
        messages=tuple(_messages(done)),
        exit_code=EXIT_LEFT_UNDONE if done.still_in else EXIT_DONE,
    )


def _owned(place: Place) -> forgetting.Place:
    """The place with who is served from it."""
    if place.scope is ScopeName.global_:
        return forgetting.Place(place.store, None, place.cache_file, is_global=bool(projects.load_projects()))
    known = None if place.root is None else projects.find_project(place.root)
    return forgetting.Place(place.store, known, place.cache_file)


def _messages(done: Forgotten) -> list[Message]:
    told = [
        info(
            "It held a secret, so no copy was kept."
            if done.kept is None
            else f"Its file is kept as {done.kept}"
        )
    ]
    if done.in_git:
        listed = ", ".join(map(str, done.in_git))
        told.append(
            info(f"Git's history keeps what was committed of {listed}; the removal is yours to commit.")
        )
    told += [
        info(f"{path} stays: it is what that worktree's branch holds.")
        for path in done.in_git
        if path.exists()
    ]
    if done.report is None and not done.troubles:
        told.append(info("Nothing is set up here, so no agent's file had it: `agent-bridge init`."))
    told += [warning(f"The agents' files aren't in line: {trouble}") for trouble in done.troubles]
    told += [warning(f"{path} still has it") for path in done.still_in]
    told += [info(f"{path} says the same in words of its own") for path in done.said_by_others]
    if done.report is not None:
        told += hindrances(done.report)
    if done.was_private:
        told.append(info("It stays remembered as private: should the text come back, it stays out of Git."))
    return told
