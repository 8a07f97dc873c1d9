"""The hub: one event loop on which the store's outcomes, the directory and the sockets come together.

Everything here belongs to that loop's thread, apart from what the store calls after a commit. A write is
answered after its commit; its events go out at once, to its target first.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, TypeVar

from agent_bridge.channel.clock import wall_ms
from agent_bridge.channel.directory import Directory
from agent_bridge.channel.errors import ChannelError, StorageError, TooManyError, WrongIdentityError
from agent_bridge.channel.model import ALL_IDENTITIES
from agent_bridge.channel.storage.store import Store
from agent_bridge.channel.writes import Event, Outcome, Send, Settled, Write
from agent_bridge.log import get_logger
from agent_bridge.registry import events, outcomes, replay
from agent_bridge.registry.audience import Audience
from agent_bridge.registry.news import News
from agent_bridge.registry.peer import Peer, Reply
from agent_bridge.registry.presence import Presence
from agent_bridge.registry.rates import Rates
from agent_bridge.registry.receipts import Receipts
from agent_bridge.registry.traffic import Traffic

if TYPE_CHECKING:
    from agent_bridge.channel.clock import Timeline
    from agent_bridge.channel.storage.place import Place
    from agent_bridge.config import Settings

IN_FLIGHT_BYTES = 128 << 20
"""Bytes of writes that may wait for their commit; past that no socket is read from, no request taken."""
DRAIN_S = 2.0
"""Seconds that sockets stay open at the end for the answers to what was submitted."""
READERS = 4
_FLUSH_EVERY = 64
_LATE = 2
"""Intervals without a look at who is there, after which the rest counts as time in which we slept."""

_log = get_logger("registry")

T = TypeVar("T")


class Hub:
    """Store, directory and sockets of one registry. Made anywhere; `start` and all else on one loop."""

    def __init__(
        self,
        place: Place,
        timeline: Timeline,
        settings: Settings,
        *,
        rates: Rates | None = None,
        make_store: Callable[..., Store] = Store,
    ) -> None:
        self.settings = settings
        self.timeline = timeline
        self.directory = Directory(
            round(settings.agent_unhealthy_s * 1000), round(settings.agent_remove_s * 1000)
        )
        self.rates = rates or Rates(settings.send_rate_per_s, settings.send_burst)
        self.audience: Audience[Peer] = Audience()
        self.presence = Presence(self)
        self.traffic = Traffic()
        self.receipts = Receipts()
        self.seq = 0
        """Everything stored up to here has gone out to the sockets."""
        self.epoch = ""
        self.store = make_store(place, timeline, inbox_limit=settings.inbox_limit, on_commit=self._on_commit)
        self._loop: asyncio.AbstractEventLoop
        self._readers = ThreadPoolExecutor(READERS, thread_name_prefix="registry-read")
        self.peers: dict[Peer, None] = {}
        """All open sockets, in the order in which they came."""
        self._touched: dict[Peer, None] = {}
        self._held: dict[Peer, None] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._bytes = 0
        self.is_stopping = False
        """It ends, or has ended: nothing new is to be asked of it."""
        self._news = None if place.is_sqlite else News(self)
        self._looked = timeline.now().steady

    async def start(self) -> None:
        """Open the store; the running loop becomes the hub's.

        A database that can't be opened is told by the store's health; the first write that works again
        makes the sockets start over.
        """
        self._loop = asyncio.get_running_loop()
        try:
            await self._loop.run_in_executor(self._readers, self.store.open)
            self.seq = await self.read(Store.last_seq)
            self.epoch = self.store.epoch
        except StorageError as error:
            _log.error("The channel can't store anything", error=error.sentence())
        if self._news is not None:
            self.store.follow(self._on_notice)

    async def stop(self) -> None:
        """Carry out and answer what was submitted, close all sockets (1001) and the store. Done once, however
        often it is called."""
        if self.is_stopping:
            return
        self.is_stopping = True
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        closing = asyncio.get_running_loop().run_in_executor(self._readers, self.store.close)
        # What the store settled last is told by callbacks that are waiting when this returns.
        await asyncio.wait([closing], timeout=DRAIN_S)
        await asyncio.sleep(0)
        for peer in list(self.peers):
            peer.connection.close(1001, "the registry stops")
        await closing
        self._readers.shutdown(wait=False)

    def apply(self, settings: Settings) -> None:
        """Take new settings. Limits of sockets that are open stay as they were."""
        self.settings = settings
        self.store.inbox_limit = settings.inbox_limit
        self.rates.change(settings.send_rate_per_s, settings.send_burst)
        self.directory.unhealthy_ms = round(settings.agent_unhealthy_s * 1000)
        self.directory.remove_ms = round(settings.agent_remove_s * 1000)

    async def write(self, write: Write) -> Outcome:
        """Have `write` carried out; returns after the commit. Its events go out by themselves.

        Raises ChannelError: what the store raises, TooManyError over the sender's rate and while too much
        waits already, WrongIdentityError for a target that lives in another identity only.
        """
        self._check(write)
        size = outcomes.size_of(write)
        if self._bytes and self._bytes + size > IN_FLIGHT_BYTES:
            raise TooManyError(
                "Too much waits to be stored; this wasn't",
                remedy="Send it again in a while: the database is slow.",
            )
        answer: asyncio.Future[Outcome] = self._loop.create_future()
        self.store.submit(write, answer)
        self._bytes += size
        return await answer

    async def read(self, function: Callable[[Store], T]) -> T:
        """What `function` reads from the store, on a thread of a small pool. Raises what it raises."""
        if self.is_stopping:
            raise StorageError("The registry has ended")
        return await self._loop.run_in_executor(self._readers, function, self.store)

    def publish(self, happened: Iterable[Event]) -> None:
        """Send events to the sockets that want them; those with identity `*` go to all identities."""
        at = self.stamp()
        for event in happened:
            self._fan_out(event, events.event_frame(event, at))
        self._flush()

    def tell(self, stored: Iterable[Event]) -> None:
        """Send events that were read from the store, in order of seq, to the sockets that want them."""
        at = self.stamp()
        for event in stored:
            self.seq = max(self.seq, event.seq or 0)
            self._fan_out(event, events.event_frame(event, at))
        self._flush()

    def start_over(self, epoch: str, seq: int) -> None:
        """The database is another one, up to `seq` at least: cursors into the old one mean nothing."""
        _log.warning("The channel's database was replaced", epoch=epoch)
        self.epoch, self.seq = epoch, seq
        for peer in list(self.peers):
            if peer.is_live or peer.agent_id is not None:
                replay.resync(self, peer, "epoch")
                self._touched[peer] = None

    def relay(self, identity: str, message: Mapping[str, Any]) -> bool:
        """Send an AgentMessage in its wire form to its target, then to the others of the identity; it isn't
        stored. True if the target has a socket open. Raises WrongIdentityError, TooManyError."""
        target: str = message["toAgentId"]
        self._check_target(identity, target)
        self.rates.take(identity, message["fromAgentId"])
        self.publish((Event(type="agent.message", identity=identity, data=message, target=target),))
        return self.reaches(identity, target)

    def reaches(self, identity: str, agent_id: str) -> bool:
        """Whether an agent has a socket open: an event with this `target` reaches it."""
        return self.audience.speaker(identity, agent_id) is not None

    def socket_counts(self, identity: str = ALL_IDENTITIES) -> tuple[int, int]:
        """How many sockets of an identity have said who they are, and how many are open."""
        seen = [peer for peer in self.peers if identity in (ALL_IDENTITIES, peer.identity)]
        return sum(peer.agent_id is not None for peer in seen), len(seen)

    def sweep_presence(self) -> int:
        """Mark sessions without a heartbeat unhealthy or remove them; returns how many. On the loop.

        Time in which this process slept, or its machine did, isn't held against them."""
        now = self.timeline.now()
        slept = now.steady - self._looked - _LATE * round(self.settings.presence_sweep_s * 1000)
        self._looked = now.steady
        if slept > 0:
            # Whoever slept as well, or stood before our door, gave no sign of life: that is none of death.
            self.directory.excuse(slept, now)
        found = self.directory.sweep(now)
        self.publish(found)
        return len(found)

    def describe(self) -> dict[str, Any]:
        """Agents, sockets and their traffic, for `status`. On the loop; doesn't touch the disk."""
        peers = self.peers
        return {
            "agents": dict(Counter(row.identity for row in self.directory.rows())),
            "seq": self.seq,
            "epoch": self.epoch,
            "sockets": {
                "open": len(peers),
                "identified": sum(peer.agent_id is not None for peer in peers),
                "replaying": len(self._tasks) - (self._news is not None and self._news.is_reading),
                "frames_waiting": sum(peer.connection.waiting for peer in peers),
                **asdict(self.traffic),
                "frames_sent": self.traffic.frames_sent + sum(peer.connection.frames_sent for peer in peers),
            },
        }

    # For the sockets.

    def welcome(self, peer: Peer) -> None:
        """A socket was accepted."""
        self.peers[peer] = None
        self.presence.welcome(peer)
        peer.connection.flush()

    def submit(self, write: Write, reply: Reply) -> None:
        """Have a socket's write carried out; `reply` is called after the commit. Raises as `write` does."""
        self._check(write)
        self.store.submit(write, reply)
        self._bytes += reply.size

    def is_crowded(self, peer: Peer) -> bool:
        """Whether too much waits for its commit; `peer` is relieved once it doesn't."""
        if self._bytes < IN_FLIGHT_BYTES:
            return False
        self._held[peer] = None
        return True

    def touch(self, peer: Peer) -> None:
        """Something was put into the peer's outbox; it goes at the end of this round."""
        self._touched[peer] = None

    def guarded(self, peer: Peer, handle: Callable[[bytes], None], payload: bytes) -> None:
        """Handle a frame; a failure of ours ends that socket and no other."""
        try:
            handle(payload)
        except Exception as error:  # noqa: BLE001 - logged, counted, and told to the peer
            self._failed("A frame couldn't be handled", error)
            peer.connection.close(1011, "something went wrong here")

    def lost(self, peer: Peer) -> None:
        """A socket is gone."""
        self.peers.pop(peer, None)
        self._held.pop(peer, None)
        self._touched.pop(peer, None)
        self.traffic.frames_sent += peer.connection.frames_sent
        self.presence.goodbye(peer)

    def cut_off(self, peer: Peer, why: str) -> None:
        """A socket is broken off because of its peer."""
        self.traffic.cut_off += 1
        _log.info("A socket was cut off", agent_id=peer.agent_id, identity=peer.identity, reason=why)

    def spawn(self, work: Coroutine[Any, Any, None]) -> None:
        """Run something on the loop until it ends or the hub stops."""
        task = self._loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)

    def stamp(self) -> bytes:
        """The envelope's timestamp for now."""
        return events.timestamp(wall_ms())

    # Inside.

    def _check(self, write: Write) -> None:
        if not isinstance(write, Send):
            return
        draft = write.draft
        if draft.to_agent_id is not None:
            self._check_target(draft.identity, draft.to_agent_id)
        self.rates.take(draft.identity, draft.from_agent_id)

    def _check_target(self, identity: str, target: str) -> None:
        if self.directory.lives_elsewhere(identity, target):
            raise WrongIdentityError("That agent belongs to another identity", detail=target)

    def _on_commit(self, settled: Sequence[Settled]) -> None:
        """Called by the store on its own thread."""
        try:
            self._loop.call_soon_threadsafe(self._settle, settled, self.store.epoch, self.store.reached)
        except RuntimeError:
            _log.warning("Writes were settled after the end", count=len(settled))

    def _on_notice(self) -> None:
        """Called by the store on a thread of its own."""
        with contextlib.suppress(RuntimeError):  # the loop has ended
            self._loop.call_soon_threadsafe(self._hear)

    def _hear(self) -> None:
        if self._news is not None and not self.is_stopping:
            self._news.hear()

    def _settle(self, settled: Sequence[Settled], epoch: str, reached: int) -> None:
        if epoch != self.epoch:
            self.start_over(epoch, min((*outcomes.seqs_of(settled), reached + 1)) - 1)
        at = self.stamp()
        for count, one in enumerate(settled, 1):
            try:
                self._settle_one(one, at)
            except Exception as error:  # noqa: BLE001 - logged and counted; the others get theirs
                self._failed("An outcome couldn't be told", error)
            if count % _FLUSH_EVERY == 0:
                self._flush()
        self._flush()
        self._hear()

    def _settle_one(self, one: Settled, at: bytes) -> None:
        body = None
        try:
            if self._news is None and not isinstance(one.outcome, ChannelError):
                body = self._tell(one.outcome, at)
        finally:
            self._answer(one, at, body)

    def _tell(self, outcome: Outcome, at: bytes) -> bytes | None:
        """Send the events of an outcome; returns its message or ack, encoded, where one of them has it."""
        body, own = None, outcomes.seq_of(outcome)
        for event in outcome.events:
            data = events.encoded(event.data)
            if event.seq is not None:
                self.seq = max(self.seq, event.seq)
                if event.seq == own:
                    body = data
            self._fan_out(event, events.event_frame(event, at, data))
        return body

    def _answer(self, one: Settled, at: bytes, body: bytes | None) -> None:
        outcome, tag = one.outcome, one.tag
        if isinstance(tag, Reply):
            self._bytes -= tag.size
            tag(outcome, at, body)
            return
        if not isinstance(tag, asyncio.Future):
            return
        self._bytes -= outcomes.size_of(one.write)
        if not tag.done():
            if isinstance(outcome, ChannelError):
                tag.set_exception(outcome)
            else:
                tag.set_result(outcome)

    def _fan_out(self, event: Event, frame: bytes) -> None:
        self.receipts.hear(event)
        for peer in self.audience.of(event):
            try:
                peer.tell(event, frame)
            except Exception as error:  # noqa: BLE001 - one socket's failure is no other's
                self._drop(peer, error)
            self._touched[peer] = None

    def _flush(self) -> None:
        touched, self._touched = self._touched, {}
        if self._held and self._bytes < IN_FLIGHT_BYTES:
            touched |= self._held
            self._held = {}
        for peer in touched:
            try:
                peer.relieve()
            except Exception as error:  # noqa: BLE001 - as above
                self._drop(peer, error)

    def _drop(self, peer: Peer, error: Exception) -> None:
        self._failed("A socket couldn't be written to", error)
        peer.connection.abort()

    def _failed(self, what: str, error: Exception) -> None:
        self.traffic.failures += 1
        _log.error(what, exc_info=error)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        error = None if task.cancelled() else task.exception()
        if isinstance(error, Exception):
            self._failed("A replay failed, or reading on did", error)
