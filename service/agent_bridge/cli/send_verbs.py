"""`send` and `reply`: a person writes to an agent, and hears how far it came."""

from __future__ import annotations

from dataclasses import replace
from enum import StrEnum
from typing import Annotated

import typer

from agent_bridge.channel import ids
from agent_bridge.channel.clock import wall_ms
from agent_bridge.channel.errors import InvalidError
from agent_bridge.channel.expects import asks
from agent_bridge.channel.model import Draft, Kind
from agent_bridge.cli import registry_access
from agent_bridge.cli.agent_rows import known_id, row
from agent_bridge.cli.app import JsonOption, Verbs
from agent_bridge.cli.durations import seconds
from agent_bridge.cli.find_message import find_message
from agent_bridge.cli.person import person
from agent_bridge.cli.recipient import recipient
from agent_bridge.cli.registry_access import IdentityOption, connect, identity_of
from agent_bridge.cli.result import Result
from agent_bridge.cli.sent_shown import sent, waited_for
from agent_bridge.cli.write_verbs import given_text
from agent_bridge.errors import UsageError

_PANEL = "Channel"
_PATIENCE = 300.0
"""Seconds that `--wait` waits where nothing else is said."""


class KindName(StrEnum):
    """What a person may send."""

    chat = "chat"
    task_request = "task_request"
    task_result = "task_result"
    error = "error"


_EXPECTS = "--expects-response/--no-reply"
ExpectsOption = Annotated[
    bool | None,
    typer.Option(
        _EXPECTS,
        help="Whether an answer is awaited (default: unless the text says `FYI`, `no reply` or the like).",
    ),
]
AsksBackOption = Annotated[
    bool | None,
    typer.Option(_EXPECTS, help="Whether an answer is awaited (default: if it holds a question mark)."),
]
WaitOption = Annotated[
    bool, typer.Option("--wait", help="Wait for the answer, five minutes where --timeout says nothing.")
]
TimeoutOption = Annotated[
    str | None, typer.Option("--timeout", metavar="TIME", help="Wait so long: 90, 45s, 10m, 2h.")
]
ExpiresOption = Annotated[
    str | None,
    typer.Option("--expires-in", metavar="TIME", help="After this it counts as failed, unless answered."),
]
TextArgument = Annotated[str, typer.Argument(metavar="TEXT", help="What to say; `-` reads it from stdin.")]


def register(verbs: Verbs) -> None:
    """Add the commands of this module."""
    verbs.verb("send", panel=_PANEL)(send)
    verbs.verb("reply", panel=_PANEL)(reply)


def send(
    target: Annotated[
        str, typer.Argument(metavar="TARGET", help="A session: its id, name, or project (`.` is this one).")
    ],
    text: TextArgument,
    *,
    client: Annotated[
        str | None,
        typer.Option("--client", metavar="TEXT", help="Only to a session of this client program."),
    ] = None,
    conversation: Annotated[
        str | None, typer.Option("--conversation", metavar="ID", help="Say it in this conversation.")
    ] = None,
    reply_to: Annotated[
        str | None,
        typer.Option("--reply-to", metavar="ID", help="It answers this message."),
    ] = None,
    kind: Annotated[KindName, typer.Option("--kind", help="What it is.")] = KindName.chat,
    expects: ExpectsOption = None,
    expires_in: ExpiresOption = None,
    wait: WaitOption = False,
    timeout: TimeoutOption = None,
    identity: IdentityOption = None,
    as_json: JsonOption = False,
) -> Result:
    """Send a message to an agent's session, and say how far it came.

    Stored means that it is safe in the service; the session gets it now, or once it is connected again. The
    session has to be in the list of `agents`.
    """
    waits = wait or timeout is not None
    who = person(identity_of(identity))
    draft = Draft(
        identity=who.identity,
        from_agent_id=who.agent_id,
        from_agent_name=who.name,
        kind=Kind(kind.value),
        content=given_text(text),
        conversation_id=conversation,
        message_id=ids.message_id(),
        reply_to=reply_to,
        expires_at=_deadline(expires_in),
        expects_response=_expects(expects, waits=waits),
    )
    patience = _patience(timeout)
    with connect(identity) as registry:
        to = recipient(map(row, registry.agents()), target, who, client=client)
        draft = replace(draft, to_agent_id=to.agent_id)
        if reply_to is not None:  # an answer to nothing answers nobody
            answered = find_message(registry, who.agent_id, reply_to, conversation)
            draft = replace(draft, reply_to=answered.message_id)
    if waits:
        return waited_for("send", who, draft, patience, as_json=as_json)
    return sent("send", registry_access.send(draft), inferred=expects is None)


def reply(
    message: Annotated[
        str, typer.Argument(metavar="MESSAGE", help="The message's id, or the beginning of it.")
    ],
    text: TextArgument,
    *,
    agent: Annotated[
        str | None, typer.Option("--as", metavar="AGENT", help="Whose inbox it is in (default: yours).")
    ] = None,
    conversation: Annotated[
        str | None,
        typer.Option("--conversation", metavar="ID", help="Where it is, if it isn't in your inbox."),
    ] = None,
    expects: AsksBackOption = None,
    wait: WaitOption = False,
    timeout: TimeoutOption = None,
    identity: IdentityOption = None,
    as_json: JsonOption = False,
) -> Result:
    """Answer a message."""
    waits = wait or timeout is not None
    content = given_text(text)
    who = person(identity_of(identity))
    patience = _patience(timeout)
    with connect(identity) as registry:
        if agent is not None:
            who = replace(who, agent_id=known_id([row(wire) for wire in registry.agents()], agent))
        answered = find_message(registry, who.agent_id, message, conversation)
    if answered.from_agent_id == who.agent_id:
        raise InvalidError("That message is your own; it isn't yours to answer.")
    asks_back = asks(content) if expects is None else expects
    draft = Draft(
        identity=who.identity,
        from_agent_id=who.agent_id,
        from_agent_name=who.name,
        kind=Kind.TASK_RESULT if answered.kind is Kind.TASK_REQUEST else Kind.CHAT,
        content=content,
        to_agent_id=answered.from_agent_id,
        conversation_id=answered.conversation_id,
        message_id=ids.message_id(),
        reply_to=answered.message_id,
        expects_response=_expects(expects, waits=waits) if waits else asks_back,
    )
    if waits:
        return waited_for("reply", who, draft, patience, as_json=as_json)
    return sent("reply", registry_access.send(draft), inferred=expects is None)


def _expects(given: bool | None, *, waits: bool) -> bool | None:  # noqa: FBT001 - three states
    if waits and given is False:
        raise UsageError("--no-reply and --wait exclude each other.")
    return True if waits else given


def _patience(timeout: str | None) -> float:
    return _PATIENCE if timeout is None else seconds(timeout, "--timeout")


def _deadline(expires_in: str | None) -> int | None:
    return None if expires_in is None else wall_ms() + int(seconds(expires_in, "--expires-in") * 1000)
