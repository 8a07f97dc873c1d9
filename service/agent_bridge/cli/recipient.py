"""Whom a person means by what they typed as the recipient of a message. Pure."""

from __future__ import annotations

import os
from collections.abc import Iterable
from difflib import get_close_matches

from agent_bridge.channel.directory import AgentRow
from agent_bridge.channel.errors import AmbiguousError, InvalidError, UnknownError
from agent_bridge.channel.targets import Request, bridged, resolve
from agent_bridge.cli.agent_rows import candidates
from agent_bridge.cli.messages_shown import shown_name
from agent_bridge.cli.person import Person

_ALIKE = 0.7
"""From which share of equal letters on a word counts as mistyped."""


def recipient(rows: Iterable[AgentRow], target: str, who: Person, *, client: str | None = None) -> AgentRow:
    """The session that `target` means: its id or the beginning of it, its name, or a project.

    A project is a part of its path or name, or `.` and other relative paths of directories. `client` is a
    part of the client program's name: a session of another program is never meant.
    Raises UnknownError, AmbiguousError with the candidates, InvalidError for a message to oneself.
    """
    rows = tuple(rows)
    there = [one for one in rows if one.identity == who.identity and one.is_client and one.healthy]
    if client is not None:
        rows = tuple(one for one in rows if client.casefold() in (one.client_name or "").casefold())
    asked = Request(identity=who.identity, sender_id=who.agent_id)
    own = [one for one in rows if one.identity == who.identity and one.is_client]
    if target == who.agent_id:
        raise InvalidError(
            "That is yourself: a message to oneself reaches nobody.",
            remedy="`agent-bridge add` remembers something for every agent.",
        )
    if any(one.agent_id.startswith(target) for one in own):
        return _by_id(rows, _with(asked, client_id=target))
    named = [one for one in own if one.healthy and one.name.casefold() == target.casefold()]
    named = [one for one in named if one.agent_id != who.agent_id]
    if named:
        return _only([bridged(one, own) for one in named], target)
    try:
        return resolve(rows, _with(asked, project=project_meant(target)))
    except UnknownError as error:
        if client is None and target.startswith("client-"):
            return _by_id(rows, _with(asked, client_id=target))  # or it says what became of that one
        program = "" if client is None else f" of {shown_name(client)!r}"
        raise UnknownError(
            f"No session{program} that is there has the id or name {shown_name(target)!r},"
            " or works in such a project.",
            remedy=_near(target, [one for one in there if one.agent_id != who.agent_id]),
        ) from error


def _by_id(rows: Iterable[AgentRow], request: Request) -> AgentRow:
    try:
        return resolve(rows, request)
    except UnknownError as error:
        if error.remedy:
            raise
        listed = "See `agent-bridge agents` for the sessions there are."
        raise UnknownError(error.title, detail=error.detail, remedy=listed) from error


def _near(target: str, rows: list[AgentRow]) -> str:
    """What to do instead: the sessions whose name or project is written alike, else where all are listed."""
    wanted = target.casefold()
    alike = [
        one
        for one in rows
        if get_close_matches(wanted, [word.casefold() for word in _words_of(one)], n=1, cutoff=_ALIKE)
    ]
    if alike:
        return f"Is one of these meant?\n{candidates(alike)}"
    return (
        "`agent-bridge agents` lists who is there."
        if rows
        else "Nobody is there: see `agent-bridge agents --all`."
    )


def _words_of(one: AgentRow) -> list[str]:
    return [one.agent_id, one.name, one.project_name, os.path.basename(one.project_path)]  # noqa: PTH119


def _with(request: Request, **said: str | None) -> Request:
    return Request(identity=request.identity, sender_id=request.sender_id, **said)


def _only(rows: list[AgentRow], target: str) -> AgentRow:
    different = list({one.agent_id: one for one in rows}.values())
    if len(different) > 1:
        raise AmbiguousError(
            f"{shown_name(target)!r} means several sessions.",
            detail=candidates(different),
            remedy="Name one by its id.",
        )
    return different[0]


def project_meant(target: str) -> str:
    """A relative path of a directory (`.`) as the whole path, anything else as it is."""
    is_relative = target.startswith((".", "~")) or "/" in target
    whole = os.path.realpath(os.path.expanduser(target))  # noqa: PTH111 - "~nobody" is left as it is, no error
    return whole if is_relative and os.path.isdir(whole) else target  # noqa: PTH112
