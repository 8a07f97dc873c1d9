"""What can be asked of the store beside its writes. From any thread; each is one consistent view, in ms."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Final, TypeVar

import sqlalchemy as sa

from agent_bridge.channel.clock import Timeline
from agent_bridge.channel.model import Conversation, Message
from agent_bridge.channel.storage import awaiting, inbox, listing, reads, replay, rollups
from agent_bridge.channel.storage.answers import ConversationQuery, Page, Thread, View
from agent_bridge.channel.storage.engine import Database
from agent_bridge.channel.writes import Event

T = TypeVar("T")

SLOW_COUNT_S: Final = 0.02
"""Seconds of work from which figures are kept for a while."""


class Reader:
    """Reads of one database. Each raises StorageError where it can't be used."""

    def __init__(self, database: Database, timeline: Timeline) -> None:
        self._database = database
        self._timeline = timeline
        self._counting = threading.Lock()
        self._counts: dict[str, int] = {}
        self._count_again = 0.0

    def last_seq(self) -> int:
        """The highest seq that was drawn."""
        return self._read(replay.last_seq)

    def message(self, identity: str, message_id: str) -> Message | None:
        """One message as it is now."""
        if not can_be_there(identity, message_id):
            return None
        return self._read(lambda connection: reads.message(connection, identity, message_id))

    def conversations(self, query: ConversationQuery) -> Page[Conversation]:
        """A page of conversations, the one with the newest message first."""
        if not can_be_there(query.identity, query.participant, query.agent_id):
            return Page(())
        now = self._timeline.now().steady
        return self._read(lambda connection: listing.conversations(connection, query, now=now))

    def conversation_count(self, query: ConversationQuery) -> int:
        """How many there are on all pages; 10,000 stands for that many or more."""
        if not can_be_there(query.identity, query.participant, query.agent_id):
            return 0
        now = self._timeline.now().steady
        return self._read(lambda connection: listing.conversation_count(connection, query, now=now))

    def conversation(
        self,
        identity: str | None,
        conversation_id: str,
        agent_id: str | None = None,
        before: int | None = None,
        limit: int = 100,
    ) -> Thread:
        """A page of one conversation; `suppressed` as `agent_id` sees it. Raises UnknownError."""
        if not can_be_there(identity, conversation_id, agent_id):
            raise reads.unknown_conversation()
        return self._read(
            lambda connection: reads.conversation(
                connection, identity, conversation_id, agent_id=agent_id, before=before, limit=limit
            )
        )

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
        """A page of what awaits an agent, oldest first; `before` is the `next` of the page before it."""
        if not can_be_there(identity, agent_id):
            return Page(())
        now = self._timeline.now().steady
        return self._read(
            lambda connection: inbox.inbox(
                connection,
                identity,
                agent_id,
                now=now,
                limit=limit,
                before=before,
                view=view,
                newest_first=newest_first,
            )
        )

    def inbox_count(self, identity: str, agent_id: str) -> int:
        """How many messages await an agent; 10,000 stands for that many or more, as do 1,000 broadcasts."""
        if not can_be_there(identity, agent_id):
            return 0
        now = self._timeline.now().steady
        return self._read(lambda connection: inbox.inbox_count(connection, identity, agent_id, now=now))

    def awaiting(
        self, identity: str, agent_id: str, side: awaiting.Side, *, with_hidden: bool = False
    ) -> list[awaiting.Awaiting]:
        """What awaits an agent, or whose answers it awaits, by conversation, the newest first; no texts.

        What it has suppressed is left out, unless `with_hidden`."""
        if not can_be_there(identity, agent_id):
            return []
        now = self._timeline.now().steady
        return self._read(
            lambda connection: awaiting.awaiting(
                connection, identity, agent_id, side, now=now, with_hidden=with_hidden
            )
        )

    def agents_in(self, identity: str, conversation_id: str) -> tuple[tuple[str, ...], bool]:
        """Who takes part in a conversation, nobody where it isn't there; and whether there was a message for
        everybody in it."""
        if not can_be_there(identity, conversation_id):
            return (), False
        return self._read(lambda connection: awaiting.agents_in(connection, identity, conversation_id))

    def events_since(self, identity: str | None, seq: int, limit: int = 1000) -> list[Event]:
        """Everything of an identity (None: of all) stored after `seq`, in order, as the sockets get it."""
        if not can_be_there(identity):
            return []
        return self._read(lambda connection: replay.events_since(connection, identity, seq, limit))

    def counts(self) -> dict[str, int]:
        """Figures for `status`: messages, pending, conversations, archived, suppressed.

        Where counting takes long they may be as old as a hundred times that."""
        with self._counting:
            if time.monotonic() >= self._count_again:
                began = time.thread_time()
                self._counts = self._read(reads.counts)
                took = time.thread_time() - began
                self._count_again = time.monotonic() + (100 * took if took > SLOW_COUNT_S else 0)
            return dict(self._counts)

    def check(self) -> list[str]:
        """Compare what every write carries along with what all messages and acks say: a sentence for each
        difference. Reads everything."""
        return self._read(rollups.differences)

    def _read(self, work: Callable[[sa.Connection], T]) -> T:
        with self._database.reading() as connection:
            return work(connection)


def can_be_there(*names: str | None) -> bool:
    """Whether a database may be asked for these: it never got any that holds NULs or half characters."""
    return all(name is None or name.isprintable() for name in names)
