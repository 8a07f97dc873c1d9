"""Who speaks for which agent: sockets that identify themselves, take over, and go."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent_bridge.channel.errors import InvalidError
from agent_bridge.registry import events, replay
from agent_bridge.registry.peer import SUPERSEDED

if TYPE_CHECKING:
    from agent_bridge.registry.hub import Hub
    from agent_bridge.registry.peer import Peer
    from agent_bridge.registry.wire import Identify


class Presence:
    """What becomes of the directory and of the routes when sockets come and go."""

    def __init__(self, hub: Hub) -> None:
        self._hub = hub

    def welcome(self, peer: Peer) -> None:
        """A new socket: it gets the snapshot first, then what happens."""
        if peer.is_live:
            self._hub.audience.listen(peer, peer.identity)
        peer.floor = self._hub.seq
        self._snapshot(peer)

    def identify(self, peer: Peer, asked: Identify) -> None:
        """A socket says who it is. Raises InvalidError for another identity than it has."""
        is_again = peer.agent_id == asked.agent_id
        has_moved = self._settle_identity(peer, asked)
        if is_again:
            self._acknowledge(peer)
            return
        self.goodbye(peer)
        if has_moved and asked.identity is not None:
            peer.identity = asked.identity
            peer.floor = self._hub.seq
        peer.named = True
        peer.agent_id = asked.agent_id
        peer.wants = asked.events
        before = self._hub.audience.claim(peer, peer.identity, asked.agent_id, peer.wants)
        if before is not None:
            self._hub.traffic.superseded += 1
            before.connection.close(SUPERSEDED, "a newer connection took over")
        self._acknowledge(peer)
        if has_moved:
            self._snapshot(peer)
        replay.begin(self._hub, peer, asked.since, asked.epoch)
        hub = self._hub
        hub.publish(hub.directory.identified(peer.identity, asked.agent_id, hub.timeline.now()))

    def goodbye(self, peer: Peer) -> None:
        """A socket is gone, or speaks for somebody else from now on."""
        if self._hub.audience.leave(peer, peer.identity, peer.agent_id) and peer.agent_id is not None:
            self._hub.publish(self._hub.directory.closed(peer.identity, peer.agent_id))

    def _settle_identity(self, peer: Peer, asked: Identify) -> bool:
        """Whether the socket moves to another identity than it was opened for."""
        if asked.identity is None or asked.identity == peer.identity:
            return False
        if peer.named:
            raise InvalidError(
                "A socket's identity can't be changed", detail=f"this one is of identity {peer.identity}"
            )
        return True

    def _acknowledge(self, peer: Peer) -> None:
        hub = self._hub
        peer.connection.put(
            events.plain_frame(
                "identified", agentId=peer.agent_id, identity=peer.identity, seq=hub.seq, epoch=hub.epoch
            )
        )

    def _snapshot(self, peer: Peer) -> None:
        hub = self._hub
        rows = [row.as_wire() for row in hub.directory.rows(peer.identity)]
        peer.connection.put(
            events.plain_frame("snapshot", agents=rows, identity=peer.identity, seq=hub.seq, epoch=hub.epoch)
        )
