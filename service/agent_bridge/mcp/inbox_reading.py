"""What an inbox shows, read from the store of messages in a thread of the registry's.

Texts are read one by one, only of what is shown, and no more than an answer has room for.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal

from agent_bridge.channel.errors import UnknownError
from agent_bridge.channel.ids import MAX_ID
from agent_bridge.channel.model import Conversation, Message
from agent_bridge.channel.plain import one_line
from agent_bridge.channel.storage.answers import ConversationQuery
from agent_bridge.channel.targets import bridged
from agent_bridge.mcp.bounded import HEAD_BYTES, Part, quoted
from agent_bridge.mcp.peers import peer_of
from agent_bridge.mcp.shown_message import Shown, previewed, whole
from agent_bridge.mcp.tool import ANSWER_BYTES

if TYPE_CHECKING:
    from collections.abc import Mapping

    from agent_bridge.channel.directory import AgentRow
    from agent_bridge.channel.storage.store import Store

View = Literal["pending", "expired", "all"]

PENDING_SHOWN = 3
"""Messages of one thread that a list shows; the thread itself has the others."""
OUTBOUND_SHOWN = 10
OUTBOUND_BYTES = 6_000
_STEP = 5
_AROUND = 2_000
"""Bytes of what stands around a thread's messages, as a rule."""
_LEAST = 4_000
"""Bytes that a thread in full needs at least; where fewer are left it is for the next page."""


@dataclass(frozen=True, slots=True)
class Reader:
    """Whose inbox it is, and whom they see in the list of sessions."""

    identity: str
    agent_id: str
    rows: Mapping[str, AgentRow]


@dataclass(slots=True)
class Listing:
    """Some threads. `total` is counted before any cut; `next` is the cursor of the next page."""

    total: int
    parts: list[Part] = field(default_factory=list)
    shown: list[Shown] = field(default_factory=list)
    next: int | None = None
    outbound: list[Part] = field(default_factory=list)
    outbound_total: int = 0


@dataclass(frozen=True, slots=True)
class _Thread:
    conversation_id: str
    seq: int
    status: str
    pending: tuple[str, ...]


def listing(
    store: Store, reader: Reader, view: View, *, limit: int, before: int | None, in_full: bool
) -> Listing:
    """A page of threads, the one with the newest message first."""
    total, threads = _threads(store, reader, view, before)
    found = Listing(total)
    left = ANSWER_BYTES - HEAD_BYTES
    if before is None and view != "expired":
        _add_outbound(store, reader, found, limit)
        left -= sum(part.weight() for part in found.outbound)
    last: int | None = None
    for thread in threads:
        if len(found.parts) >= limit:
            found.next = last
            break
        part, shown = _entry(store, reader, thread, left if in_full else None)
        if part.weight() > left and not found.parts:
            part, shown = _entry(store, reader, thread, None)  # which has room in any case
        if part.weight() > left or (in_full and left < _LEAST and found.parts):
            found.next = last
            break
        left -= part.weight()
        last = thread.seq
        found.parts.append(part)
        found.shown += shown
    return found


def thread_page(
    store: Store, reader: Reader, conversation_id: str, *, limit: int, before: int | None
) -> tuple[list[Shown], int | None]:
    """One thread's newest messages before the cursor, oldest first, and the cursor for those before them.
    Raises UnknownError where the reader takes no part in it."""
    check_part(store, reader, conversation_id)
    left = ANSWER_BYTES - HEAD_BYTES
    found: list[Shown] = []
    for message in _messages(store, reader, conversation_id, before):
        if len(found) >= limit:
            break
        shown = whole(message, left, can_be_cut=not found)
        if shown is None:
            break
        left -= shown.part.weight()
        before = message.seq
        found.append(shown)
    else:
        return found[::-1], None
    return found[::-1], before


def one_message(
    store: Store, reader: Reader, message_id: str, conversation_id: str | None, offset: int
) -> Shown:
    """One message from that character on. Raises UnknownError."""
    message = store.message(reader.identity, message_id)
    if message is None or conversation_id not in (None, message.conversation_id):
        raise UnknownError(
            "There is no such message",
            detail=one_line(message_id, MAX_ID),
            remedy="channel_inbox lists them.",
        )
    check_part(store, reader, message.conversation_id)
    shown = whole(message, ANSWER_BYTES - HEAD_BYTES, offset=offset)
    return shown or previewed(message)


def check_part(store: Store, reader: Reader, conversation_id: str) -> tuple[str, ...]:
    """Who takes part in a conversation. Raises UnknownError where the reader doesn't, as where it isn't
    there: threads of others are none of its business."""
    agents, is_for_all = store.agents_in(reader.identity, conversation_id)
    if reader.agent_id not in agents and not is_for_all:
        raise UnknownError(
            "This session has no such conversation",
            detail=one_line(conversation_id, MAX_ID),
            remedy="channel_inbox(pendingOnly=false) lists its conversations.",
        )
    return agents


def reply_with(reader: Reader, message: Message) -> dict[str, Any]:
    """What `reply` is called with to answer that message."""
    sender = reader.rows.get(message.from_agent_id)
    to = sender if sender is None else bridged(sender, reader.rows.values())
    data = {
        "agentId": message.from_agent_id if to is None else to.agent_id,
        "conversationId": message.conversation_id,
        "replyTo": message.message_id,
    }
    if sender is not None:
        data["peerType"] = peer_of(sender).kind
    if data["agentId"] != message.from_agent_id:
        data["originalFromAgentId"] = message.from_agent_id
    return data


def how_to_reply(data: Mapping[str, Any]) -> str:
    """The same as a call."""
    call = ", ".join(f"{name}={quoted(data[name])}" for name in ("agentId", "conversationId", "replyTo"))
    return f"Answer: reply({call}, message=…)"


def _threads(store: Store, reader: Reader, view: View, before: int | None) -> tuple[int, Iterator[_Thread]]:
    if view == "all":
        query = ConversationQuery(
            identity=reader.identity,
            participant=reader.agent_id,
            agent_id=reader.agent_id,
            archived=None,
            before=before,
            limit=_STEP,
        )
        return store.conversation_count(query), _all(store, reader, query)
    side: Literal["open", "expired"] = "open" if view == "pending" else "expired"
    awaiting = store.awaiting(reader.identity, reader.agent_id, side)
    return len(awaiting), (
        _Thread(one.conversation_id, one.seq, view, one.message_ids)
        for one in awaiting
        if before is None or one.seq < before
    )


def _all(store: Store, reader: Reader, query: ConversationQuery) -> Iterator[_Thread]:
    awaiting = {one.conversation_id: one for one in store.awaiting(reader.identity, reader.agent_id, "open")}
    while True:
        page = store.conversations(query)
        # Their last messages come along, and may be large: what isn't needed goes before the next is read.
        names = [_name(one) for one in page.items]
        cursor = page.next
        del page
        for name, seq, status in names:
            known = awaiting.get(name)
            yield _Thread(name, seq, status, () if known is None else known.message_ids)
        if cursor is None:
            return
        query = replace(query, before=cursor)


def _name(one: Conversation) -> tuple[str, int, str]:
    return one.conversation_id, one.last_message.seq, one.status.value


def _entry(store: Store, reader: Reader, thread: _Thread, room: int | None) -> tuple[Part, list[Shown]]:
    """A thread; its messages in full, as far as there is room, where `room` says how much."""
    newest = next(_messages(store, reader, thread.conversation_id, None))
    pending = [
        previewed(message)
        for name in thread.pending[:PENDING_SHOWN]
        if (message := newest if name == newest.message_id else store.message(reader.identity, name))
    ]
    asking = next((one.message for one in pending if one.message.expects_response), None)
    status = "active" if thread.status == "pending" and asking is None else thread.status
    peer = reader.rows.get(_other(newest, reader.agent_id))
    data: dict[str, Any] = {
        "conversationId": thread.conversation_id,
        "status": status,
        "awaitingReply": asking is not None and status != "expired",
        "lastAckState": newest.state.value,
        "lastUpdatedAt": newest.created_at,
        "lastMessagePreview": one_line(newest.content, 160),
    }
    title = f"Conversation {one_line(thread.conversation_id, MAX_ID)}: {status}"
    if peer is not None:
        data |= {"peerType": peer_of(peer).kind, "peerLabel": peer_of(peer).label}
        title += f", with {one_line(peer.name, 80)} ({peer_of(peer).label})"
    if asking is not None and asking.expires_at is not None:
        data["expiresAt"] = asking.expires_at
    lines = [title]
    data["pendingMessages"] = [one.part.data for one in pending]
    data["pendingCount"] = len(thread.pending)
    if room is not None:
        shown, more = _in_full(store, reader, thread.conversation_id, room - _AROUND)
        data["pendingMessages"] = [{"messageId": one.message.message_id} for one in pending]
        data["messages"] = [one.part.data for one in shown]
        lines += [one.part.text for one in shown]
        if more:
            data["earlierMessages"] = True
            lines.append(f"Earlier ones: channel_inbox(conversationId={quoted(thread.conversation_id)})")
    else:
        shown = pending or [previewed(newest)]
        lines += [one.part.text for one in shown]
        if len(thread.pending) > len(pending):
            lines.append(
                f"{len(thread.pending) - len(pending)} more await you here:"
                f" channel_inbox(conversationId={quoted(thread.conversation_id)})"
            )
    if asking is not None:
        data["replyWith"] = reply_with(reader, asking)
        lines.append(how_to_reply(data["replyWith"]))
    return Part("\n".join(lines), data), shown


def _in_full(store: Store, reader: Reader, conversation_id: str, room: int) -> tuple[list[Shown], bool]:
    """A thread's newest messages as far as there is room, oldest first, and whether there are others."""
    found: list[Shown] = []
    for message in _messages(store, reader, conversation_id, None):
        shown = whole(message, room, can_be_cut=False) or (previewed(message) if not found else None)
        if shown is None:
            return found[::-1], True
        room -= shown.part.weight()
        found.append(shown)
    return found[::-1], False


def _add_outbound(store: Store, reader: Reader, found: Listing, limit: int) -> None:
    asked = store.awaiting(reader.identity, reader.agent_id, "asked")
    found.outbound_total = len(asked)
    left = OUTBOUND_BYTES
    for one in asked[: min(limit, OUTBOUND_SHOWN)]:
        message = store.message(reader.identity, one.message_ids[0])
        if message is None:
            continue
        shown = previewed(message)
        data = {"conversationId": one.conversation_id, "direction": "outbound", **shown.part.data}
        part = Part(f"Conversation {one_line(one.conversation_id, MAX_ID)}\n{shown.part.text}", data)
        left -= part.weight()
        if left < 0:
            break
        found.outbound.append(part)


def _messages(store: Store, reader: Reader, conversation_id: str, before: int | None) -> Iterator[Message]:
    """A conversation's messages, newest first, one at a time."""
    while True:
        page = store.conversation(reader.identity, conversation_id, before=before, limit=1)
        if not page.messages:
            return
        yield page.messages[-1]
        if page.next is None:
            return
        before = page.next


def _other(message: Message, agent_id: str) -> str:
    return message.from_agent_id if message.from_agent_id != agent_id else (message.to_agent_id or "")
