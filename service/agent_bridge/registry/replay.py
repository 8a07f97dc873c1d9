"""What a socket missed: everything stored after its cursor, then what happens, without gap or double.

While it is replayed nothing stored goes out as it happens: pages are read until there is less than a full one
left, and only what happens while that last one is read is kept. So a replay's memory is bounded whatever
there is to replay, and a peer that reads slowly only makes it slower.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from agent_bridge.channel.errors import ChannelError
from agent_bridge.channel.model import ALL_IDENTITIES
from agent_bridge.registry import events
from agent_bridge.registry.paging import gather_events

if TYPE_CHECKING:
    from agent_bridge.channel.writes import Event
    from agent_bridge.registry.hub import Hub
    from agent_bridge.registry.peer import Peer

PAGE = 500
"""Events that are read and sent before asking whether the peer takes more."""
HEAVY = 2 << 20
"""Characters that make a page full before that."""


def begin(hub: Hub, peer: Peer, since: int | None, epoch: str | None) -> None:
    """Bring a socket that has identified itself to where things are, from its cursor on."""
    peer.round += 1
    if since is None:
        if not peer.is_live:
            go_live(hub, peer)
        return
    reason = _refusal(hub, since, epoch)
    if reason is not None:
        resync(hub, peer, reason)
        return
    pages = _Pages(hub, peer, since)
    hub.traffic.replays += 1
    if peer.is_live:
        hub.spawn(_fill(hub, peer, pages, peer.floor))
    else:
        peer.start_replay()
        hub.spawn(_catch_up(hub, peer, pages))


def resync(hub: Hub, peer: Peer, reason: str) -> None:
    """Tell a socket to fetch everything; from now on it hears what happens."""
    peer.round += 1
    hub.traffic.resyncs += 1
    go_live(hub, peer, events.plain_frame("resync", reason=reason, seq=hub.seq, epoch=hub.epoch))


def go_live(hub: Hub, peer: Peer, frame: bytes | None = None) -> None:
    """From now on a socket hears what happens, after `frame`."""
    if frame is not None:
        peer.connection.put(frame)
    peer.join()
    peer.go_live()
    peer.floor = hub.seq


def _refusal(hub: Hub, since: int, epoch: str | None) -> str | None:
    if epoch != hub.epoch and not (epoch is None and since == 0):
        return "epoch"
    return "too_new" if since > hub.seq else None


async def _catch_up(hub: Hub, peer: Peer, pages: _Pages) -> None:
    """Replay to a socket that hears nothing stored meanwhile, then let it hear what happens."""
    while await peer.has_room():
        upto = hub.seq
        peer.join()
        is_last = await pages.send_next(upto)
        if pages.is_over:
            return
        if is_last is None:
            resync(hub, peer, "storage")
        elif is_last:
            peer.connection.put(events.plain_frame("replayed", seq=upto))
            if peer.go_live():
                peer.floor = upto
        peer.connection.flush()
        if peer.is_live:
            return


async def _fill(hub: Hub, peer: Peer, pages: _Pages, upto: int) -> None:
    """Replay to a socket that has heard everything after `upto` already."""
    is_last: bool | None = False
    while is_last is False:
        if not await peer.has_room():
            return
        is_last = await pages.send_next(upto)
        if pages.is_over:
            return
    if is_last:
        peer.connection.put(events.plain_frame("replayed", seq=hub.seq))
    else:
        resync(hub, peer, "storage")
    peer.connection.flush()


class _Pages:
    """Reads and sends what was stored after a cursor, a page at a time."""

    def __init__(self, hub: Hub, peer: Peer, since: int) -> None:
        self._hub = hub
        self._peer = peer
        self._since = since
        self._epoch = hub.epoch
        self._round = peer.round

    @property
    def is_over(self) -> bool:
        """Whether nobody needs the rest: the peer is gone or was answered otherwise, or the database is
        another one by now."""
        peer = self._peer
        return not peer.connection.is_open or peer.round != self._round or self._hub.epoch != self._epoch

    async def send_next(self, upto: int) -> bool | None:
        """Send the next page; True when it was the last one up to `upto`, None when it can't be read."""
        identity = None if self._peer.identity == ALL_IDENTITIES else self._peer.identity
        since, most = self._since, max(1, min(PAGE, self._hub.settings.socket_backlog // 2))
        try:
            page, more = await self._hub.read(
                lambda store: gather_events(partial(store.events_since, identity), since, most, HEAVY)
            )
        except ChannelError:
            return None
        if self.is_over:
            return False
        self._send([event for event in page if (event.seq or 0) <= upto])
        if not more or (page[-1].seq or 0) >= upto:
            self._since = upto
            return True
        self._since = page[-1].seq or upto
        return False

    def _send(self, page: list[Event]) -> None:
        at = self._hub.stamp()
        for event in page:
            if self._peer.hears(event):
                self._peer.connection.put(events.event_frame(event, at, replay=True))
                self._hub.traffic.replayed_events += 1
        self._peer.connection.flush()
