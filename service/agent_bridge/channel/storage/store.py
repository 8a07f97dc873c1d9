"""The store: every write in order and in groups, reads beside them, sweeps in small batches."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from agent_bridge.channel.clock import Moment, Timeline
from agent_bridge.channel.model import Conversation, Message
from agent_bridge.channel.storage.answers import (
    ConversationQuery,
    Page,
    StoreHealth,
    SweepResult,
    Thread,
    View,
)
from agent_bridge.channel.writes import Event, Outcome, Settled, Write

if TYPE_CHECKING:
    from agent_bridge.channel.storage.place import Place


class Store:
    """Messages, acks and conversations. Every method may be called from any thread.

    `on_commit` gets what was settled, in the order of submission, on the writer's thread; it must not block.
    """

    def __init__(
        self,
        place: Place,
        timeline: Timeline,
        *,
        inbox_limit: int = 1000,
        on_commit: Callable[[Sequence[Settled]], None],
    ) -> None:
        raise NotImplementedError

    def open(self) -> None:
        """Open or make the database and start the writer. Raises StorageError."""
        raise NotImplementedError

    def close(self) -> None:
        """Carry out what was submitted, then stop."""
        raise NotImplementedError

    def submit(self, write: Write, tag: object = None) -> None:
        """Have `write` carried out; never blocks. `on_commit` gets it back with `tag`."""
        raise NotImplementedError

    def call(self, write: Write, timeout: float = 30) -> Outcome:
        """Carry out `write` and wait for it, at most `timeout` s; `on_commit` is told too.

        Raises ChannelError."""
        raise NotImplementedError

    @property
    def epoch(self) -> str:
        """The database's own random id: a cursor holds only within one."""
        raise NotImplementedError

    def last_seq(self) -> int:
        """The highest seq that was drawn."""
        raise NotImplementedError

    def message(self, identity: str, message_id: str) -> Message | None:
        """One message as it is now."""
        raise NotImplementedError

    def conversations(self, query: ConversationQuery) -> Page[Conversation]:
        """A page of conversations, the one with the newest message first."""
        raise NotImplementedError

    def conversation_count(self, query: ConversationQuery) -> int:
        """How many there are on all pages; 10,000 stands for that many or more."""
        raise NotImplementedError

    def conversation(
        self,
        identity: str | None,
        conversation_id: str,
        agent_id: str | None = None,
        before: int | None = None,
        limit: int = 100,
    ) -> Thread:
        """A page of one conversation; `suppressed` as `agent_id` sees it. Raises UnknownError."""
        raise NotImplementedError

    def inbox(
        self,
        identity: str,
        agent_id: str,
        *,
        limit: int = 25,
        before: int | None = None,
        view: View = "open",
        newest_first: bool = False,
    ) -> Page[Message]:
        """A page of what awaits an agent, oldest first; `before` is the `next` of the page before this one."""
        raise NotImplementedError

    def inbox_count(self, identity: str, agent_id: str) -> int:
        """How many messages await an agent; 10,000 stands for that many or more."""
        raise NotImplementedError

    def events_since(self, identity: str | None, seq: int, limit: int = 1000) -> list[Event]:
        """Everything of an identity (None: of all) stored after `seq`, in order, as the sockets get it."""
        raise NotImplementedError

    def counts(self) -> dict[str, int]:
        """Figures for `status`: messages, acks, conversations, archived, open, suppressed."""
        raise NotImplementedError

    def expire(self, now: Moment, batch: int = 500) -> SweepResult:
        """Give pending messages whose time is over a `failed` ack by the registry."""
        raise NotImplementedError

    def archive(self, now: Moment, older_than_ms: int, batch: int = 500) -> SweepResult:
        """Take finished conversations out of the list, whose last word is older than `older_than_ms`."""
        raise NotImplementedError

    def delete_old(self, now: Moment, older_than_ms: int, batch: int = 1000) -> SweepResult:
        """Delete conversations whose last word is older than `older_than_ms`; `count` is in rows."""
        raise NotImplementedError

    def upkeep(self, *, truncate: bool = False) -> None:
        """Keep the database small and its plans good: a passive checkpoint; `truncate`: shorten the log too."""
        raise NotImplementedError

    def health(self) -> StoreHealth:
        """How the database is."""
        raise NotImplementedError

    def describe(self) -> dict[str, Any]:
        """Health and counts for `status`."""
        raise NotImplementedError
