"""What the registry answers, from JSON to values; and how a refusal becomes an error again.

Fields that nobody here knows are left aside, so that an older client can talk to a newer registry.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from agent_bridge.channel.errors import ChannelError
from agent_bridge.channel.model import (
    GLOBAL_IDENTITY,
    Ack,
    AckState,
    ActorType,
    Conversation,
    ConversationStatus,
    Kind,
    Message,
)
from agent_bridge.errors import AgentBridgeError

T = TypeVar("T")
_SENTENCE_MOST = 2000


class AnswerError(AgentBridgeError):
    """The registry, or whoever listens on its port, answered what can't be understood."""

    code = "not_understood"


@dataclass(frozen=True, slots=True)
class Page(Generic[T]):
    """One page of a list. `next_before` asks for the page after it, None on the last; `total` where told."""

    items: tuple[T, ...]
    next_before: str | None = None
    total: int | None = None


@dataclass(frozen=True, slots=True)
class Posted:
    """A message as stored; `deduplicated`: its id was there already, nothing was stored now."""

    message: Message
    deduplicated: bool = False


@dataclass(frozen=True, slots=True)
class Thread:
    """One conversation with its messages and acks, oldest first."""

    conversation_id: str
    messages: tuple[Message, ...]
    acks: tuple[Ack, ...]
    suppressed: bool = False
    next_before: str | None = None


@dataclass(frozen=True, slots=True)
class Events:
    """What was stored after a cursor: frames (`type`, `seq`, `data`). `(epoch, seq)` is the next cursor."""

    epoch: str
    seq: int
    more: bool
    items: tuple[Mapping[str, Any], ...]


def message(data: object) -> Message:
    """A ChannelMessage. Raises AnswerError."""
    return _parsed(data, "message", _message)


def ack(data: object) -> Ack:
    """A ChannelAck. Raises AnswerError."""
    return _parsed(data, "ack", _ack)


def conversation(data: object) -> Conversation:
    """A ConversationListEntry. Raises AnswerError."""
    return _parsed(data, "conversation", _conversation)


def thread(data: object, next_before: str | None = None) -> Thread:
    """The answer of the route for one conversation. Raises AnswerError."""
    found = mapping(data, "conversation")
    return Thread(
        text(found, "conversationId"),
        tuple(message(one) for one in listed(found.get("messages"), "messages")),
        tuple(ack(one) for one in listed(found.get("acknowledgements"), "acknowledgements")),
        found.get("suppressed") is True,
        next_before,
    )


def events(data: object) -> Events:
    """The answer of the route for a replay. Raises AnswerError."""
    found = mapping(data, "events")
    items = tuple(mapping(one, "event") for one in listed(found.get("events"), "events"))
    return Events(text(found, "epoch"), whole(found, "seq"), found.get("more") is True, items)


def mapping(data: object, what: str = "answer") -> Mapping[str, Any]:
    """`data`, which must be a JSON object."""
    if not isinstance(data, dict):
        raise _odd(what, "it isn't an object")
    return data


def listed(data: object, what: str = "answer") -> list[Any]:
    """`data`, which must be a JSON array."""
    if not isinstance(data, list):
        raise _odd(what, "it isn't a list")
    return data


def text(data: Mapping[str, Any], name: str) -> str:
    """A string that must be there."""
    value = data.get(name)
    if not isinstance(value, str):
        raise _odd("answer", f"{name} isn't text")
    return value


def whole(data: Mapping[str, Any], name: str) -> int:
    """A whole number that must be there."""
    value = data.get(name)
    if isinstance(value, bool) or not isinstance(value, int):
        raise _odd("answer", f"{name} isn't a whole number")
    return value


def refusal(data: object, status: int) -> ChannelError:
    """The error that an answer `{"error", "code"}` tells of: the class that has its `code`.

    A code that nobody here knows gives a ChannelError with that `code` and `status`.
    """
    told = data if isinstance(data, dict) else {}
    sentence = _shown(told.get("error")) or f"The registry refused that with status {status}."
    code = _shown(told.get("code")) or f"http_{status}"
    known = _classes().get(code)
    if known is None:
        known = type("ChannelError", (ChannelError,), {"code": code, "status": status})
    return known(sentence, detail=_shown(told.get("detail")))


def _message(data: Mapping[str, Any]) -> Message:
    meta = data.get("meta")
    return Message(
        seq=whole(data, "seq"),
        identity=_optional(data, "identity") or GLOBAL_IDENTITY,
        conversation_id=text(data, "conversationId"),
        message_id=text(data, "messageId"),
        from_agent_id=text(data, "fromAgentId"),
        kind=Kind(text(data, "kind")),
        content=text(data, "content"),
        created_at=whole(data, "createdAt"),
        expects_response=data.get("expectsResponse") is True,
        requires_ack=data.get("requiresAck") is True,
        attempt_count=whole(data, "attemptCount") if data.get("attemptCount") is not None else 1,
        state=AckState(_optional(data, "state") or AckState.QUEUED),
        to_agent_id=_optional(data, "toAgentId"),
        reply_to=_optional(data, "replyTo"),
        from_agent_name=_optional(data, "fromAgentName"),
        task_id=_optional(data, "taskId"),
        meta=meta if isinstance(meta, dict) else None,
        expires_at=whole(data, "expiresAt") if data.get("expiresAt") is not None else None,
    )


def _ack(data: Mapping[str, Any]) -> Ack:
    return Ack(
        seq=whole(data, "seq"),
        identity=_optional(data, "identity") or GLOBAL_IDENTITY,
        conversation_id=text(data, "conversationId"),
        message_id=text(data, "messageId"),
        state=AckState(text(data, "state")),
        actor_id=text(data, "actorId"),
        actor_type=ActorType(text(data, "actorType")),
        timestamp=whole(data, "timestamp"),
        detail=_optional(data, "detail"),
    )


def _conversation(data: Mapping[str, Any]) -> Conversation:
    last = _optional(data, "lastAckState")
    return Conversation(
        identity=_optional(data, "identity") or GLOBAL_IDENTITY,
        conversation_id=text(data, "conversationId"),
        status=ConversationStatus(text(data, "status")),
        last_message=message(data.get("lastMessage")),
        pending_count=whole(data, "pendingCount"),
        pending_message_ids=_texts(data, "pendingMessageIds"),
        message_count=whole(data, "messageCount"),
        last_ack_state=None if last is None else AckState(last),
        participants=_texts(data, "participants"),
        updated_at=whole(data, "updatedAt"),
        archived=data.get("archived") is True,
        suppressed=data.get("suppressed") is True,
    )


def _parsed(data: object, what: str, parse: Callable[[Mapping[str, Any]], T]) -> T:
    try:
        return parse(mapping(data, what))
    except ValueError as error:
        # A word that isn't one of an enumeration's.
        raise _odd(what, str(error)) from None


def _optional(data: Mapping[str, Any], name: str) -> str | None:
    return None if data.get(name) is None else text(data, name)


def _texts(data: Mapping[str, Any], name: str) -> tuple[str, ...]:
    return tuple(one for one in listed(data.get(name), name) if isinstance(one, str))


def _classes() -> dict[str, type[ChannelError]]:
    found = {ChannelError.code: ChannelError}
    waiting = list(ChannelError.__subclasses__())
    while waiting:
        one = waiting.pop()
        waiting += one.__subclasses__()
        if "code" in vars(one) and one.__module__ == ChannelError.__module__:
            found[one.code] = one
    return found


def _shown(value: object) -> str:
    if not isinstance(value, str):
        return ""
    return "".join(sign if sign.isprintable() or sign == "\n" else " " for sign in value[:_SENTENCE_MOST])


def _odd(what: str, why: str) -> AnswerError:
    return AnswerError(
        f"The registry's {what} can't be understood.",
        detail=why,
        remedy="If another version of the service is running, restart it: `agent-bridge service restart`.",
    )
