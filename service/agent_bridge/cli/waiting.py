"""Sending a message and waiting for its answer, over restarts of the service."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing, suppress
from dataclasses import dataclass
from typing import TypeVar

from agent_bridge.channel.errors import UnknownError
from agent_bridge.channel.model import Ack, AckState, Draft, Message
from agent_bridge.channel.states import higher
from agent_bridge.cli import registry_access
from agent_bridge.cli.event_stream import Connected, Event, EventStream, Lost
from agent_bridge.cli.person import Person
from agent_bridge.cli.presence import Presence, present
from agent_bridge.client import address, answers
from agent_bridge.client.answers import AnswerError, Posted
from agent_bridge.client.http import Registry
from agent_bridge.errors import NotRunningError

T = TypeVar("T")


@dataclass(slots=True)
class Waited:
    """How far a message had come at the end; `answer` where there is one, `detail` of its last step."""

    posted: Posted
    state: AckState
    answer: Message | None = None
    detail: str | None = None

    @property
    def is_settled(self) -> bool:
        """Whether there is nothing more to wait for."""
        return self.answer is not None or self.state.is_terminal


class Wait:
    """One message and what becomes of it. `told` hears of every step that it makes."""

    def __init__(self, who: Person, draft: Draft, told: Callable[[AckState], None]) -> None:
        self._who = who
        self._draft = draft
        self._told = told

    async def carry_out(self, *, timeout_s: float, unhealthy_s: float) -> Waited:
        """Send it, and wait for `timeout_s` seconds at most once it is stored.

        Raises ChannelError and NotRunningError where it wasn't stored.
        """
        async with (
            present(self._who, unhealthy_s) as presence,
            aclosing(EventStream(self._who.identity).items()) as items,
        ):
            await anext(items)  # connected: from now on nothing that happens to it can be missed
            waited = await self._send()
            with suppress(TimeoutError):
                async with asyncio.timeout(timeout_s):
                    await self._watch(items, waited, presence)
        return waited

    async def _send(self) -> Waited:
        posted = await asyncio.to_thread(registry_access.send, self._draft)
        waited = Waited(posted, posted.message.state)
        self._told(waited.state)
        return waited

    async def _watch(
        self, items: AsyncIterator[Event | Connected | Lost], waited: Waited, presence: Presence
    ) -> None:
        async for item in items:
            await self._consider(item, waited, presence)
            if waited.is_settled:
                return

    async def _consider(self, item: Event | Connected | Lost, waited: Waited, presence: Presence) -> None:
        if isinstance(item, Connected):
            presence.refresh()
            await self._look(waited)
        elif isinstance(item, Event):
            with suppress(AnswerError):  # a newer registry's words about something else
                await self._happened(item, waited)

    async def _happened(self, item: Event, waited: Waited) -> None:
        if item.type == "channel.ack":
            ack = answers.ack(item.data)
            if ack.message_id != waited.posted.message.message_id:
                return
            if ack.state is AckState.ANSWERED:
                await self._look(waited)  # for the answer itself
            else:
                self._acknowledged(ack, waited)
        elif item.type == "channel.message":
            message = answers.message(item.data)
            if message.reply_to == waited.posted.message.message_id:
                self._answered(message, waited)

    async def _look(self, waited: Waited) -> None:
        """What has become of it, as the registry has stored it; once more when it is back, if it is away."""
        message = waited.posted.message
        try:
            thread = await asyncio.to_thread(
                self._ask, lambda registry: registry.conversation(message.conversation_id, limit=200)
            )
        except (NotRunningError, UnknownError):
            return  # away, or with another database
        for ack in thread.acks:
            if ack.message_id == message.message_id:
                self._acknowledged(ack, waited)
        for other in thread.messages:
            if other.reply_to == message.message_id:
                self._answered(other, waited)

    def _acknowledged(self, ack: Ack, waited: Waited) -> None:
        state = higher(waited.state, ack.state)
        if state is not waited.state:
            waited.state, waited.detail = state, ack.detail
            self._told(state)

    def _answered(self, message: Message, waited: Waited) -> None:
        # Another one's counts once the registry says that it is answered: a bridge has an inner client.
        asked = waited.posted.message.to_agent_id in (None, message.from_agent_id)
        if waited.answer is None and (asked or waited.state is AckState.ANSWERED):
            waited.answer = message
            waited.state = AckState.ANSWERED

    def _ask(self, question: Callable[[Registry], T]) -> T:
        with Registry(address.find(), self._who.identity) as registry:
            return question(registry)
