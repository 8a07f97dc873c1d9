"""The routes of the channel: messages, acks, conversations, inboxes, events.

A message is answered after its commit. Lists are arrays; `X-Next-Before` is there when there is more, and is
what `before` takes for the next page.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeVar, cast

from agent_bridge.channel.errors import ChannelError, InvalidError, UnknownError
from agent_bridge.channel.model import ALL_IDENTITIES, ConversationStatus, Draft
from agent_bridge.channel.storage.answers import ConversationQuery, Page, Thread
from agent_bridge.channel.writes import Acknowledged, Done, Event, Retry, Revive, Send, Sent, Suppress
from agent_bridge.registry import fields, wire
from agent_bridge.registry.answers import Answer, Header, as_json, of_json
from agent_bridge.registry.events import encoded, encoded_list, encoded_object
from agent_bridge.registry.paging import gather, gather_events, gather_thread, weight_of

if TYPE_CHECKING:
    from agent_bridge.channel.model import Conversation, Message
    from agent_bridge.channel.storage.store import Store
    from agent_bridge.registry.calls import Call
    from agent_bridge.registry.hub import Hub

T = TypeVar("T")

INBOX_PAGE = 25
CONVERSATIONS_PAGE = 50
THREAD_PAGE = 100
EVENTS_PAGE = 1000


class InboxView(enum.StrEnum):
    """Which messages of an inbox."""

    OPEN = "open"
    EXPIRED = "expired"
    ALL = "all"


class ResyncError(ChannelError):
    """The cursor isn't one of this database's: fetch everything afresh."""

    status: ClassVar[int] = 409
    code = "resync"


class ChannelRoutes:
    """Handlers that turn a call into writes and reads of the hub."""

    def __init__(self, hub: Hub) -> None:
        self._hub = hub

    async def send(self, call: Call) -> Answer:
        """`POST /channel/messages`: 201 the message; 200 the row as first stored where its id is there."""
        sent = await self._send(wire.draft(await call.json(), call.caller.writes_as))
        data = sent.message.as_wire()
        data["deduplicated"] = sent.deduplicated
        return as_json(data, 200 if sent.deduplicated else 201)

    async def notify_claude(self, call: Call) -> Answer:
        """`POST /notify-claude`: a message as above, told to older clients by `claude.notify` too."""
        draft = wire.notification(await call.json(), call.caller.writes_as)
        sent = await self._send(draft)
        if not sent.deduplicated:
            self._hub.publish([_legacy(draft, sent)])
        return as_json(
            {
                "ok": True,
                "conversationId": sent.message.conversation_id,
                "messageId": sent.message.message_id,
                "deduplicated": sent.deduplicated,
            }
        )

    async def acknowledge(self, call: Call) -> Answer:
        """`POST /channel/acks`: 201 the ack."""
        write = wire.acknowledge(await call.json(), call.caller.writes_as)
        outcome = cast("Acknowledged", await self._hub.write(write))
        return as_json(outcome.ack.as_wire(), 201)

    async def message(self, call: Call) -> Answer:
        """`GET /channel/messages/{messageId}`: one message, as it is now."""
        identity, message_id = _one_identity(call), call.path_id("message", "messageId")
        found = await self._hub.read(lambda store: store.message(identity, message_id))
        if found is None:
            raise UnknownError("Message not found")
        return as_json(found.as_wire())

    async def retry(self, call: Call) -> Answer:
        """`POST /channel/messages/{conversationId}/{messageId}/retry`: 200 the message."""
        write = Retry(
            identity=_one_identity(call),
            conversation_id=call.path_id("conversation", "conversationId"),
            message_id=call.path_id("message", "messageId"),
        )
        outcome = cast("Sent", await self._hub.write(write))
        return as_json(outcome.message.as_wire())

    async def conversations(self, call: Call) -> Answer:
        """`GET /channel/conversations`: the one with the newest message first."""
        query = ConversationQuery(
            identity=_many_identities(call),
            participant=call.query_id("participant"),
            agent_id=call.query_id("agentId"),
            status=call.query_word("status", ConversationStatus),
            pending=call.query_flag("pending") or False,
            archived=call.query_flag("archived") or False,
            before=call.query_number("before"),
            limit=call.query_limit(CONVERSATIONS_PAGE),
        )

        def read(store: Store) -> Answer:
            page: Page[Conversation] = gather(
                lambda before, limit: store.conversations(replace(query, before=before, limit=limit)),
                query.before,
                query.limit,
                lambda conversation: weight_of(conversation.last_message),
            )
            return _as_page(page, store.conversation_count(query))

        return await self._hub.read(read)

    async def conversation(self, call: Call) -> Answer:
        """`GET /channel/conversations/{id}`: its newest messages, oldest first, and their acks."""
        identity = _many_identities(call)
        conversation_id = call.path_id("conversation", "conversationId")
        agent_id = call.query_id("agentId")
        before, limit = call.query_number("before"), call.query_limit(THREAD_PAGE)

        def read(store: Store) -> Answer:
            thread = gather_thread(
                partial(store.conversation, identity, conversation_id, agent_id), before, limit
            )
            return _as_thread(thread)

        return await self._hub.read(read)

    async def suppress(self, call: Call) -> Answer:
        """`POST /channel/conversations/{id}/suppress`: hidden from that agent's lists.

        `agentId` stands in the query or in the body.
        """
        agent_id = call.query_id("agentId")
        body = await call.body()
        if agent_id is None and body:
            agent_id = fields.optional_identifier(wire.read(body), "agentId")
        await self._hub.write(Suppress(*_whose_conversation(call, agent_id)))
        return as_json({"suppressed": True})

    async def revive(self, call: Call) -> Answer:
        """`DELETE /channel/conversations/{id}/suppress?agentId=`: shown again."""
        outcome = cast(
            "Done", await self._hub.write(Revive(*_whose_conversation(call, call.query_id("agentId"))))
        )
        return as_json({"revived": outcome.changed})

    async def inbox(self, call: Call) -> Answer:
        """`GET /channel/inbox?agentId=`: what awaits that agent, oldest first."""
        identity = _one_identity(call)
        agent_id = _required(call.query_id("agentId"), "agentId")
        limit, before = call.query_limit(INBOX_PAGE), call.query_number("before")
        view = cast("Literal['open', 'expired', 'all']", str(call.query_word("view", InboxView) or "open"))

        def read(store: Store) -> Answer:
            page: Page[Message] = gather(
                lambda before, limit: store.inbox(identity, agent_id, limit=limit, before=before, view=view),
                before,
                limit,
                weight_of,
            )
            return _as_page(page, store.inbox_count(identity, agent_id) if view == "open" else None)

        return await self._hub.read(read)

    async def events(self, call: Call) -> Answer:
        """`GET /channel/events?since=`: what was stored after that cursor, as the sockets got it."""
        identity = _many_identities(call)
        since = _required(call.query_number("since"), "since")
        epoch = call.query_text("epoch")
        limit = call.query_number("limit", 1, EVENTS_PAGE) or EVENTS_PAGE

        def read(store: Store) -> Answer:
            current, last = store.epoch, store.last_seq()
            if (epoch is not None and epoch != current) or since > last:
                raise _resync()
            events, more = gather_events(partial(store.events_since, identity), since, limit)
            if store.epoch != current:
                raise _resync()
            told = ({"type": event.type, "seq": event.seq, "data": event.data} for event in events)
            data = {
                "epoch": encoded(current),
                "seq": encoded(_reached(events, last, more=more)),
                "more": encoded(more),
                "events": encoded_list(told),
            }
            return of_json(encoded_object(data))

        return await self._hub.read(read)

    async def _send(self, draft: Draft) -> Sent:
        return cast("Sent", await self._hub.write(Send(draft)))


def _reached(events: list[Event], last: int, *, more: bool) -> int:
    """The cursor after these events: `last` was the highest seq before they were read."""
    seq = (events[-1].seq if events else None) or last
    return seq if more else max(seq, last)


def _resync() -> ResyncError:
    return ResyncError("This cursor doesn't fit the database", remedy="Fetch everything afresh.")


def _legacy(draft: Draft, sent: Sent) -> Event:
    data: dict[str, Any] = {
        "agentId": draft.from_agent_id,
        "agentName": draft.from_agent_name,
        "content": draft.content,
        "meta": draft.meta,
        "conversationId": sent.message.conversation_id,
        "messageId": sent.message.message_id,
    }
    present: Mapping[str, Any] = {name: value for name, value in data.items() if value is not None}
    return Event(type="claude.notify", identity=draft.identity, data=present, target=draft.to_agent_id)


def _whose_conversation(call: Call, agent_id: str | None) -> tuple[str, str, str]:
    conversation_id = call.path_id("conversation", "conversationId")
    return _one_identity(call), _required(agent_id, "agentId"), conversation_id


def _one_identity(call: Call) -> str:
    if call.caller.sees == ALL_IDENTITIES:
        raise InvalidError("This needs one identity, not all of them")
    return call.caller.sees


def _many_identities(call: Call) -> str | None:
    return None if call.caller.sees == ALL_IDENTITIES else call.caller.sees


def _required(value: T | None, name: str) -> T:
    if value is None:
        raise InvalidError(f"{name} is required")
    return value


def _as_page(page: Page[Any], total: int | None) -> Answer:
    counted = () if total is None else ((b"x-total-count", b"%d" % total),)
    body = encoded_list(entry.as_wire() for entry in page.items)
    return of_json(body, headers=(*counted, *_next_header(page.next)))


def _as_thread(thread: Thread) -> Answer:
    data = {
        "conversationId": encoded(thread.conversation_id),
        "identity": encoded(thread.identity),
        "messages": encoded_list(message.as_wire() for message in thread.messages),
        "acknowledgements": encoded_list(ack.as_wire() for ack in thread.acks),
        "suppressed": encoded(thread.suppressed),
        "archived": encoded(thread.archived),
    }
    return of_json(encoded_object(data), headers=_next_header(thread.next))


def _next_header(cursor: int | None) -> tuple[Header, ...]:
    return () if cursor is None else ((b"x-next-before", b"%d" % cursor),)
