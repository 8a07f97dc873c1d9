"""`inbox` and `conversations`: a person reads what agents wrote."""

from __future__ import annotations

import shlex
from typing import Annotated

import typer

from agent_bridge.channel.clock import wall_ms
from agent_bridge.channel.errors import AmbiguousError, UnknownError
from agent_bridge.channel.model import ConversationStatus, Message
from agent_bridge.cli.agent_rows import known_id, row
from agent_bridge.cli.app import JsonOption, Verbs
from agent_bridge.cli.mark_displayed import mark_displayed
from agent_bridge.cli.messages_shown import conversation_table, shown_ack, shown_message, shown_name
from agent_bridge.cli.person import Person, person
from agent_bridge.cli.printing import harmless_line, put
from agent_bridge.cli.registry_access import IdentityOption, connect, identity_of
from agent_bridge.cli.result import Message as Remark
from agent_bridge.cli.result import Result, info
from agent_bridge.cli.sent_messages import sent_by
from agent_bridge.client.answers import Page, Thread
from agent_bridge.client.http import Registry, View
from agent_bridge.errors import UsageError

_PANEL = "Channel"
_MADE, _ENOUGH = 36, 8
"""Characters of an id that the registry made, and of those that are enough to name it."""
_CURSOR_DIGITS = 17
_LISTED = 8
_NO_CONVERSATIONS = "There are no conversations; --archived shows those that came to an end a while ago."

LimitOption = Annotated[
    int, typer.Option("--limit", "-n", min=1, max=200, metavar="N", help="So many at most.")
]
BeforeOption = Annotated[
    str | None,
    typer.Option("--before", metavar="CURSOR", help="The page after: what the last one said at its end."),
]
FullOption = Annotated[bool, typer.Option("--full", help="Show whole texts.")]


def register(verbs: Verbs) -> None:
    """Add the commands of this module."""
    verbs.verb("inbox", panel=_PANEL)(inbox)
    verbs.verb("conversations", panel=_PANEL)(conversations)


def inbox(
    *,
    agent: Annotated[
        str | None,
        typer.Option("--as", metavar="AGENT", help="Another one's inbox; nothing is marked then."),
    ] = None,
    expired: Annotated[
        bool, typer.Option("--expired", help="What stayed unanswered until its time was over.")
    ] = False,
    every: Annotated[bool, typer.Option("--all", help="What was dealt with, too.")] = False,
    sent: Annotated[
        bool, typer.Option("--sent", help="What was sent instead, the newest first, and how far it came.")
    ] = False,
    peek: Annotated[bool, typer.Option("--peek", help="Don't mark anything as displayed.")] = False,
    limit: LimitOption = 25,
    before: BeforeOption = None,
    full: FullOption = False,
    identity: IdentityOption = None,
    as_json: JsonOption = False,
) -> Result:
    """Show the messages that await you, the oldest first.

    What is shown is marked as displayed: a message that awaits no answer leaves the inbox by that.
    Each project has an inbox of its own; there is one more for all other directories.
    """
    if expired + every + sent > 1:
        raise UsageError("--expired, --all and --sent exclude each other.")
    view: View = "expired" if expired else "all" if every else "open"
    before = _checked_cursor(before)
    who = person(identity_of(identity))
    with connect(identity) as registry:
        agent_id = who.agent_id if agent is None else _agent_id(registry, agent)
        if sent:
            page = sent_by(registry, agent_id, limit=limit, before=before)
        else:
            page = registry.inbox(agent_id, view=view, limit=limit, before=before)
        now = wall_ms()
        texts = [shown_message(message, full=full, now=now, me=who.agent_id) for message in page.items]
        if texts and not as_json:
            put("\n\n".join(texts))
        to_mark = () if peek or sent or agent_id != who.agent_id else page.items
        marked, trouble = mark_displayed(registry, to_mark, agent_id)
    return Result(
        "inbox",
        data={
            "agentId": agent_id,
            "view": "sent" if sent else view,
            "messages": [message.as_wire() for message in page.items],
            "next": page.next_before,
            "open": page.total,
            "marked": marked,
        },
        messages=(
            *trouble,
            *(_remarks(page, asked=not sent) if page.items else (_nothing(who, agent_id, view, sent=sent),)),
        ),
    )


def conversations(
    conversation: Annotated[
        str | None, typer.Argument(metavar="ID", help="One conversation, in full; the beginning of its id.")
    ] = None,
    *,
    status: Annotated[
        ConversationStatus | None, typer.Option("--status", help="Only those that are so.")
    ] = None,
    participant: Annotated[
        str | None, typer.Option("--participant", metavar="AGENT", help="Only those in which it takes part.")
    ] = None,
    pending: Annotated[bool, typer.Option("--pending", help="Only those that await an answer.")] = False,
    archived: Annotated[
        bool, typer.Option("--archived", help="Only those that came to an end a while ago.")
    ] = False,
    acks: Annotated[
        bool, typer.Option("--acks", help="Of one conversation, how far each message came.")
    ] = False,
    limit: LimitOption = 25,
    before: BeforeOption = None,
    full: FullOption = False,
    identity: IdentityOption = None,
) -> Result:
    """List conversations, the newest first, or show one."""
    before = _checked_cursor(before)
    who = person(identity_of(identity))
    with connect(identity) as registry:
        if conversation is not None:
            if status or participant or pending or archived:
                raise UsageError("One conversation is shown whole; the filters are for the list.")
            thread = _thread(registry, conversation, limit, before)
            return _shown_thread(thread, who.agent_id, full=full, acks=acks)
        if acks:
            raise UsageError("--acks is for one conversation: name it.")
        page = registry.conversations(
            pending=pending,
            status=status,
            participant=None if participant is None else _agent_id(registry, participant),
            archived=archived or None,
            limit=limit,
            before=before,
        )
    is_narrowed = pending or archived or any(one is not None for one in (status, participant, before))
    nothing = "There are no such conversations." if is_narrowed else _NO_CONVERSATIONS
    return Result(
        "conversations",
        data={
            "conversations": [one.as_wire() for one in page.items],
            "next": page.next_before,
            "total": page.total,
        },
        view=(conversation_table(page.items, who.agent_id),),
        messages=_more(page.next_before) if page.items else (info(nothing),),
    )


def _agent_id(registry: Registry, key: str) -> str:
    return known_id([row(wire) for wire in registry.agents()], key)


def _remarks(page: Page[Message], *, asked: bool) -> tuple[Remark, ...]:
    asks = [one for one in page.items if asked and one.expects_response and not one.state.is_terminal]
    answer = (info(f"Answer with `agent-bridge reply {_short(asks[-1].message_id)} TEXT`."),) if asks else ()
    return (*answer, *_more(page.next_before))


def _short(message_id: str) -> str:
    """Enough of an id to type: the beginning of one that the registry made, else the whole."""
    made = len(message_id) == _MADE and set(message_id) <= set("0123456789abcdef-")
    return message_id[:_ENOUGH] if made else shlex.quote(harmless_line(message_id))


def _nothing(who: Person, agent_id: str, view: View, *, sent: bool) -> Remark:
    if sent:
        return info("Nothing was sent from here." if agent_id == who.agent_id else "Nothing was sent by it.")
    if view == "expired":
        return info("Nothing has expired.")
    if agent_id != who.agent_id:
        return info(f"Nothing is there for {shown_name(agent_id)}.")
    mine = f"This is the inbox of {harmless_line(who.project_path)}; every project has its own."
    if view == "all":
        return info(f"The inbox is empty. {mine}")
    return info(f"Nothing awaits you. {mine} --all shows what was dealt with, --sent what you wrote.")


def _checked_cursor(before: str | None) -> str | None:
    if before is not None and not (before.isascii() and before.isdigit() and len(before) < _CURSOR_DIGITS):
        raise UsageError(
            f"--before can't be {shown_name(before)!r}.",
            remedy="Give the number that the page before ended with.",
        )
    return before


def _thread(registry: Registry, key: str, limit: int, before: str | None) -> Thread:
    """The conversation of that id, else the one of the newest whose id begins so."""
    try:
        return registry.conversation(key, limit=limit, before=before)
    except UnknownError:
        found = [
            one.conversation_id
            for archived in (False, True)
            for one in registry.conversations(limit=200, archived=archived).items
            if one.conversation_id.startswith(key)
        ]
        if not found:
            raise UnknownError(
                f"There is no conversation {shown_name(key)!r}.",
                remedy="`agent-bridge conversations` lists them, with --archived those that came to an end.",
            ) from None
        if len(found) > 1:
            raise AmbiguousError(
                f"{shown_name(key)!r} means several conversations.",
                detail="\n".join(map(harmless_line, found[:_LISTED])),
                remedy="Say more of the id.",
            ) from None
    return registry.conversation(found[0], limit=limit, before=before)


def _shown_thread(thread: Thread, me: str, *, full: bool, acks: bool) -> Result:
    now = wall_ms()
    parts = [shown_message(message, full=full, now=now, me=me) for message in thread.messages]
    if acks and thread.acks:
        parts.append("\n".join(shown_ack(ack) for ack in thread.acks))
    hidden = (info("It is hidden from this agent's list."),) if thread.suppressed else ()
    return Result(
        "conversations",
        data={
            "conversationId": thread.conversation_id,
            "messages": [message.as_wire() for message in thread.messages],
            "acknowledgements": [ack.as_wire() for ack in thread.acks],
            "suppressed": thread.suppressed,
            "next": thread.next_before,
        },
        view=("\n\n".join(parts),),
        messages=(*hidden, *_more(thread.next_before)),
    )


def _more(following: str | None) -> tuple[Remark, ...]:
    return () if following is None else (info(f"There are more: `--before {harmless_line(following)}`."),)
