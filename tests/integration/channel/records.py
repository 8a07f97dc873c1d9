"""A store with a clock that the test sets, and short words for what is done to it."""

from __future__ import annotations

from collections.abc import Sequence
from types import TracebackType
from typing import Any

from agent_bridge.channel.clock import Timeline
from agent_bridge.channel.errors import ChannelError
from agent_bridge.channel.model import AckState, ActorType, Draft, Kind, Message
from agent_bridge.channel.storage.answers import View
from agent_bridge.channel.storage.apply import apply
from agent_bridge.channel.storage.place import Place
from agent_bridge.channel.storage.store import Store
from agent_bridge.channel.writes import (
    Acknowledge,
    Acknowledged,
    Done,
    Event,
    Outcome,
    Retry,
    Revive,
    Send,
    Sent,
    Settled,
    Suppress,
    Write,
)

START = 1_700_000_000_000


class Clock:
    """Both clocks of a machine: `wall` may be set, `uptime` only goes on."""

    def __init__(self) -> None:
        self.wall = START
        self.uptime = 5_000

    def go_on(self, ms: int) -> None:
        """Let time pass."""
        self.wall += ms
        self.uptime += ms

    def timeline(self) -> Timeline:
        """A service's view of it, from its start on."""
        return Timeline(lambda: self.wall, lambda: self.uptime)


class Records:
    """An open store. `settled` is all that it handed back, in order."""

    def __init__(self, place: Place, *, inbox_limit: int = 1000, clock: Clock | None = None) -> None:
        self.clock = clock or Clock()
        self.place = place
        self.settled: list[Settled] = []
        self.timeline = self.clock.timeline()
        self.store = Store(place, self.timeline, inbox_limit=inbox_limit, on_commit=self.settled.extend)

    def __enter__(self) -> Records:
        self.store.open()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.store.close()

    def send(self, content: str = "hello", **fields: object) -> Sent:
        """Store a message, from `ann` to `bob` if not told otherwise."""
        outcome = self.store.call(Send(draft(content, **fields)))
        assert isinstance(outcome, Sent)
        return outcome

    def ack(
        self, message: Message, state: AckState, actor: str = "bob", detail: str | None = None
    ) -> Acknowledged:
        """Store an ack by a client."""
        outcome = self.store.call(acknowledge(message, state, actor, detail))
        assert isinstance(outcome, Acknowledged)
        return outcome

    def retry(self, message: Message) -> Sent:
        """Send a message once more."""
        outcome = self.store.call(Retry(message.identity, message.conversation_id, message.message_id))
        assert isinstance(outcome, Sent)
        return outcome

    def suppress(self, agent: str, conversation_id: str, identity: str = "global") -> Done:
        """Hide a conversation from an agent."""
        outcome = self.store.call(Suppress(identity, agent, conversation_id))
        assert isinstance(outcome, Done)
        return outcome

    def revive(self, agent: str, conversation_id: str, identity: str = "global") -> Done:
        """Take that back."""
        outcome = self.store.call(Revive(identity, agent, conversation_id))
        assert isinstance(outcome, Done)
        return outcome

    def together(self, writes: Sequence[Write], *, inbox_limit: int = 1000) -> list[Outcome | ChannelError]:
        """Carry out writes in one transaction."""
        now = self.timeline.now()
        return self.store._database.write(
            lambda connection: apply(connection, writes, now, inbox_limit=inbox_limit)
        )

    def inbox(self, agent: str, identity: str = "global", view: View = "open") -> list[str]:
        """The contents of a page of its inbox."""
        return [message.content for message in self.store.inbox(identity, agent, view=view).items]

    def events(self) -> list[Event]:
        """What the sockets were told, in order."""
        return [
            event
            for settled in self.settled
            if not isinstance(settled.outcome, ChannelError)
            for event in settled.outcome.events
        ]


def draft(content: str = "hello", **fields: object) -> Draft:
    """A message from `ann` to `bob`, a chat that asks for no answer, if not told otherwise."""
    given: dict[str, Any] = {
        "identity": "global",
        "from_agent_id": "ann",
        "to_agent_id": "bob",
        "kind": Kind.CHAT,
        "expects_response": False,
    }
    merged: dict[str, Any] = {**given, **fields}
    return Draft(content=content, **merged)


def acknowledge(
    message: Message, state: AckState, actor: str = "bob", detail: str | None = None
) -> Acknowledge:
    """An ack for `message` by a client."""
    return Acknowledge(
        identity=message.identity,
        conversation_id=message.conversation_id,
        message_id=message.message_id,
        state=state,
        actor_id=actor,
        actor_type=ActorType.CLIENT,
        detail=detail,
    )
