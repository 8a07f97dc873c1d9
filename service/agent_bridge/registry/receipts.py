"""Waiting until a message has come so far, on the hub's loop."""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from typing import TYPE_CHECKING

from agent_bridge.channel.writes import Event

if TYPE_CHECKING:
    from agent_bridge.channel.model import AckState, Message
    from agent_bridge.registry.hub import Hub


class Receipts:
    """Who waits for acks of which message. An ack is the sign to look; what the store says counts."""

    def __init__(self) -> None:
        self._waiting: dict[tuple[str, str], list[asyncio.Event]] = {}

    def __len__(self) -> int:
        return len(self._waiting)

    def hear(self, event: Event) -> None:
        """An event of the store; any may come."""
        if not self._waiting or event.type != "channel.ack":
            return
        for waiting in self._waiting.get((event.identity, str(event.data["messageId"])), ()):
            waiting.set()

    async def settled(
        self, hub: Hub, identity: str, message_id: str, states: Collection[AckState], seconds: float
    ) -> AckState | None:
        """Wait until the message has one of `states` or a terminal one, at most so long; its state then, None
        where it isn't there. Raises StorageError."""
        key = identity, message_id
        heard = asyncio.Event()
        self._waiting.setdefault(key, []).append(heard)
        loop = asyncio.get_running_loop()
        until = loop.time() + seconds
        try:
            while True:
                heard.clear()
                message: Message | None = await hub.read(lambda store: store.message(identity, message_id))
                if message is None or message.state in states or message.state.is_terminal:
                    return None if message is None else message.state
                left = until - loop.time()
                if left <= 0:
                    return message.state
                try:
                    await asyncio.wait_for(heard.wait(), left)
                except TimeoutError:
                    continue  # a last look
        finally:
            self._waiting[key].remove(heard)
            if not self._waiting[key]:
                del self._waiting[key]
