"""`add` and `edit`: they write one fact."""

from __future__ import annotations

import re
import sys
from datetime import UTC, datetime
from typing import Annotated

import typer

from agent_bridge.cli.app import Verbs
from agent_bridge.cli.carry import carry_unless_served
from agent_bridge.cli.completion import complete_fact
from agent_bridge.cli.editor import edited
from agent_bridge.cli.facts_shown import fact_json, private_ids
from agent_bridge.cli.result import Json, Message, Result, warning
from agent_bridge.cli.where import Place, ProjectOption, ScopeOption, holding, writable
from agent_bridge.errors import UsageError
from agent_bridge.memory.fact import Fact

_PANEL = "Facts"
_PLAIN = re.compile(r"[A-Za-z0-9._:-]{0,100}")
FactArgument = Annotated[
    str,
    typer.Argument(
        metavar="FACT", help="Its id, path, or the beginning of its id.", autocompletion=complete_fact
    ),
]


def register(verbs: Verbs) -> None:
    """Add the commands of this module."""
    verbs.verb("add", panel=_PANEL)(add)
    verbs.verb("edit", panel=_PANEL)(edit)


def add(
    text: Annotated[str, typer.Argument(metavar="TEXT", help="What to remember; `-` reads it from stdin.")],
    *,
    tag: Annotated[
        list[str] | None, typer.Option("--tag", "-t", metavar="TAG", help="A tag; repeatable.")
    ] = None,
    kind: Annotated[
        str, typer.Option("--type", metavar="TYPE", help="project, feedback, user, reference or decision.")
    ] = "project",
    title: Annotated[
        str | None, typer.Option("--title", metavar="TITLE", help="Its heading (default: from the text).")
    ] = None,
    pinned: Annotated[bool, typer.Option("--pinned", help="Put it before all others.")] = False,
    private: Annotated[bool, typer.Option("--private", help="Keep it out of Git.")] = False,
    source: Annotated[str, typer.Option("--source", metavar="NAME", hidden=True)] = "cli",
    session: Annotated[str, typer.Option("--session", metavar="ID", hidden=True)] = "",
    scope: ScopeOption = None,
    project: ProjectOption = None,
) -> Result:
    """Remember something."""
    _check_origin(source, session)
    wanted = given_text(text)
    tags = tuple(dict.fromkeys(one.strip() for one in tag or () if one.strip()))
    place = writable(scope, project)
    added = place.store.add(
        wanted,
        tags=tags,
        type=kind,
        source=source,
        private=private,
        title=title,
        pinned=pinned,
        origin=session,
        now=datetime.now(UTC),
    )
    fact = added.fact
    similar = [warning(f"Similar to {one.fact.id} ({one.score:.2f}): {one.why}") for one in added.similar]
    return Result(
        "add",
        data={
            "fact": written_json(place, fact),
            "similar": [
                {"id": one.fact.id, "score": round(one.score, 4), "why": one.why} for one in added.similar
            ],
        },
        view=(f"Added {fact.id}",),
        messages=(*similar, *about_secrets(fact), *carry_unless_served(place)),
    )


def edit(
    fact: FactArgument,
    text: Annotated[
        str | None, typer.Option("--text", metavar="TEXT", help="The new text; `-` reads it from stdin.")
    ] = None,
    scope: ScopeOption = None,
    project: ProjectOption = None,
) -> Result:
    """Change a fact's text, in your editor or by --text.

    The editor is that of $VISUAL or $EDITOR.
    """
    place, found = holding(fact, scope, project)
    new = (
        edited(found.id, found.body, lambda: place.store.find(found.path).body)
        if text is None
        else given_text(text)
    )
    if new.strip() == found.body.strip():
        return Result(
            "edit", data={"fact": written_json(place, found), "changed": False}, view=("Nothing changed.",)
        )
    changed = place.store.edit(found.path, new)
    return Result(
        "edit",
        data={"fact": written_json(place, changed), "changed": True},
        view=(f"Changed {changed.id}",),
        messages=(*about_secrets(changed), *carry_unless_served(place)),
    )


def _check_origin(source: str, session: str) -> None:
    """What a program says of itself stands in the fact's frontmatter: plain names only. Raises UsageError."""
    for option, value in (("--source", source or "?"), ("--session", session)):
        if not _PLAIN.fullmatch(value):
            raise UsageError(f"{option} takes letters, digits and `._:-`, at most 100: {value!r}")


def given_text(given: str) -> str:
    """The text itself, or what stdin holds for `-`. Raises UsageError where it is empty or no UTF-8."""
    if given == "-":
        try:
            given = sys.stdin.buffer.read().decode("utf-8-sig")
        except UnicodeDecodeError as error:
            raise UsageError("The text on stdin isn't UTF-8.", detail=str(error)) from error
    try:
        given.encode()
    except UnicodeEncodeError as error:
        raise UsageError("The text isn't UTF-8.", detail=str(error)) from error
    if not given.strip():
        raise UsageError("The text is empty.")
    return given


def written_json(place: Place, fact: Fact) -> dict[str, Json]:
    """A fact that a command has just written, with where its file is."""
    return {
        **fact_json(place, fact, private_ids(place.store.scan())),
        "file": str(place.directory / fact.path),
    }


def about_secrets(fact: Fact) -> tuple[Message, ...]:
    """What follows where a text that was written seems to hold a credential."""
    if not fact.secrets:
        return ()
    kinds = ", ".join(fact.secrets)
    return (
        warning(
            f"The text seems to hold a secret ({kinds}): it stays out of Git and of every agent's memory."
        ),
    )
