"""What is asked of the store's reads and sweeps, and what they answer."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Generic, Literal, TypeVar

from agent_bridge.channel.model import Ack, ConversationStatus, Message

T = TypeVar("T")

MAX_PAGE = 200
"""Entries that one page has at most; a higher `limit` counts as this one."""

COUNT_LIMIT = 10_000
"""What a count stops at: it stands for that many or more."""

BROADCAST_LIMIT = 1_000
"""Broadcasts that the count of an inbox stops at."""

View = Literal["open", "expired", "all"]
"""Of an inbox: what awaits its recipient, what it left unanswered until the time was over, or everything."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConversationQuery:
    """Which conversations; several conditions hold together.

    `identity` None: of all identities (the dashboard's). `participant` sent or was sent a message there.
    `agent_id` hides what that agent has suppressed. `pending` keeps those whose status is pending. `archived`
    None: both, False: those in the list, True: those that the sweep put away. `before` is a page's `next`.
    """

    identity: str | None
    participant: str | None = None
    agent_id: str | None = None
    status: ConversationStatus | None = None
    pending: bool = False
    archived: bool | None = False
    before: int | None = None
    limit: int = 50


@dataclass(frozen=True, slots=True)
class Page(Generic[T]):
    """A part of a list; `next` is the cursor for the part after it, None at the end."""

    items: tuple[T, ...]
    next: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Thread:
    """One conversation: a page of its messages, oldest first, and all their acks in the order they came.

    The first page has the newest messages; `next` is the cursor for the ones before them.
    """

    identity: str
    conversation_id: str
    messages: tuple[Message, ...]
    acks: tuple[Ack, ...]
    suppressed: bool = False
    archived: bool = False
    next: int | None = None


@dataclass(frozen=True, slots=True)
class SweepResult:
    """One batch of a sweep: how many it dealt with, and whether there is more to do."""

    count: int
    more: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreHealth:
    """How the database is. `state`: `ok`; `read_only`; `full`; `failed`; `reasons` are sentences on why.

    `notices` are sentences about what has happened to it or is otherwise than usual, though it works."""

    state: Literal["ok", "read_only", "full", "failed"] = "ok"
    reasons: tuple[str, ...] = ()
    notices: tuple[str, ...] = ()
    path: Path | None = None
    journal_mode: str = ""
    set_aside: tuple[str, ...] = field(default=())
    wal_bytes: int = 0
