"""`send` and `reply`: a person writes to an agent, and hears how far it came."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from enum import StrEnum
from typing import Annotated

import typer

from agent_bridge.channel import ids
from agent_bridge.channel.clock import wall_ms
from agent_bridge.channel.errors import AmbiguousError, InvalidError, UnknownError
from agent_bridge.channel.model import AckState, ActorType, Draft, Kind, Message
from agent_bridge.channel.writes import Acknowledge
from agent_bridge.cli.agent_rows import row
from agent_bridge.cli.app import JsonOption, Verbs
from agent_bridge.cli.durations import seconds
from agent_bridge.cli.messages_shown import first_line, receipt, shown_message, shown_name
from agent_bridge.cli.person import Person, person
from agent_bridge.cli.printing import harmless_line, put, tell
from agent_bridge.cli.recipient import recipient
from agent_bridge.cli.registry_access import IdentityOption, connect, identity_of
from agent_bridge.cli.result import Json, Result, failure, info
from agent_bridge.cli.write_verbs import given_text
from agent_bridge.client.answers import Posted
from agent_bridge.client.http import Registry
from agent_bridge.errors import AgentBridgeError, UsageError

_PANEL = "Channel"
_PATIENCE = 300.0
"""Seconds that `--wait` waits where nothing else is said."""
_PAGE = 200
_PAGES = 50
_QUESTION_MARKS = "?？؟"


class KindName(StrEnum):
    """What a person may send."""

    chat = "chat"
    task_request = "task_request"
    task_result = "task_result"
    error = "error"


class NoAnswerError(AgentBridgeError):
    """The message is stored, and nobody answered it in time."""

    code = "no_answer"


class NotAnsweredError(AgentBridgeError):
    """The message is stored and was given up."""

    code = "message_failed"


ExpectsOption = Annotated[
    bool | None,
    typer.Option(
        "--expects-response/--no-reply", help="Whether an answer is awaited (default: by what the text says)."
    ),
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
        typer.Option("--client", metavar="TEXT", help="The client program, where a project has several."),
    ] = None,
    conversation: Annotated[
        str | None, typer.Option("--conversation", metavar="ID", help="Say it in this conversation.")
    ] = None,
    reply_to: Annotated[
        str | None, typer.Option("--reply-to", metavar="ID", help="It answers this message.")
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

    Stored means that it is safe in the service; the session gets it now, or when it is there again.
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
        if waits:
            return _waited("send", who, draft, patience, as_json=as_json)
        posted = registry.send(draft)
    return _sent("send", posted, inferred=expects is None)


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
    expects: ExpectsOption = None,
    wait: WaitOption = False,
    timeout: TimeoutOption = None,
    identity: IdentityOption = None,
    as_json: JsonOption = False,
) -> Result:
    """Answer a message. An answer awaits none itself, unless it holds a question mark."""
    waits = wait or timeout is not None
    content = given_text(text)
    who = person(identity_of(identity))
    if agent is not None:
        who = replace(who, agent_id=agent)
    patience = _patience(timeout)
    with connect(identity) as registry:
        answered = _find(registry, who.agent_id, message, conversation)
        if answered.from_agent_id == who.agent_id:
            raise InvalidError("That message is your own; it isn't yours to answer.")
        asks = any(mark in content for mark in _QUESTION_MARKS) if expects is None else expects
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
            expects_response=_expects(expects, waits=waits) if waits else asks,
        )
        if waits:
            return _waited("reply", who, draft, patience, as_json=as_json)
        posted = registry.send(draft)
    return _sent("reply", posted, inferred=expects is None)


def _sent(command: str, posted: Posted, *, inferred: bool) -> Result:
    message = posted.message
    awaits = "awaits an answer" if message.expects_response else "awaits no answer"
    why = " (by what it says; --expects-response or --no-reply decide)" if inferred else ""
    return Result(
        command,
        data=_data(posted, message.state, inferred=inferred),
        view=(
            f"{receipt(message.state).capitalize()} for {harmless_line(message.to_agent_id or 'everybody')}: "
            f"message {harmless_line(message.message_id)}",
        ),
        messages=(
            info(f"It {awaits}{why}; conversation {harmless_line(message.conversation_id)}."),
            *((info("It was stored before; nothing was sent twice."),) if posted.deduplicated else ()),
        ),
    )


def _waited(command: str, who: Person, draft: Draft, patience: float, *, as_json: bool) -> Result:
    """Send it, wait, and tell what came of it; the answer counts as displayed once it was put out."""
    from agent_bridge.cli.until_told import run_until_told
    from agent_bridge.cli.waiting import Wait
    from agent_bridge.config import load_settings

    def told(state: AckState) -> None:
        if not as_json:
            tell(f"{receipt(state).capitalize()}.")

    work = Wait(who, draft, told).carry_out(timeout_s=patience, unhealthy_s=load_settings().agent_unhealthy_s)
    waited = run_until_told(work)
    data = {
        **_data(waited.posted, waited.state, inferred=False),
        "answer": None if waited.answer is None else waited.answer.as_wire(),
        "detail": waited.detail,
    }
    if waited.answer is not None:
        if not as_json:
            put(shown_message(waited.answer, full=True))
        _displayed(who, waited.answer)
        return Result(command, data=data)
    where = f"agent-bridge conversations {harmless_line(waited.posted.message.conversation_id)}"
    if waited.state is AckState.ANSWERED:
        return Result(command, data=data, view=(f"Answered. {first_line(waited.detail or '')}".rstrip(),))
    if waited.state is AckState.FAILED:
        error: AgentBridgeError = NotAnsweredError(
            "The message was given up.", detail=first_line(waited.detail or ""), remedy=f"See `{where}`."
        )
    else:
        error = NoAnswerError(
            f"No answer within {patience:g} s; the message is {receipt(waited.state)}.",
            remedy=f"It can still be answered: `agent-bridge inbox`, or `{where}`.",
        )
    return failure(command, error, data=data)


def _displayed(who: Person, answer: Message) -> None:
    with connect(who.identity) as registry:
        registry.ack(
            Acknowledge(
                identity=who.identity,
                conversation_id=answer.conversation_id,
                message_id=answer.message_id,
                state=AckState.DISPLAYED,
                actor_id=who.agent_id,
                actor_type=ActorType.CLIENT,
            )
        )


def _data(posted: Posted, state: AckState, *, inferred: bool) -> dict[str, Json]:
    return {
        "message": posted.message.as_wire(),
        "deduplicated": posted.deduplicated,
        "receipt": receipt(state),
        "expectsResponse": posted.message.expects_response,
        "inferred": inferred,
    }


def _find(registry: Registry, agent_id: str, key: str, conversation: str | None) -> Message:
    """The message that `key` means, in that conversation or in the agent's inbox."""
    found: dict[str, Message] = {}
    for message in _where(registry, agent_id, conversation):
        if message.message_id == key:
            return message
        if key and message.message_id.startswith(key):
            found[message.message_id] = message
    if len(found) > 1:
        shown = [
            f"{harmless_line(one.message_id)}  {first_line(one.content)}" for one in list(found.values())[:8]
        ]
        raise AmbiguousError(
            f"{shown_name(key)!r} means several messages.",
            detail="\n".join(shown),
            remedy="Say more of the id.",
        )
    if not found:
        place = "that conversation" if conversation else "the inbox"
        raise UnknownError(
            f"There is no message {shown_name(key)!r} in {place}.",
            remedy="`agent-bridge inbox --all` lists yours; --conversation says where else it is.",
        )
    return next(iter(found.values()))


def _where(registry: Registry, agent_id: str, conversation: str | None) -> Iterator[Message]:
    before: str | None = None
    for _ in range(_PAGES):
        if conversation is not None:
            thread = registry.conversation(conversation, limit=_PAGE, before=before)
            messages, before = thread.messages, thread.next_before
        else:
            page = registry.inbox(agent_id, view="all", limit=_PAGE, before=before)
            messages, before = page.items, page.next_before
        yield from messages
        if before is None:
            return


def _expects(given: bool | None, *, waits: bool) -> bool | None:  # noqa: FBT001 - three states
    if waits and given is False:
        raise UsageError("--no-reply and --wait exclude each other.")
    return True if waits else given


def _patience(timeout: str | None) -> float:
    return _PATIENCE if timeout is None else seconds(timeout, "--timeout")


def _deadline(expires_in: str | None) -> int | None:
    return None if expires_in is None else wall_ms() + int(seconds(expires_in, "--expires-in") * 1000)
