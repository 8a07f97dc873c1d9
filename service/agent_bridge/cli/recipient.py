"""Whom a person means by what they typed as the recipient of a message. Pure."""

from __future__ import annotations

import os
from collections.abc import Iterable

from agent_bridge.channel.directory import AgentRow
from agent_bridge.channel.errors import AmbiguousError, UnknownError
from agent_bridge.channel.targets import Request, bridged, resolve
from agent_bridge.cli.agent_rows import candidates
from agent_bridge.cli.messages_shown import shown_name
from agent_bridge.cli.person import Person


def recipient(rows: Iterable[AgentRow], target: str, who: Person, *, client: str | None = None) -> AgentRow:
    """The session that `target` means: its id or the beginning of it, its name, or a project.

    A project is a part of its path or name, or `.` and other relative paths of directories. `client` is a
    part of the client program's name, where a project has sessions of several.
    Raises UnknownError, AmbiguousError with the candidates, InvalidError for a message to oneself.
    """
    rows = tuple(rows)
    asked = Request(identity=who.identity, sender_id=who.agent_id)
    own = [one for one in rows if one.identity == who.identity and one.is_client]
    if any(one.agent_id.startswith(target) for one in own):
        return resolve(rows, _with(asked, client_id=target))
    named = [one for one in own if one.healthy and one.name.casefold() == target.casefold()]
    named = [one for one in named if one.agent_id != who.agent_id]
    if named:
        return _only([bridged(one, own) for one in named], target)
    try:
        return resolve(rows, _with(asked, project=project_meant(target), client_type=client))
    except UnknownError as error:
        if target.startswith("client-"):
            return resolve(rows, _with(asked, client_id=target))  # or it says what became of that one
        raise UnknownError(
            f"No session has the id or name {shown_name(target)!r}, or works in such a project.",
            remedy=error.remedy or "`agent-bridge agents --all` lists all sessions.",
        ) from error


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
