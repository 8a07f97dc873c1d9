"""What the tools need of the rest of the service: the stores, and the channel. `daemon` provides both."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Protocol, TypeVar

if TYPE_CHECKING:
    from agent_bridge.channel.directory import AgentRow
    from agent_bridge.channel.model import AckState
    from agent_bridge.channel.storage.store import Store as ChannelStore
    from agent_bridge.channel.writes import Outcome, Write
    from agent_bridge.memory.adding import Added
    from agent_bridge.memory.draft import Draft
    from agent_bridge.memory.fact import Fact
    from agent_bridge.memory.search import Search
    from agent_bridge.memory.store import Store

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class StorePlace:
    """A store of facts: `root` is the project's, None for the global one. `search` belongs to the store."""

    scope: Literal["project", "global"]
    store: Store
    search: Search
    root: Path | None


@dataclass(frozen=True, slots=True)
class NoProject:
    """Why there is no project's store here.

    `reason`: no directory is known, the directory isn't in a Git repository, or `init` hasn't been run.
    `root` is the repository's, where there is one. `readable` is the store that lies there all the same, come
    with a clone: it may be read, not written.
    """

    reason: Literal["no-directory", "no-repository", "not-set-up"]
    root: Path | None = None
    readable: StorePlace | None = None


@dataclass(frozen=True, slots=True)
class Removed:
    """A fact that was taken out; `notes` are sentences about where it stands yet, and what was kept."""

    fact: Fact
    notes: tuple[str, ...] = ()


class MemoryPort(Protocol):
    """The stores of facts. Its methods block (milliseconds; a lock may take seconds): call them in threads.

    One store object a directory is kept and shared, so that what is known of its files stays known; hold
    `Store.locked`-using methods to one thread a store at a time by `serialized`.
    """

    def project(self, start: Path | None) -> StorePlace | NoProject:
        """The store of the project that a directory lies in, by `projects.json`; worktrees share one.

        Raises RefusedError for one that is a symlink.
        """

    def everybodys(self) -> StorePlace:
        """The store of scope global; it needn't exist."""

    def add(self, place: StorePlace, draft: Draft) -> Future[Added]:
        """Add a fact; doesn't block. What waits for the same store is added in one go.

        The future raises DuplicateError, which names the fact of this text, or another AgentBridgeError.
        """

    def serialized(self, place: StorePlace, work: Callable[[], T]) -> T:
        """What `work` returns, run while nobody else in this process works on that store."""

    def remove(self, place: StorePlace, key: str) -> Removed:
        """Take a fact out as `agent-bridge rm` does: its bytes are kept, `history` shows it.

        Raises NotFoundError, UsageError where several facts begin so, AgentBridgeError.
        """


class ChannelPort(Protocol):
    """The registry of this service. The methods run on the loop of the tools; the registry has its own.

    Its first use loads the registry. All raise ChannelError, and NotRunningError where it isn't running.
    """

    async def register(self, row: AgentRow) -> None:
        """Put a session into the directory, or say anew that it lives."""

    async def remove(self, identity: str, agent_id: str) -> None:
        """Take a session out of the directory."""

    async def rows(self, identity: str) -> list[AgentRow]:
        """What that identity sees of the directory."""

    async def reaches(self, identity: str, agent_id: str) -> bool:
        """Whether something listens for that agent, so that a message may be delivered at once."""

    async def write(self, write: Write) -> Outcome:
        """Do it; returns after the commit."""

    async def read(self, function: Callable[[ChannelStore], T]) -> T:
        """What `function` reads from the store of messages, in a thread of the registry's."""

    async def settled(
        self, identity: str, message_id: str, states: frozenset[AckState], seconds: float
    ) -> AckState | None:
        """Wait until a message has one of these states (or a terminal one), at most so long; its state then,
        None where it isn't there."""

    def describe_url(self) -> str:
        """Where the registry answers, for what a person is told."""
