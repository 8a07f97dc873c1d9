"""`review`: texts found in agents' files that are no facts yet, and a person's word on each."""

from __future__ import annotations

import difflib
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from agent_bridge import files
from agent_bridge.cli.app import Verbs
from agent_bridge.cli.carry import carry_unless_served
from agent_bridge.cli.completion import complete_candidate, complete_fact
from agent_bridge.cli.consent import YesOption, can_ask, consent
from agent_bridge.cli.editor import edited
from agent_bridge.cli.result import Json, Message, Result, counted, info
from agent_bridge.cli.where import (
    Place,
    ProjectOption,
    ScopeName,
    ScopeOption,
    global_place,
    holding,
    project_place,
    start_directory,
    writable,
)
from agent_bridge.cli.write_verbs import about_secrets, written_json
from agent_bridge.config import load_settings
from agent_bridge.errors import NotFoundError, UsageError
from agent_bridge.memory.fact import Fact
from agent_bridge.memory.presentable import presentable
from agent_bridge.memory.secrets import find_secrets, masked
from agent_bridge.projection import review, reviewing
from agent_bridge.projection.review import Candidate

_PANEL = "Set-up"
_DECIDE = "Decide on each: `agent-bridge review show|accept|merge|reject ID`."

CandidateArgument = Annotated[
    str,
    typer.Argument(
        metavar="ID", help="The text's id, or the beginning of it.", autocompletion=complete_candidate
    ),
]
PrivateOption = Annotated[bool, typer.Option("--private", help="Keep it out of Git.")]


def register(verbs: Verbs) -> None:
    """Add the commands of this module."""
    group = Verbs("review", about="List texts found in agents' files that are no facts yet; decide on them.")
    group.bare(review_candidates)
    group.verb("show")(show_candidate)
    group.verb("accept")(accept_candidate)
    group.verb("merge")(merge_candidate)
    group.verb("reject")(reject_candidates)
    verbs.add(group, panel=_PANEL)


def review_candidates(
    context: typer.Context, *, scope: ScopeOption = None, project: ProjectOption = None
) -> Result:
    """List texts found in agents' files that are no facts yet; decide on them."""
    if context.invoked_subcommand is not None:
        return Result("review")
    found = _waiting(scope, project)
    return Result(
        "review",
        data={"count": len(found), "candidates": [_json(place, one) for place, one in found]},
        view=("\n\n".join(_in_list(place, one) for place, one in found),) if found else (),
        messages=(info(_DECIDE if found else "Nothing waits for review."),),
    )


def show_candidate(
    candidate: CandidateArgument, scope: ScopeOption = None, project: ProjectOption = None
) -> Result:
    """Show a text: where it was found, which fact it resembles and why, and how they differ."""
    place, found = _find(candidate, scope, project)
    fact = _resembled(place, found)
    diff = [] if fact is None else _diff(fact, found)
    return Result(
        "review show",
        data={
            "candidate": _json(place, found),
            "fact": None if fact is None else {"id": fact.id, "text": presentable(fact).body},
            "diff": diff,
        },
        view=("\n\n".join([_in_list(place, found), *(["\n".join(diff)] if diff else [])]),),
    )


def accept_candidate(
    candidate: CandidateArgument,
    *,
    tag: Annotated[
        list[str] | None, typer.Option("--tag", "-t", metavar="TAG", help="A tag; repeatable.")
    ] = None,
    kind: Annotated[
        str, typer.Option("--type", metavar="TYPE", help="project, feedback, user, reference or decision.")
    ] = "project",
    title: Annotated[str | None, typer.Option("--title", metavar="TITLE", help="Its heading.")] = None,
    private: PrivateOption = False,
    scope: Annotated[
        ScopeName | None, typer.Option("--scope", help="Into which memory (default: where it was found).")
    ] = None,
    project: ProjectOption = None,
) -> Result:
    """Make a fact of a text."""
    place, found = _find(candidate, None, project)
    into = writable(scope or place.scope, project)
    state = place.store.state
    with _locked(state):
        must = reviewing.shall_be_private(found, place.store)
        done = reviewing.accept(
            state,
            found,
            into.store,
            now=datetime.now(UTC),
            tags=tuple(one.strip() for one in tag or () if one.strip()),
            type=kind,
            title=title,
            private=private or must,
        )
    if done.added is None:
        told = f"It is remembered as {done.duplicate} already; the text waits no more."
        return Result("review accept", data={"fact": None, "duplicate": done.duplicate}, view=(told,))
    fact = done.added.fact
    messages: list[Message] = []
    if must and not private:
        messages.append(info(f"It is private; `agent-bridge share {fact.id}` shares it."))
    return Result(
        "review accept",
        data={"fact": written_json(into, fact), "duplicate": None},
        view=(f"Added {fact.id}",),
        messages=(*messages, *about_secrets(fact), *carry_unless_served(into)),
    )


def merge_candidate(
    candidate: CandidateArgument,
    into: Annotated[
        str | None,
        typer.Argument(
            metavar="FACT",
            help="The fact that takes it in (default: the one it resembles).",
            autocompletion=complete_fact,
        ),
    ] = None,
    *,
    replace: Annotated[
        bool, typer.Option("--replace", help="Put it in the place of the fact's text.")
    ] = False,
    append: Annotated[bool, typer.Option("--append", help="Put it behind the fact's text.")] = False,
    scope: ScopeOption = None,
    project: ProjectOption = None,
) -> Result:
    """Bring a text into a fact: in its place, behind it, or as you write it in your editor.

    The editor opens at a terminal, with the text behind the fact's, unless --replace or --append is given.
    """
    if replace and append:
        raise UsageError("--replace and --append exclude each other.")
    if not (replace or append or can_ask()):
        raise UsageError(
            "This opens an editor, and there is no terminal.", remedy="Say --replace or --append."
        )
    place, found = _find(candidate, scope, project)
    name = into or found.similar
    if not name:
        raise UsageError("This text resembles no fact; name the one that takes it in.")
    where, fact = holding(name, None, project)
    text = reviewing.merged_text(fact, found, replace=replace)
    if not (replace or append):
        text = edited(
            fact.id,
            text,
            lambda: reviewing.merged_text(where.store.find(fact.path), found, replace=False),
        )
    state = place.store.state
    with _locked(state):
        changed, kept = reviewing.merge(state, found, where.store, fact, text, now=datetime.now(UTC))
    messages = () if kept is None else (info(f"Its former file is kept as {kept}"),)
    return Result(
        "review merge",
        data={"fact": written_json(where, changed), "kept": None if kept is None else str(kept)},
        view=(f"Changed {changed.id}",),
        messages=(*messages, *about_secrets(changed), *carry_unless_served(where)),
    )


def reject_candidates(
    candidates: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="ID", help="Ids, or the beginnings of them.", autocompletion=complete_candidate
        ),
    ] = None,
    *,
    every: Annotated[bool, typer.Option("--all", help="All that wait.")] = False,
    yes: YesOption = False,
    scope: ScopeOption = None,
    project: ProjectOption = None,
) -> Result:
    """Reject texts: they are gone and don't come back."""
    if every == bool(candidates):
        raise UsageError("Name the texts to reject, or say --all.")
    waiting = _waiting(scope, project)
    chosen = waiting
    if every and waiting:
        consent(f"Reject {counted(len(chosen), 'text')}?", yes=yes)
    elif candidates:
        chosen = list(dict.fromkeys(_named(one, waiting) for one in candidates))
    kept: list[Path] = []
    for place in dict.fromkeys(place for place, _ in chosen):
        state = place.store.state
        with _locked(state):
            mine = [one for where, one in chosen if where is place]
            kept += reviewing.reject(state, mine, now=datetime.now(UTC))
    return Result(
        "review reject",
        data={"rejected": [one.id for _, one in chosen], "kept": [str(path) for path in kept]},
        view=tuple(f"Rejected {one.id}" for _, one in chosen),
        messages=tuple(info(f"It is kept as {path}") for path in kept)
        or (() if chosen else (info("Nothing waits for review."),)),
    )


def _locked(state: Path) -> files.Locking:
    """Hold the lock of the owner whose candidates lie below `state`."""
    return files.locked(state / "lock", timeout=load_settings().lock_timeout_s, purpose="review")


def _places(scope: ScopeName | None, directory: Path | None) -> tuple[Place, ...]:
    start_directory(directory)
    places = () if scope is ScopeName.global_ else (project_place(directory),)
    return places if scope is ScopeName.project else (*places, global_place())


def _waiting(scope: ScopeName | None, directory: Path | None) -> list[tuple[Place, Candidate]]:
    return [
        (place, one)
        for place in _places(scope, directory)
        for one in review.load_candidates(place.store.state)
    ]


def _find(key: str, scope: ScopeName | None, directory: Path | None) -> tuple[Place, Candidate]:
    """The candidate and the store that it was found for."""
    return _named(key, _waiting(scope, directory))


def _named(key: str, waiting: list[tuple[Place, Candidate]]) -> tuple[Place, Candidate]:
    found = review.find_candidate((one for _, one in waiting), key)
    return next((place, one) for place, one in waiting if one is found)


def _resembled(place: Place, candidate: Candidate) -> Fact | None:
    if not candidate.similar:
        return None
    try:
        return place.store.find(candidate.similar)
    except NotFoundError:
        return None  # it was removed since


def _diff(fact: Fact, candidate: Candidate) -> list[str]:
    """The lines in which a fact and a text differ, without credentials."""
    lines = difflib.unified_diff(
        presentable(fact).body.splitlines(),
        masked(candidate.text).splitlines(),
        f"fact {fact.id}",
        f"found in {candidate.origin}",
        lineterm="",
    )
    return list(lines)


def _in_list(place: Place, one: Candidate) -> str:
    similar = f" (similar to {one.similar}, {one.score:.2f})" if one.similar else ""
    text = "\n".join(f"  {line}".rstrip() for line in masked(one.text).splitlines())
    return (
        f"[{one.id}] {one.origin}, {one.found_at}: {one.why}{similar}\n\n{text}\n\n"
        f"  It is kept as {review.candidate_file(place.store.state, one.id)}"
    )


def _json(place: Place, one: Candidate) -> dict[str, Json]:
    return {
        "id": one.id,
        "scope": place.scope.value,
        "text": masked(one.text),
        "title": masked(one.title),
        "origin": one.origin,
        "source": one.source or None,
        "found_at": one.found_at,
        "created_at": one.created_at,
        "why": one.why,
        "similar": one.similar or None,
        "score": one.score,
        "private": one.private or bool(find_secrets(one.text)),
        "file": str(review.candidate_file(place.store.state, one.id)),
    }
