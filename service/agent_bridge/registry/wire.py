"""What others send about messages, from JSON to checked values; the same for HTTP and WebSockets.

Each function takes the JSON text or the object read from it, and raises InvalidError that names the field.
Fields that nobody knows are left aside, so that newer clients can talk to an older registry.

`identity` is the one that the request or the socket named, None where it named none; what the object itself
says must agree with it, and counts where nothing else was said.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from agent_bridge.channel import ids
from agent_bridge.channel.errors import InvalidError
from agent_bridge.channel.model import GLOBAL_IDENTITY, AckState, ActorType, Draft, Kind
from agent_bridge.channel.writes import Acknowledge
from agent_bridge.registry import fields, strict_json

Json = bytes | bytearray | memoryview | str | Mapping[str, Any]
"""JSON text, or an object read from it."""

QUICK_BYTES = 256 * 1024
"""Up to here JSON is read on the event loop; a larger text takes long enough for others to notice."""
SENDER_CREATED_AT = "senderCreatedAt"
"""Where in `meta` the time stands that the sender gave as `createdAt`: the registry stamps its own."""
DEFAULT_RECIPIENT = "claude"
"""Whom `POST /notify-claude` is for when it doesn't say: every Claude session takes it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Identify:
    """A socket says who it is. `since` and `epoch`: the cursor up to which it knows everything.

    `events`: "all" of the identity, or only its "own": what concerns it or everybody.
    """

    agent_id: str
    identity: str | None
    since: int | None
    epoch: str | None
    events: Literal["all", "own"]


def read(data: Json, what: str = "The body") -> Mapping[str, Any]:
    """The object that `data` is or holds."""
    return fields.mapping(data if isinstance(data, Mapping) else strict_json.read(data), what)


def frame(text: str | bytes) -> tuple[str, Mapping[str, Any]]:
    """A WebSocket frame's type and the whole object. Raises InvalidError where it isn't an object with a
    `type`: such frames are ignored."""
    data = read(text, "A frame")
    return fields.text(data, "type", 100), data


def request_id(data: Mapping[str, Any]) -> str | int | None:
    """The `requestId` of a frame, which its answer repeats: a short string or a whole number."""
    value = data.get("requestId")
    return fields.whole(data, "requestId") if isinstance(value, int) else _short(data, "requestId")


def draft(data: Json, identity: str | None) -> Draft:
    """A message to be sent."""
    data = read(data)
    for required in ("fromAgentId", "kind", "content"):
        if data.get(required) is None:
            raise InvalidError("fromAgentId, kind and content are required", detail=f"{required} is missing")
    return _draft(
        data,
        identity,
        from_agent_id=fields.identifier(data, "fromAgentId"),
        from_agent_name=fields.optional_line(data, "fromAgentName"),
        to_agent_id=fields.optional_identifier(data, "toAgentId"),
        kind=fields.word(data, "kind", Kind),
    )


def notification(data: Json, identity: str | None) -> Draft:
    """The body of `POST /notify-claude`: a chat message from `agentId` (default `unknown`)."""
    data = read(data)
    if data.get("content") is None:
        raise InvalidError("content is required")
    return _draft(
        data,
        identity,
        from_agent_id=fields.optional_identifier(data, "agentId") or "unknown",
        from_agent_name=fields.optional_line(data, "agentName"),
        to_agent_id=fields.optional_identifier(data, "toAgentId") or DEFAULT_RECIPIENT,
        kind=Kind.CHAT,
    )


def acknowledge(data: Json, identity: str | None) -> Acknowledge:
    """An ack to be stored."""
    data = read(data)
    return Acknowledge(
        identity=own_identity(data, identity),
        conversation_id=fields.identifier(data, "conversationId"),
        message_id=fields.identifier(data, "messageId"),
        state=fields.word(data, "state", AckState),
        actor_id=fields.identifier(data, "actorId"),
        actor_type=fields.word(data, "actorType", ActorType),
        detail=fields.optional_text(data, "detail"),
    )


def identify(data: Json) -> Identify:
    """An `identify` frame. Whether its identity may differ from the socket's is the socket's to judge."""
    data = read(data, "A frame")
    events = data.get("events")
    if events not in (None, "all", "own"):
        raise InvalidError("events can't be used", detail="it must be one of all, own")
    named = fields.optional_text(data, "identity")
    return Identify(
        agent_id=fields.identifier(data, "agentId"),
        identity=None if named is None else ids.checked_identity(named),
        since=fields.whole(data, "since"),
        epoch=_short(data, "epoch"),
        events=events or "all",
    )


def own_identity(data: Mapping[str, Any], identity: str | None) -> str:
    """The identity in force, from what the request named and what `data` says."""
    named = fields.optional_text(data, "identity")
    if named is None:
        return identity or GLOBAL_IDENTITY
    if identity is None:
        return ids.checked_identity(named)
    if named != identity:
        raise InvalidError("identity can't be used", detail="it isn't the one that the request is made for")
    return identity


def _draft(
    data: Mapping[str, Any],
    identity: str | None,
    *,
    from_agent_id: str,
    from_agent_name: str | None,
    to_agent_id: str | None,
    kind: Kind,
) -> Draft:
    meta = fields.free(data, "meta")
    created = fields.whole(data, "createdAt")
    if created is not None:
        meta = {**(meta or {}), SENDER_CREATED_AT: created}
    return Draft(
        identity=own_identity(data, identity),
        from_agent_id=from_agent_id,
        from_agent_name=from_agent_name,
        to_agent_id=to_agent_id,
        kind=kind,
        content=fields.text(data, "content"),
        conversation_id=fields.optional_identifier(data, "conversationId"),
        message_id=fields.optional_identifier(data, "messageId"),
        reply_to=fields.optional_identifier(data, "replyTo"),
        task_id=fields.optional_identifier(data, "taskId"),
        meta=meta,
        expires_at=fields.whole(data, "expiresAt"),
        requires_ack=fields.flag(data, "requiresAck") or False,
        expects_response=fields.flag(data, "expectsResponse"),
    )


def _short(data: Mapping[str, Any], name: str) -> str | None:
    return fields.optional_text(data, name, 200)
