"""What can be asked of the store, and what comes of it.

A write is one of the classes below; the store carries them out in the order in which they were submitted,
many in one transaction, and hands each back with its outcome after the commit.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from agent_bridge.channel.errors import ChannelError
from agent_bridge.channel.model import Ack, AckState, ActorType, Draft, Message


@dataclass(frozen=True, slots=True)
class Send:
    """Store a message. Answered with `Sent`; a `message_id` that its identity has already, with the row as
    first stored and no event."""

    draft: Draft


@dataclass(frozen=True, slots=True, kw_only=True)
class Acknowledge:
    """Store an ack. Answered with `Acknowledged`; UnknownError where the message isn't there."""

    identity: str
    conversation_id: str
    message_id: str
    state: AckState
    actor_id: str
    actor_type: ActorType
    detail: str | None = None


@dataclass(frozen=True, slots=True)
class Retry:
    """Send a message once more: `attempt_count` + 1, a new `seq`, a `queued` ack by the registry.

    Answered with `Sent`; UnknownError."""

    identity: str
    conversation_id: str
    message_id: str


@dataclass(frozen=True, slots=True)
class Suppress:
    """Hide a conversation from one agent's lists until a new message comes.

    Answered with `Done`; UnknownError."""

    identity: str
    agent_id: str
    conversation_id: str


@dataclass(frozen=True, slots=True)
class Revive:
    """Take that back. Answered with `Done`: `changed` says whether it was hidden."""

    identity: str
    agent_id: str
    conversation_id: str


Write = Send | Acknowledge | Retry | Suppress | Revive


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """What the sockets are told after a commit. `data` is the wire form, without the envelope.

    `target` is the agent it is meant for first (None: nobody in particular); `concerns` are all agents it
    touches, empty meaning everybody of the identity. `seq` None: not stored, so not replayed. `identity` `*`:
    for all identities (news of AgentServers, which everybody sees).
    """

    type: str
    identity: str
    data: Mapping[str, Any]
    seq: int | None = None
    target: str | None = None
    concerns: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Sent:
    """The message as stored."""

    message: Message
    deduplicated: bool = False
    events: tuple[Event, ...] = ()


@dataclass(frozen=True, slots=True)
class Acknowledged:
    """The ack as stored, and its message as it is now."""

    ack: Ack
    message: Message
    events: tuple[Event, ...] = ()


@dataclass(frozen=True, slots=True)
class Done:
    """Whether anything changed."""

    changed: bool
    events: tuple[Event, ...] = ()


Outcome = Sent | Acknowledged | Done


@dataclass(frozen=True, slots=True)
class Settled:
    """A write after its commit, or refused; `tag` is what its submitter gave along."""

    write: Write
    tag: object
    outcome: Outcome | ChannelError
