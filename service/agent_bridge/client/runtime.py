"""A program's life on the channel: connected for as long as it runs, nothing missed, nothing shown twice.

    async def show(message: Message) -> Receipt | None:
        ...  # show it to whoever it is for
        return DISPLAYED

    me = Registration(agent_id=ids.client_id("claude-code", path, "global"), name="…", project_path=path)
    async with Session(me, show) as session:
        await session.send("Is the build green?", to="client-codex-bridge-0123456789ab")
        await session.ended()

The session registers, keeps its heartbeat up and connects again for ever; it ends only when it is closed or
when a newer connection of the same agent id has taken over. After a gap it goes on where it was. Messages of
one conversation are shown in the order in which they were stored, each once, as long as the process lives;
what doesn't fit into its bounded queue stays in the registry's inbox and is fetched when there is room.

Each message that comes in gets the receipt `delivered_to_bridge`, or at once the one that the callback
returns. Receipts that a lost connection kept from the registry are sent with the next one.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Any, Literal, Self

from agent_bridge.channel import ids
from agent_bridge.channel.model import Ack, AckState, ActorType, Draft, Kind, Message
from agent_bridge.channel.writes import Acknowledge
from agent_bridge.client import address as addresses
from agent_bridge.client import answers, intake, requests, seen
from agent_bridge.client.address import Address
from agent_bridge.client.backoff import Backoff
from agent_bridge.client.connection import Connection
from agent_bridge.client.cursor import Cursor
from agent_bridge.client.ending import EndedError, NoAnswerError, State, ended, late
from agent_bridge.client.intake import Intake
from agent_bridge.client.link import SUPERSEDED, TOO_LARGE, ClosedError, Link
from agent_bridge.client.outbox import Outbox
from agent_bridge.client.requests import Registration
from agent_bridge.client.seen import Seen
from agent_bridge.client.showing import DISPLAYED, Callback, Receipt, Showing, failed
from agent_bridge.client.timing import Timing
from agent_bridge.errors import AgentBridgeError
from agent_bridge.log import get_logger

__all__ = [
    "DISPLAYED",
    "EndedError",
    "NoAnswerError",
    "Receipt",
    "Registration",
    "Session",
    "State",
    "Timing",
    "failed",
]

_log = get_logger("client")
_SHOWN_KINDS = frozenset({Kind.CHAT, Kind.TASK_REQUEST, Kind.TASK_RESULT, Kind.ERROR})
_DONE = frozenset({AckState.DISPLAYED, AckState.ANSWERED})


class Session:
    """An agent's or a client's connection to the channel; use it with `async with`, on one event loop.

    `callback` gets the messages for `registration.agent_id` and those for everybody, but its own: see
    `showing.Callback`. `parallel` conversations are shown at a time. `receipts` False: a passive mirror, it
    acks nothing. `actor` is what it acks as.

    `on_event` gets every frame of the registry (not answers to requests), parsed; it must be quick. Frames
    may come again after a lost connection; after `identified` and `resync` a view has to be fetched afresh.
    `events`: "own" are those that concern this agent or everybody, "all" those of the whole identity.

    `find` tells where the registry is, before each connection. `uniform` draws the delays.
    """

    def __init__(
        self,
        registration: Registration,
        callback: Callback,
        *,
        actor: ActorType = ActorType.CLIENT,
        events: Literal["all", "own"] = "own",
        on_event: Callable[[Mapping[str, Any]], None] | None = None,
        parallel: int = 1,
        receipts: bool = True,
        timing: Timing | None = None,
        find: Callable[[], Address] = addresses.find,
        uniform: Callable[[float, float], float] = random.uniform,
        queue_limit: int = intake.LIMIT,
        queue_bytes: int = intake.LIMIT_BYTES,
        seen_limit: int = seen.LIMIT,
    ) -> None:
        self.registration = registration
        self.state = State.CONNECTING
        self.trouble: AgentBridgeError | None = None
        """Why the last connection ended or couldn't be made, or what is wrong with this one."""
        self._timing = timing or Timing()
        self._actor = actor
        self._events = events
        self._on_event = on_event or (lambda _frame: None)
        self._receipts = receipts
        self._find = find
        self._backoff = Backoff(
            self._timing.first_s, self._timing.factor, self._timing.longest_s, uniform=uniform
        )
        self._cursor = Cursor()
        self._seen = Seen(max(seen_limit, 2 * queue_limit))
        self._intake = Intake(self._seen, self._taken, limit=queue_limit, limit_bytes=queue_bytes)
        self._outbox = Outbox()
        self._room = asyncio.Event()
        self._online = asyncio.Event()
        self._over = asyncio.Event()
        self._hurry = asyncio.Event()
        self._closing = False
        self._link: Link | None = None
        self._life: asyncio.Task[None] | None = None
        self._connections = 0
        self._showing = Showing(
            self._intake,
            self._seen,
            callback,
            receipt=self._shown,
            calm=self._outbox.calm,
            on_room=self._room.set,
            timing=self._timing,
            parallel=parallel,
        )

    async def __aenter__(self) -> Self:
        self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    def start(self) -> None:
        """Begin to connect; returns at once."""
        self._showing.start()
        self._life = asyncio.create_task(self._live(), name=f"session {self.registration.agent_id}")

    async def online(self) -> None:
        """Returns once the registry knows us. Raises EndedError when that won't happen any more."""
        waits = [asyncio.create_task(event.wait()) for event in (self._online, self._over)]
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for wait in waits:
                wait.cancel()
        self._check_alive()

    async def ended(self) -> State:
        """Returns once the session is over: `SUPERSEDED` or `CLOSED`."""
        await self._over.wait()
        return self.state

    async def send(
        self,
        content: str,
        *,
        to: str | None = None,
        kind: Kind = Kind.CHAT,
        conversation_id: str | None = None,
        reply_to: str | None = None,
        message_id: str | None = None,
        meta: Mapping[str, Any] | None = None,
        task_id: str | None = None,
        expires_at: int | None = None,
        requires_ack: bool = False,
        expects_response: bool | None = None,
        deadline_s: float | None = None,
    ) -> Message:
        """Send a message and return it as stored, after the registry's commit.

        A lost connection in between is waited for, and the message sent again under the same id, so it is
        stored once. `expires_at` is wall time in ms. Raises the registry's ChannelError, NoAnswerError after
        `deadline_s` (`Timing.send_s`), EndedError.
        """
        draft = Draft(
            identity=self.registration.identity,
            from_agent_id=self.registration.agent_id,
            from_agent_name=self.registration.name,
            kind=kind,
            content=content,
            to_agent_id=to,
            conversation_id=conversation_id,
            message_id=message_id or ids.message_id(),
            reply_to=reply_to,
            task_id=task_id,
            meta=meta,
            expires_at=expires_at,
            requires_ack=requires_ack,
            expects_response=expects_response,
        )
        body = {"message": requests.draft(draft)}
        fields = await self._ask("channel.send", body, draft.message_id or "", deadline_s)
        return answers.message(fields.get("message"))

    async def ack(
        self,
        message: Message,
        state: AckState,
        *,
        detail: str | None = None,
        deadline_s: float | None = None,
    ) -> Ack:
        """Say how far a message has come, and return the ack as stored. Raises as `send` does."""
        if state in _DONE:
            self._seen.settle(message.message_id, message.attempt_count)
        body = {"ack": requests.acknowledge(self._acknowledge(message, state, detail))}
        fields = await self._ask("channel.ack", body, message.message_id, deadline_s)
        return answers.ack(fields.get("ack"))

    def describe(self) -> dict[str, Any]:
        """Figures for a status: state, connections made, what waits, what was shown."""
        return {
            "state": self.state.value,
            "connections": self._connections,
            "trouble": None if self.trouble is None else self.trouble.sentence(),
            "queued": len(self._intake),
            "intake": self._intake.mode.name.lower(),
            "unanswered": len(self._outbox),
            "refused_receipts": self._outbox.refused,
            "shown": self._showing.shown,
            "raised": self._showing.raised,
            "seq": self._cursor.seq,
        }

    async def close(self) -> None:
        """End: callbacks and receipts under way get `Timing.close_s`, then our row is taken out of the list.

        What wasn't shown stays in the registry's inbox.
        """
        if self._closing or self._life is None:
            self._closing = True
            return
        self._closing = True
        await self._showing.stop(self._timing.close_s)
        await self._say_goodbye()
        self._life.cancel()
        await asyncio.gather(self._life, return_exceptions=True)
        self._end(State.CLOSED)

    async def _say_goodbye(self) -> None:
        """A receipt that doesn't get through now means that its message is shown again some day."""
        self._hurry.set()
        try:
            async with asyncio.timeout(self._timing.close_s):
                await self._outbox.settled()
                if self._link is not None and self.state is State.ONLINE:
                    await self._link.deregister()
        except (TimeoutError, AgentBridgeError) as error:
            # The registry notices by itself that we are gone, and what wasn't acked comes again.
            _log.debug("a session ended without goodbye", detail=str(error))

    async def _live(self) -> None:
        while True:
            try:
                await self._connect()
            except ClosedError as error:
                if error.close_code == SUPERSEDED:
                    self._end(State.SUPERSEDED)
                    return
                if error.close_code == TOO_LARGE:
                    self._outbox.too_large()
                self.trouble = error
            except (AgentBridgeError, TimeoutError) as error:
                self.trouble = error if isinstance(error, AgentBridgeError) else late()
            except Exception as error:  # noqa: BLE001 - deaf for good would be worse than what this is
                _log.exception("a connection ended by a fault of ours")
                self.trouble = AgentBridgeError("A fault of agent-bridge's own.", detail=repr(error))
            finally:
                self._outbox.lost()
                self._online.clear()
                self._link = None
                if not self._over.is_set():
                    self.state = State.CONNECTING
            await self._rest(self._backoff.next())

    async def _rest(self, seconds: float) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._hurry.wait()
                self._hurry.clear()

    async def _connect(self) -> None:
        link = Link(self._find(), self.registration, open_s=self._timing.open_s, ping_s=self._timing.ping_s)
        async with link:
            self._link = link
            connection = Connection(
                link,
                cursor=self._cursor,
                intake=self._intake,
                outbox=self._outbox,
                timing=self._timing,
                events=self._events,
                is_for_us=self._is_for_us,
                on_event=self._tell,
                on_trouble=self._note,
                room=self._room,
                wake=self._showing.wake,
            )
            try:
                await connection.run(self._is_online)
            except ClosedError as error:
                if error.close_code == SUPERSEDED:
                    await self._hand_over(link)
                raise

    async def _hand_over(self, link: Link) -> None:
        """Whoever took over should know what was shown here already."""
        await self._showing.stop(self._timing.close_s)
        for receipt in self._outbox.end(ended(State.SUPERSEDED)):
            if receipt.state in _DONE:
                try:
                    await link.acknowledge(requests.acknowledge(receipt))
                except AgentBridgeError as error:
                    _log.warning("a receipt could not be handed over", detail=error.sentence())
                    return

    def _is_online(self) -> None:
        self._connections += 1
        self._backoff.reset()
        self.trouble = None
        self.state = State.ONLINE
        self._online.set()

    def _end(self, state: State) -> None:
        if not self._over.is_set():
            self.state = state
            self._over.set()
            self._outbox.end(ended(state))

    def _check_alive(self) -> None:
        if self._over.is_set():
            raise ended(self.state)

    async def _ask(
        self, kind: str, body: Mapping[str, Any], message_id: str, deadline_s: float | None
    ) -> Mapping[str, Any]:
        self._check_alive()
        seconds = self._timing.send_s if deadline_s is None else deadline_s
        request = None
        try:
            async with asyncio.timeout(seconds):
                await self._outbox.calm()
                self._check_alive()
                request, answer = self._outbox.ask(kind, body)
                return await answer
        except TimeoutError:
            raise NoAnswerError(seconds, message_id) from None
        finally:
            if request is not None:
                self._outbox.drop(request)

    def _is_for_us(self, message: Message) -> bool:
        if message.kind not in _SHOWN_KINDS or message.from_agent_id == self.registration.agent_id:
            return False
        if message.to_agent_id is None:
            # Its state says how far it has come with anybody, so it doesn't tell whether we have shown it.
            return True
        return message.to_agent_id == self.registration.agent_id and message.state not in _DONE

    def _taken(self, message: Message) -> None:
        if self._receipts and message.state.rank < AckState.DELIVERED.rank:
            self._outbox.receipt(self._acknowledge(message, AckState.DELIVERED, None))

    def _shown(self, message: Message, receipt: Receipt) -> None:
        if self._receipts:
            self._outbox.receipt(self._acknowledge(message, receipt.state, receipt.detail))

    def _acknowledge(self, message: Message, state: AckState, detail: str | None) -> Acknowledge:
        return Acknowledge(
            identity=message.identity,
            conversation_id=message.conversation_id,
            message_id=message.message_id,
            state=state,
            actor_id=self.registration.agent_id,
            actor_type=self._actor,
            detail=detail,
        )

    def _note(self, trouble: AgentBridgeError | None) -> None:
        self.trouble = trouble

    def _tell(self, frame: Mapping[str, Any]) -> None:
        try:
            self._on_event(frame)
        except Exception:  # noqa: BLE001 - a view's fault must not cost the connection
            _log.exception("an event could not be passed on", type=frame.get("type"))
