"""The conversation with one socket: what it may say, and what it is told.

Frames that a peer sends are handled in their order and without waiting: a send is handed to the store and
answered when its commit is reported. A peer that sends faster than that isn't read from for a while.
"""

from __future__ import annotations

import asyncio
import json
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from agent_bridge.channel.errors import ChannelError, InvalidError, UnknownError
from agent_bridge.channel.model import ALL_IDENTITIES, GLOBAL_IDENTITY
from agent_bridge.channel.writes import Acknowledged, Event, Outcome, Send, Sent, Write
from agent_bridge.registry import audience, events, fields, wire, wire_agents
from agent_bridge.registry.audience import Wants

if TYPE_CHECKING:
    from agent_bridge.registry.connection import Connection
    from agent_bridge.registry.hub import Hub

IN_FLIGHT = 1000
"""Writes of one socket that may wait for their commit; the next frame is handled after one of them."""
IN_FLIGHT_BYTES = 16 << 20
"""Bytes that those may have."""
SUPERSEDED = 4001

_Frame = tuple[str, Mapping[str, Any]]
_REFUSED = {"channel.send": "channel.error", "channel.ack": "channel.error"}


@dataclass(slots=True)
class Reply:
    """The tag of a write that a socket asked for."""

    peer: Peer
    request_id: str | int | None
    size: int

    def __call__(self, outcome: Outcome | ChannelError, at: bytes, body: bytes | None) -> None:
        """Answer it; `body` is the message or ack, encoded, where that is done already."""
        self.peer.settled(self, outcome, at, body)


@dataclass(frozen=True, slots=True)
class _Unusable:
    """A frame that can't be used, with what could be read of it."""

    error: InvalidError
    kind: str = ""
    request_id: str | int | None = None


class Peer:
    """One open WebSocket. `identity` is fixed by the upgrade, else by the first `identify`."""

    __slots__ = (
        "_backlog",
        "_bytes",
        "_hub",
        "_in_flight",
        "_is_parsing",
        "_joining",
        "_overflowed",
        "_room",
        "agent_id",
        "connection",
        "floor",
        "identity",
        "is_live",
        "is_lost",
        "named",
        "round",
        "wants",
    )

    def __init__(self, hub: Hub, connection: Connection, identity: str | None, wants: Wants) -> None:
        self._hub = hub
        self.connection = connection
        self.named = identity is not None
        self.identity = identity or GLOBAL_IDENTITY
        self.agent_id: str | None = None
        self.wants: Wants = wants
        self.is_live = wants != "none"
        """Whether stored events go out as they come, rather than by a replay."""
        self.floor = 0
        """The seq after which it was told everything of its identity."""
        self.is_lost = False
        self.round = 0
        """Which replay is under way: an older one ends when a newer begins."""
        self._room: asyncio.Future[None] | None = None
        self._joining: list[bytes] | None = None
        self._overflowed = False
        self._backlog: deque[bytes] = deque()
        self._in_flight = 0
        self._is_parsing = False
        self._bytes = 0

    # What it is told.

    def tell(self, event: Event, frame: bytes) -> None:
        """An event that happened now."""
        if event.seq is None or self.is_live:
            self.connection.put(frame)
        elif self._joining is not None:
            if len(self._joining) < self._hub.settings.socket_backlog // 2:
                self._joining.append(frame)
            else:
                self._overflowed = True

    def hears(self, event: Event) -> bool:
        """Whether this socket wants an event of its identity."""
        return self.wants == "all" or self.agent_id is None or audience.concerns(event, self.agent_id)

    def start_replay(self) -> None:
        """Stored events come by the replay from now on."""
        self.is_live = False
        self._joining = None

    def join(self) -> None:
        """Keep what happens from now on: the replay reads what happened before."""
        self._joining, self._overflowed = [], False

    def go_live(self) -> bool:
        """Send what was kept, and from now on what happens. False: it was too much, read another page."""
        kept, self._joining = self._joining or [], None
        if self._overflowed:
            return False
        for frame in kept:
            self.connection.put(frame)
        self.is_live = True
        return True

    def settled(self, reply: Reply, outcome: Outcome | ChannelError, at: bytes, body: bytes | None) -> None:
        """A write of this socket's was committed, or refused."""
        self._in_flight -= 1
        self._bytes -= reply.size
        if self.is_lost:
            return
        if isinstance(outcome, ChannelError):
            self._refuse("channel.error", reply.request_id, outcome)
            self._hub.touch(self)
            return
        if isinstance(outcome, Sent):
            kind = "channel.sent"
            data = {
                "message": body or events.encoded(outcome.message.as_wire()),
                "deduplicated": b"true" if outcome.deduplicated else b"false",
            }
        elif isinstance(outcome, Acknowledged):
            kind = "channel.acked"
            data = {"ack": body or events.encoded(outcome.ack.as_wire())}
        else:
            return
        self.connection.put(events.answer_frame(kind, at, reply.request_id, data))
        self._hub.touch(self)

    # What it says.

    def received(self, payload: bytes) -> None:
        """A text message: handled now, or after those before it."""
        self._hub.traffic.frames_received += 1
        if self._backlog or self._is_full():
            self._backlog.append(payload)
            self.connection.read_on(reading=False)
        else:
            self._take(payload)

    def ignored(self) -> None:
        """A binary message: none of ours is."""
        self._hub.traffic.frames_received += 1
        self._hub.traffic.ignored += 1

    def relieve(self) -> None:
        """Handle what waits, as far as that is possible by now."""
        while self._backlog and self.connection.is_open and not self._is_full():
            self._take(self._backlog.popleft())
        if not self._backlog:
            self.connection.read_on(reading=True)
        self.connection.flush()

    def drained(self) -> None:
        """The peer takes frames again."""
        self.relieve()
        self._make_room()

    def lost(self) -> None:
        """The connection is gone."""
        self.is_lost = True
        self._backlog.clear()
        self._make_room()
        self._hub.lost(self)

    def cut_off(self, why: str) -> None:
        """The connection is broken off because of its peer."""
        self._hub.cut_off(self, why)

    async def has_room(self) -> bool:
        """Wait until the peer has taken what was sent before. False: it is gone, or about to go."""
        while self.connection.is_congested and self.connection.is_open:
            if self._room is None or self._room.done():
                self._room = asyncio.get_running_loop().create_future()
            await self._room
        return self.connection.is_open

    def _make_room(self) -> None:
        if self._room is not None and not self._room.done():
            self._room.set_result(None)

    def _is_full(self) -> bool:
        return (
            self._in_flight >= min(IN_FLIGHT, self._hub.settings.socket_backlog // 2)
            or self._bytes >= IN_FLIGHT_BYTES
            or self._is_parsing
            or self.connection.is_congested
            or self._hub.is_crowded(self)
        )

    def _take(self, payload: bytes) -> None:
        if len(payload) <= wire.QUICK_BYTES:
            self._hub.guarded(self, lambda text: self._handle(_read(text), len(text)), payload)
            return
        # Others don't wait for it; the frames that this socket sends after it do.
        self._is_parsing = True
        reading = asyncio.get_running_loop().run_in_executor(None, _read, payload)
        reading.add_done_callback(lambda done: self._has_read(done, payload))

    def _has_read(self, done: asyncio.Future[_Frame | _Unusable], payload: bytes) -> None:
        self._is_parsing = False
        if self.is_lost or done.cancelled():
            return
        self._hub.guarded(self, lambda text: self._handle(done.result(), len(text)), payload)
        self.relieve()

    def _handle(self, frame: _Frame | _Unusable, size: int) -> None:
        if isinstance(frame, _Unusable):
            if frame.kind in _REFUSED:
                self._refuse(_REFUSED[frame.kind], frame.request_id, frame.error)
            else:
                self._hub.traffic.ignored += 1
            return
        kind, data = frame
        handler = _HANDLERS.get(kind)
        if handler is None:
            self._hub.traffic.ignored += 1
            return
        request_id = None
        try:
            request_id = wire.request_id(data)
            handler(self, data, request_id, size)
        except ChannelError as error:
            self._refuse(_REFUSED.get(kind, "error"), request_id, error, about=kind)

    def _identify(self, frame: Mapping[str, Any], _request_id: str | int | None, _size: int) -> None:
        asked = wire.identify(frame)
        self._hub.presence.identify(self, asked)

    def _send(self, frame: Mapping[str, Any], request_id: str | int | None, size: int) -> None:
        message = fields.mapping(frame.get("message"), "message")
        if self.agent_id is not None and message.get("fromAgentId") is None:
            message = {**message, "fromAgentId": self.agent_id}
        draft = wire.draft(message, self._writes_as)
        self._submit(Send(draft), Reply(self, request_id, size))

    def _acknowledge(self, frame: Mapping[str, Any], request_id: str | int | None, size: int) -> None:
        ack = fields.mapping(frame.get("ack"), "ack")
        self._submit(wire.acknowledge(ack, self._writes_as), Reply(self, request_id, size))

    def _relay(self, frame: Mapping[str, Any], _request_id: str | int | None, _size: int) -> None:
        data = fields.mapping(frame.get("data"), "data")
        if self.agent_id is not None and data.get("fromAgentId") is None:
            data = {**data, "fromAgentId": self.agent_id}
        identity = wire.own_identity(data, self._writes_as)
        message = wire_agents.agent_message(data, self._hub.timeline.now().wall)
        self._hub.relay(identity, message)

    def _heartbeat(self, _frame: Mapping[str, Any], _request_id: str | int | None, _size: int) -> None:
        if self.agent_id is None:
            raise UnknownError("This socket hasn't identified itself")
        hub = self._hub
        hub.publish(hub.directory.heartbeat(self.identity, self.agent_id, hub.timeline.now()))

    @property
    def _writes_as(self) -> str | None:
        """The identity that what it writes must have; None (the dashboard): what it says itself counts."""
        return None if self.identity == ALL_IDENTITIES else self.identity

    def _submit(self, write: Write, reply: Reply) -> None:
        self._hub.submit(write, reply)
        self._in_flight += 1
        self._bytes += reply.size

    def _refuse(
        self, kind: str, request_id: str | int | None, error: ChannelError, *, about: str = ""
    ) -> None:
        self._hub.traffic.refused += 1
        data = {"error": events.encoded(error.sentence()), "code": events.encoded(error.code)}
        if kind == "error":
            data["about"] = events.encoded(about)
        self.connection.put(events.answer_frame(kind, self._hub.stamp(), request_id, data))


def _read(payload: bytes) -> _Frame | _Unusable:
    """A frame. What isn't JSON is ignored; JSON that only we refuse (a key twice, say) is answered."""
    try:
        return wire.frame(payload)
    except InvalidError as error:
        try:
            data = json.loads(payload)
            return _Unusable(error, str(data["type"]), wire.request_id(data))
        except (ValueError, TypeError, KeyError, RecursionError, ChannelError):
            return _Unusable(error)


_Handler = Callable[[Peer, Mapping[str, Any], str | int | None, int], None]
_HANDLERS: dict[str, _Handler] = {
    "identify": Peer._identify,  # noqa: SLF001 - the table belongs to the class
    "channel.send": Peer._send,  # noqa: SLF001
    "channel.ack": Peer._acknowledge,  # noqa: SLF001
    "agent.message": Peer._relay,  # noqa: SLF001
    "heartbeat": Peer._heartbeat,  # noqa: SLF001
}
