"""`search`, `list` and `show`: they read the stores and create nothing in them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import typer

from agent_bridge.cli.app import Verbs
from agent_bridge.cli.completion import complete_fact
from agent_bridge.cli.facts_shown import fact_in_full, fact_json, fact_table, private_ids
from agent_bridge.cli.result import Message, Result, info, warning
from agent_bridge.cli.where import Place, ProjectOption, ScopeOption, holding, readable
from agent_bridge.errors import UsageError
from agent_bridge.memory.presentable import presentable
from agent_bridge.memory.search import Search

_PANEL = "Facts"
TagFilter = Annotated[
    list[str] | None, typer.Option("--tag", metavar="TAG", help="Only facts with this tag; repeatable.")
]
TypeFilter = Annotated[str | None, typer.Option("--type", metavar="TYPE", help="Only facts of this type.")]
PrivateFilter = Annotated[bool, typer.Option("--private", help="Only facts that stay out of Git.")]


def register(verbs: Verbs) -> None:
    """Add the commands of this module."""
    verbs.verb("search", panel=_PANEL)(search)
    verbs.verb("list", panel=_PANEL)(list_facts)
    verbs.verb("show", panel=_PANEL)(show_fact)


def search(
    words: Annotated[
        list[str],
        typer.Argument(metavar="WORD", help="All of them must occur in a fact's text, title or tags."),
    ],
    limit: Annotated[
        int, typer.Option("--limit", "-n", min=1, metavar="N", help="At most so many hits.")
    ] = 50,
    scope: ScopeOption = None,
    project: ProjectOption = None,
) -> Result:
    """Find facts, the best hit first."""
    if not any(word.split() for text in words for word in [text]):
        raise UsageError("Say what to search for.", remedy="`agent-bridge list` shows all facts.")
    places = readable(scope, project)
    found = []
    privates: dict[Place, frozenset[str]] = {}
    for place in places:
        snapshot = place.store.scan()
        privates[place] = private_ids(snapshot)
        found += [(place, hit) for hit in Search(place.cache_file).query(snapshot, words, limit)]
    return Result(
        "search",
        data={
            "hits": [
                {
                    **fact_json(place, hit.fact, privates[place]),
                    "score": hit.score,
                    "snippet": "" if hit.fact.secrets else hit.snippet,
                }
                for place, hit in found
            ]
        },
        view=(fact_table((place, hit.fact) for place, hit in found),),
        messages=_nothing_here(places) or _nothing_fits(found),
    )


def list_facts(
    *,
    tag: TagFilter = None,
    kind: TypeFilter = None,
    private: PrivateFilter = False,
    scope: ScopeOption = None,
    project: ProjectOption = None,
) -> Result:
    """List facts, the most important first."""
    places = readable(scope, project)
    rows = []
    data = []
    messages: list[Message] = []
    for place in places:
        snapshot = place.store.scan()
        privates = private_ids(snapshot)
        for fact in snapshot.facts:
            wanted = kind in (None, fact.type) and set(tag or ()) <= set(fact.tags)
            if wanted and (not private or fact.id in privates):
                rows.append((place, fact))
                data.append(fact_json(place, fact, privates))
        messages += [
            warning(f"{place.directory / one.path}: {one.reason}. {one.remedy}") for one in snapshot.problems
        ]
    filtered = bool(tag or kind or private)
    nothing = _nothing_here(places) or _nothing_fits(
        rows, told="No fact fits." if filtered else "No facts yet."
    )
    return Result("list", data={"facts": data}, view=(fact_table(rows),), messages=(*nothing, *messages))


def show_fact(
    fact: Annotated[
        str,
        typer.Argument(
            metavar="FACT", help="Its id, path, or the beginning of its id.", autocompletion=complete_fact
        ),
    ],
    scope: ScopeOption = None,
    project: ProjectOption = None,
) -> Result:
    """Show a fact in full."""
    place, found = holding(fact, scope, project)
    privates = private_ids(place.store.scan())
    data = {
        **fact_json(place, found, privates),
        "body": presentable(found).body,
        "file": str(place.directory / found.path),
        "origin_session": found.origin_session,
    }
    return Result("show", data=data, view=(fact_in_full(found, is_private=found.id in privates),))


def _nothing_fits(found: Sequence[object], told: str = "No fact fits.") -> tuple[Message, ...]:
    return () if found else (info(told),)


def _nothing_here(places: tuple[Place, ...]) -> tuple[Message, ...]:
    if places:
        return ()
    return (info("There is no memory here yet; `agent-bridge init` sets it up for this project."),)
