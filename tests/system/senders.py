"""Sessions that write to the registry without a rest, and remember exactly what they were told."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from websockets.exceptions import WebSocketException
from websockets.sync.client import ClientConnection, connect

from agent_bridge.channel.model import AckState, ActorType, Draft, Kind
from agent_bridge.channel.writes import Acknowledge
from agent_bridge.client import requests
from agent_bridge.client.address import find
from agent_bridge.client.http import Registry
from agent_bridge.errors import AgentBridgeError

_STATES = (AckState.DELIVERED, AckState.DISPLAYED, AckState.ANSWERED, AckState.FAILED)


@dataclass
class Sender:
    """One session: sends a message, acks or answers some, until nobody answers any more.

    `stored` and `acked` hold what was answered with success; a message whose fate is unknown is sent again,
    under its old id, when the next service runs.
    """

    name: str
    stored: dict[str, str] = field(default_factory=dict)
    acked: list[tuple[str, AckState]] = field(default_factory=list)
    repeated: int = 0
    last_words: str = ""
    in_doubt: dict[str, Draft] = field(default_factory=dict)
    first: threading.Event = field(default_factory=threading.Event)
    _number: int = 0

    def live(self) -> None:
        """Write to the service that runs now, to its end."""
        try:
            with Registry(find(), timeout=10) as registry:
                while True:
                    self._one(registry)
        except AgentBridgeError as error:
            self.last_words = error.sentence()

    def _one(self, registry: Registry) -> None:
        draft = next(iter(self.in_doubt.values()), None) or self._next()
        posted = registry.send(draft)
        self._told(posted.message.message_id, posted.message.conversation_id, again=posted.deduplicated)
        if self._number % 3 == 0:
            state = _STATES[self._number // 3 % len(_STATES)]
            registry.ack(
                Acknowledge(
                    identity="global",
                    conversation_id=posted.message.conversation_id,
                    message_id=posted.message.message_id,
                    state=state,
                    actor_id=f"{self.name}-reader",
                    actor_type=ActorType.CLIENT,
                )
            )
            self.acked.append((posted.message.message_id, state))

    def _told(self, message_id: str, conversation_id: str, *, again: bool) -> None:
        self.repeated += again
        self.stored[message_id] = conversation_id
        self.in_doubt.pop(message_id, None)
        self.first.set()

    def _next(self) -> Draft:
        """Every fourth answers the one before, in the same thread; every second asks for an answer."""
        self._number += 1
        number = self._number
        draft = Draft(
            identity="global",
            from_agent_id=self.name if number % 4 else f"{self.name}-reader",
            to_agent_id=f"{self.name}-reader" if number % 4 else self.name,
            kind=Kind.CHAT,
            content=f"{self.name} says {number}",
            conversation_id=f"{self.name}-{number // 10}",
            message_id=f"{self.name}-message-{number}",
            reply_to=None if number % 4 else f"{self.name}-message-{number - 1}",
            expects_response=number % 2 == 1,
        )
        self.in_doubt[f"{self.name}-message-{number}"] = draft
        return draft


class SocketSender(Sender):
    """The same over a WebSocket, with many messages under way at once."""

    under_way = 20

    def live(self) -> None:
        """Write to the service that runs now, to its end."""
        try:
            address = find()
            token = {"Authorization": f"Bearer {address.token}"}
            with connect(address.socket_url, additional_headers=token, open_timeout=10) as peer:
                self._send(peer, tuple(self.in_doubt.values()))
                while True:
                    while len(self.in_doubt) < self.under_way:
                        self._send(peer, [self._next()])
                    self._hear(json.loads(peer.recv(10)))
        except (AgentBridgeError, WebSocketException, OSError) as error:
            self.last_words = str(error)

    def _send(self, peer: ClientConnection, drafts: Iterable[Draft]) -> None:
        for draft in drafts:
            frame = {"type": "channel.send", "requestId": draft.message_id, "message": requests.draft(draft)}
            peer.send(json.dumps(frame))

    def _hear(self, frame: dict[str, Any]) -> None:
        assert frame["type"] != "channel.error", frame
        if frame["type"] == "channel.sent":
            told = frame["data"]
            message = told["message"]
            self._told(message["messageId"], message["conversationId"], again=told["deduplicated"])
