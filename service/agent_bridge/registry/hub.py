"""The hub: one event loop on which the store's outcomes, the directory and the sockets come together.

Everything here belongs to that loop's thread, apart from what the store calls after a commit. A write is
answered after its commit; its events go out at once, to its target first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from agent_bridge.channel.storage.store import Store
from agent_bridge.channel.writes import Event, Outcome, Write

if TYPE_CHECKING:
    from agent_bridge.channel.clock import Timeline
    from agent_bridge.channel.directory import Directory
    from agent_bridge.channel.storage.place import Place
    from agent_bridge.config import Settings

T = TypeVar("T")


class Rates(Protocol):
    """How much one sender may send."""

    def take(self, identity: str, sender: str) -> None:
        """Count one message. Raises TooManyError where the sender is over its rate."""

    def describe(self) -> dict[str, Any]:
        """Figures for `status`."""


class Hub:
    """Store, directory and sockets of one registry. Made anywhere; `start` and all else on one loop."""

    directory: Directory
    timeline: Timeline
    settings: Settings

    def __init__(
        self,
        place: Place,
        timeline: Timeline,
        settings: Settings,
        *,
        rates: Rates | None = None,
        make_store: Callable[..., Store] = Store,
    ) -> None:
        raise NotImplementedError

    async def start(self) -> None:
        """Open the store; the running loop becomes the hub's. Raises StorageError."""
        raise NotImplementedError

    async def stop(self) -> None:
        """Close all sockets (1001), carry out what was submitted, close the store."""
        raise NotImplementedError

    async def write(self, write: Write) -> Outcome:
        """Have `write` carried out; returns after the commit. Its events go out by themselves.

        Raises ChannelError: what the store raises, TooManyError over the sender's rate, WrongIdentityError
        for a target that lives in another identity only.
        """
        raise NotImplementedError

    async def read(self, function: Callable[[Store], T]) -> T:
        """What `function` reads from the store, on a thread of a small pool. Raises what it raises."""
        raise NotImplementedError

    def publish(self, events: Iterable[Event]) -> None:
        """Send events to the sockets that want them; those with identity `*` go to all identities."""
        raise NotImplementedError

    def reaches(self, identity: str, agent_id: str) -> bool:
        """Whether an agent has a socket open: an event with this `target` reaches it."""
        raise NotImplementedError

    def socket_counts(self) -> tuple[int, int]:
        """How many sockets have identified themselves, and how many are open."""
        raise NotImplementedError

    def sweep_presence(self) -> int:
        """Mark sessions without a heartbeat unhealthy or remove them; returns how many. On the loop."""
        raise NotImplementedError

    @property
    def store(self) -> Store:
        """The store, for the sweeps and the status (they run on other threads)."""
        raise NotImplementedError

    def describe(self) -> dict[str, Any]:
        """Agents, sockets and their traffic, for `status`. From any thread; doesn't touch the disk."""
        raise NotImplementedError
