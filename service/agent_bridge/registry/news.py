"""Telling sockets what is stored in a database that several registries share.

Commits of all registries follow one another in one order. So that no socket hears of a later one before an
earlier one, which its cursor would then step over, everything stored is told from the database there, this
registry's own too.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from agent_bridge.channel.errors import ChannelError
from agent_bridge.registry.paging import gather_events

if TYPE_CHECKING:
    from agent_bridge.registry.hub import Hub

PAGE = 500
"""Events that are read and told before the loop does something else."""


class News:
    """Reads on from the hub's `seq` whenever something may have been stored. On the loop."""

    def __init__(self, hub: Hub) -> None:
        self._hub = hub
        self._is_due = False
        self.is_reading = False
        """Whether it is at it: a task of the hub's."""

    def hear(self) -> None:
        """Something may have been stored."""
        self._is_due = True
        if not self.is_reading:
            self.is_reading = True
            self._hub.spawn(self._read_on())

    async def _read_on(self) -> None:
        try:
            while self._is_due:
                self._is_due = False
                await self._read_page()
        except ChannelError:
            return  # the store's health says why; the next notice or look comes by itself
        finally:
            self.is_reading = False

    async def _read_page(self) -> None:
        hub = self._hub
        epoch, seq = hub.epoch, hub.seq
        found, more = await hub.read(
            lambda store: gather_events(partial(store.events_since, None), seq, PAGE)
        )
        if hub.store.epoch != epoch:
            hub.start_over(hub.store.epoch, hub.store.reached)
        elif hub.epoch == epoch:
            hub.tell(found)
        self._is_due = self._is_due or more or hub.epoch != epoch
