"""The channel's values: messages, acks, conversations, and how they look on the wire.

On the wire names are camelCase, times Unix milliseconds, absent means left out (never null). Every value
belongs to one identity; the same id in two identities means two different things.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

GLOBAL_IDENTITY = "global"
"""The identity of whoever names none."""
ALL_IDENTITIES = "*"
"""What only the dashboard may ask for."""


class Kind(enum.StrEnum):
    """What a message is."""

    CHAT = "chat"
    TASK_REQUEST = "task_request"
    TASK_RESULT = "task_result"
    ACK = "ack"
    ERROR = "error"
    PRESENCE = "presence"


class AckState(enum.StrEnum):
    """How far a message has come. The highest `rank` ever seen counts, so a late answer beats a timeout."""

    QUEUED = "queued"
    DELIVERED = "delivered_to_bridge"
    DISPLAYED = "displayed_to_client"
    FAILED = "failed"
    ANSWERED = "answered"

    @property
    def rank(self) -> int:
        """0 for queued to 4 for answered."""
        return _RANKS[self]

    @property
    def is_terminal(self) -> bool:
        """Whether nothing more is expected."""
        return self in (AckState.FAILED, AckState.ANSWERED)


_RANKS = {state: rank for rank, state in enumerate(AckState)}


class ActorType(enum.StrEnum):
    """Who says how far a message has come."""

    REGISTRY = "registry"
    BRIDGE = "bridge"
    CLIENT = "client"
    AGENT = "agent"


class ConversationStatus(enum.StrEnum):
    """A conversation's messages rolled up into one word."""

    PENDING = "pending"
    """Some message awaits its answer."""
    EXPIRED = "expired"
    """Some message awaits its answer and its time is over."""
    FAILED = "failed"
    ANSWERED = "answered"
    ACTIVE = "active"


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """A message as its sender asks for it: checked in form, not yet stored.

    `conversation_id` None: the store opens a thread (`ids.thread_id`) or takes that of `reply_to`.
    `expires_at` is the sender's wall time in ms. `expects_response` None: to be inferred.
    """

    identity: str
    from_agent_id: str
    kind: Kind
    content: str
    to_agent_id: str | None = None
    conversation_id: str | None = None
    message_id: str | None = None
    reply_to: str | None = None
    from_agent_name: str | None = None
    task_id: str | None = None
    meta: Mapping[str, Any] | None = None
    expires_at: int | None = None
    requires_ack: bool = False
    expects_response: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """A stored message. `seq` orders everything that was ever stored; a retry gets a new one.

    `state` is the highest that any ack gave it; `created_at` and `expires_at` are wall times in ms.
    """

    seq: int
    identity: str
    conversation_id: str
    message_id: str
    from_agent_id: str
    kind: Kind
    content: str
    created_at: int
    expects_response: bool
    requires_ack: bool = False
    attempt_count: int = 1
    state: AckState = AckState.QUEUED
    to_agent_id: str | None = None
    reply_to: str | None = None
    from_agent_name: str | None = None
    task_id: str | None = None
    meta: Mapping[str, Any] | None = None
    expires_at: int | None = None

    def as_wire(self) -> dict[str, Any]:
        """The message as JSON."""
        wire: dict[str, Any] = {
            "conversationId": self.conversation_id,
            "messageId": self.message_id,
            "fromAgentId": self.from_agent_id,
            "kind": self.kind.value,
            "content": self.content,
            "createdAt": self.created_at,
            "expectsResponse": self.expects_response,
            "requiresAck": self.requires_ack,
            "attemptCount": self.attempt_count,
            "state": self.state.value,
            "identity": self.identity,
            "seq": self.seq,
        }
        if self.to_agent_id is not None:
            wire["toAgentId"] = self.to_agent_id
        if self.reply_to is not None:
            wire["replyTo"] = self.reply_to
        if self.from_agent_name is not None:
            wire["fromAgentName"] = self.from_agent_name
        if self.task_id is not None:
            wire["taskId"] = self.task_id
        if self.meta is not None:
            wire["meta"] = self.meta
        if self.expires_at is not None:
            wire["expiresAt"] = self.expires_at
        return wire


@dataclass(frozen=True, slots=True, kw_only=True)
class Ack:
    """Somebody's word on how far a message has come; `timestamp` is the registry's wall time in ms."""

    seq: int
    identity: str
    conversation_id: str
    message_id: str
    state: AckState
    actor_id: str
    actor_type: ActorType
    timestamp: int
    detail: str | None = None

    def as_wire(self) -> dict[str, Any]:
        """The ack as JSON."""
        wire = {
            "conversationId": self.conversation_id,
            "messageId": self.message_id,
            "state": self.state.value,
            "actorId": self.actor_id,
            "actorType": self.actor_type.value,
            "timestamp": self.timestamp,
            "identity": self.identity,
            "seq": self.seq,
        }
        if self.detail is not None:
            wire["detail"] = self.detail
        return wire


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversation:
    """One entry of the list: a conversation's messages rolled up.

    `pending_message_ids` holds the first of them, oldest first; `pending_count` counts all.
    """

    identity: str
    conversation_id: str
    status: ConversationStatus
    last_message: Message
    pending_count: int
    pending_message_ids: tuple[str, ...]
    message_count: int
    last_ack_state: AckState | None
    participants: tuple[str, ...]
    updated_at: int
    archived: bool = False
    suppressed: bool = False

    def as_wire(self) -> dict[str, Any]:
        """The entry as JSON (ConversationListEntry)."""
        wire: dict[str, Any] = {
            "conversationId": self.conversation_id,
            "identity": self.identity,
            "status": self.status.value,
            "lastMessage": self.last_message.as_wire(),
            "pendingReply": self.status is ConversationStatus.PENDING,
            "expired": self.status is ConversationStatus.EXPIRED,
            "pendingCount": self.pending_count,
            "pendingMessageIds": list(self.pending_message_ids),
            "messageCount": self.message_count,
            "participants": list(self.participants),
            "updatedAt": self.updated_at,
            "archived": self.archived,
            "suppressed": self.suppressed,
        }
        if self.last_ack_state is not None:
            wire["lastAckState"] = self.last_ack_state.value
        return wire
