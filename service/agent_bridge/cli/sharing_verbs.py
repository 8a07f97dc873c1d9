"""`share` and `unshare`: whether a fact travels with Git and stands in files that Git tracks."""

from __future__ import annotations

from agent_bridge import git, projects
from agent_bridge.cli.app import Verbs
from agent_bridge.cli.carry import carry_now
from agent_bridge.cli.consent import YesOption, consent
from agent_bridge.cli.result import Result, warning
from agent_bridge.cli.where import Place, ProjectOption, ScopeName, holding
from agent_bridge.cli.write_verbs import FactArgument, written_json
from agent_bridge.errors import RefusedError, UsageError
from agent_bridge.memory.fact import Fact

_PANEL = "Facts"


def register(verbs: Verbs) -> None:
    """Add the commands of this module."""
    verbs.verb("share", panel=_PANEL)(share)
    verbs.verb("unshare", panel=_PANEL)(unshare)


def share(fact: FactArgument, *, project: ProjectOption = None) -> Result:
    """Let a fact travel with Git and stand in files that Git tracks."""
    place, found = _in_project(fact, project)
    shared = place.store.share(found.path)
    return Result(
        "share",
        data={"fact": written_json(place, shared)},
        view=(f"Shared {shared.id}",),
        messages=carry_now(place),
    )


def unshare(fact: FactArgument, *, yes: YesOption = False, project: ProjectOption = None) -> Result:
    """Make a fact private: out of Git and of tracked files. Asks before it untracks a file."""
    place, found = _in_project(fact, project)
    checkout = git.find_checkout(place.directory)
    path = place.directory / found.path
    is_tracked = checkout is not None and path in git.tracked(checkout, [path])
    if checkout is not None:
        _refuse_what_would_not_hold(place, checkout, is_tracked=is_tracked)
    if is_tracked:
        consent(f"Git tracks {path}. Untrack it (history keeps it, the file stays)?", yes=yes)
    private = place.store.unshare(found.path)
    messages = carry_now(place)
    if checkout is not None and is_tracked:
        # Only now, when info/exclude is known to be right: no `git add` in between takes it back.
        git.untrack(checkout, [path])
        messages = carry_now(place)
    if is_tracked:
        told = "From the next commit on Git doesn't track it; history keeps what was committed."
        messages = (warning(told), *messages)
    return Result(
        "unshare",
        data={"fact": written_json(place, private), "untracked": is_tracked},
        view=(f"Made {private.id} private",),
        messages=messages,
    )


def _in_project(name: str, directory: ProjectOption) -> tuple[Place, Fact]:
    place, found = holding(name, None, directory)
    if place.scope is ScopeName.global_:
        raise UsageError("A fact of scope global never travels with Git.", path=place.directory / found.path)
    return place, found


def _refuse_what_would_not_hold(place: Place, checkout: git.Checkout, *, is_tracked: bool) -> None:
    if place.root is None or projects.find_project(place.root) is None:
        raise RefusedError(
            "This project isn't set up, so nothing would keep the fact out of Git",
            path=place.root,
            remedy="Run `agent-bridge init` first.",
        )
    busy = git.activity(checkout) if is_tracked else None
    if busy:
        raise RefusedError(f"Git is at work here ({busy})", path=place.root, remedy="Finish it first.")
