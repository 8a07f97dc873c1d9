"""One thread that waits for the client, the service and the parent, and moves lines between them."""

from __future__ import annotations

import os
import select
import time
from collections import deque

from agent_bridge.mcp.shim.lines import LineCutter
from agent_bridge.mcp.shim.parent import LOOK_S, Parent

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from agent_bridge.mcp.shim.link import Link
    from agent_bridge.mcp.shim.relay import Relay
    from agent_bridge.mcp.shim.streams import Streams

ENDING_S = 0.8
"""How long answers are waited for and written once the client has closed its end; it may kill after 1 s."""
FIRST_S = 0.2
"""After `initialize`: by then a client that asks for its tools at once has them."""
_FULL = 1024 * 1024
"""Bytes that may wait for a reader before nothing more is taken for it."""
_BROKEN = select.POLLERR | select.POLLHUP | select.POLLNVAL


class Loop:
    """Runs one conversation to its end."""

    def __init__(self, streams: Streams, relay: Relay, make_link: Callable[[], Link]) -> None:
        self._streams = streams
        self._relay = relay
        self._make_link = make_link
        self._link: Link | None = None
        self._begun_at: float | None = None
        self._parent = Parent()
        self._cutter = LineCutter()
        self._lines: deque[bytes | None] = deque()
        self._poll = select.poll()
        self._watched: dict[int, int] = {}
        self._has_ended = False
        self._hung_up = False
        self._ends_at: float | None = None
        self._is_gone = False

    def run(self) -> None:
        """Until the client has closed its end and has its answers, or is gone."""
        while True:
            now = time.monotonic()
            self._take_lines(now)
            self._write()
            if (link := self._linked(now)) is not None:
                link.step(now)
                link.flush(now)
                self._write()
            if self._is_over(now):
                if link is not None:
                    link.abandon()
                    self._write()
                return
            self._watch()
            for descriptor, events in self._poll.poll(self._milliseconds(now)):
                self._happened(descriptor, events)

    def close(self) -> None:
        """Leave the service; for when `run` has ended, however it did."""
        if self._link is not None:
            self._link.close()

    def _linked(self, now: float) -> Link | None:
        """The link, made once the client has its first answers: its imports take as long as theirs."""
        if self._link is None and self._relay.client is not None:
            if self._begun_at is None:
                self._begun_at = now
            has_answers = self._relay.asked_for_tools or self._relay.is_waiting
            if has_answers or now >= self._begun_at + FIRST_S:
                self._link = self._make_link()
        return self._link

    def _is_over(self, now: float) -> bool:
        if self._is_gone or (self._parent.descriptor is None and self._parent.is_gone()):
            return True
        if self._ends_at is None:
            return False
        has_all = self._has_ended and not (
            self._lines or self._relay.is_waiting or self._relay.to_client.size
        )
        return has_all or now >= self._ends_at

    def _watch(self) -> None:
        """Wait for what can be dealt with; a reader that doesn't read stops what would be written to it."""
        wanted: dict[int, int] = {}
        full = self._is_full
        if not self._has_ended:
            stuck = full or bool(self._lines) or self._relay.to_service.size > _FULL
            if not stuck:
                wanted[self._streams.reads] = select.POLLIN
            elif not self._hung_up:
                wanted[self._streams.reads] = 0
        wanted[self._streams.writes] = select.POLLOUT if self._relay.to_client.size else 0
        if self._parent.descriptor is not None:
            wanted[self._parent.descriptor] = select.POLLIN
        if self._link is not None and self._link.descriptor is not None:
            out = select.POLLOUT if self._relay.to_service.size else 0
            wanted[self._link.descriptor] = out | (0 if full else select.POLLIN)
        for descriptor in self._watched.keys() - wanted.keys():
            self._poll.unregister(descriptor)
        for descriptor, events in wanted.items():
            # Anew each time: the number may be another file's by now.
            self._poll.register(descriptor, events)
        self._watched = wanted

    def _milliseconds(self, now: float) -> float | None:
        moments = [self._ends_at]
        if self._link is not None:
            moments.append(self._link.wakes_at(now))
        elif self._begun_at is not None:
            moments.append(self._begun_at + FIRST_S)
        if self._parent.descriptor is None:
            moments.append(now + LOOK_S)
        first = min((moment for moment in moments if moment is not None), default=None)
        return None if first is None else max(0.0, first - now) * 1000

    def _happened(self, descriptor: int, events: int) -> None:
        if descriptor == self._streams.reads:
            self._read(events)
        elif descriptor == self._streams.writes:
            self._is_gone = self._is_gone or bool(events & (select.POLLERR | select.POLLHUP))
        elif descriptor == self._parent.descriptor:
            self._is_gone = True
        elif self._link is not None and events & (select.POLLIN | _BROKEN):
            self._link.read(time.monotonic())

    def _read(self, events: int) -> None:
        if not self._watched[self._streams.reads]:
            self._hung_up = self._hung_up or bool(events & _BROKEN)
            self._begin_to_end()
            return
        try:
            data = os.read(self._streams.reads, 65536)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        self._lines.extend(self._cutter.feed(data) if data else [self._cutter.last()])
        if not data:
            self._has_ended = True
            self._begin_to_end()

    def _take_lines(self, now: float) -> None:
        """Answers may be a thousand times as long as what asks for them, so not all at once."""
        while self._lines and not self._is_full:
            self._relay.from_client(self._lines.popleft(), now)
            if self._relay.to_client.size > _FULL:
                self._write()

    @property
    def _is_full(self) -> bool:
        return self._relay.to_client.size > _FULL

    def _begin_to_end(self) -> None:
        if self._ends_at is None:
            self._ends_at = time.monotonic() + ENDING_S

    def _write(self) -> None:
        writes = self._streams.writes
        try:
            self._relay.to_client.flush(lambda piece: os.write(writes, piece))
        except OSError:
            self._is_gone = True  # Nobody reads any more.
