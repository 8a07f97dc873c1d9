"""One connection to the registry: an HTTP client and an identified WebSocket, both to the loopback only."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from types import TracebackType
from typing import Any, Self

import httpx
from websockets.asyncio.client import ClientConnection
from websockets.exceptions import ConnectionClosed

from agent_bridge.channel.model import Message
from agent_bridge.client import answers, exchange
from agent_bridge.client.address import Address
from agent_bridge.client.answers import Page
from agent_bridge.client.opening import open_socket
from agent_bridge.client.requests import Registration
from agent_bridge.errors import NotRunningError
from agent_bridge.log import get_logger

_log = get_logger("client")

SUPERSEDED = 4001
"""The close code by which the registry says that a newer connection has taken over."""
TOO_LARGE = 1009
"""The close code by which it says that a frame of ours was too large."""


class ClosedError(NotRunningError):
    """The connection is gone; `close_code` is what the registry said at the end, None if nothing."""

    def __init__(self, close_code: int | None, reason: str) -> None:
        super().__init__("The connection to the registry is gone.", detail=reason)
        self.close_code = close_code


class Link:
    """A connection, opened and closed by `async with`."""

    def __init__(self, address: Address, registration: Registration, *, open_s: float, ping_s: float) -> None:
        self._address = address
        self._registration = registration
        self._open_s = open_s
        self._ping_s = ping_s
        self._client: httpx.AsyncClient
        self._socket: ClientConnection | None = None

    async def __aenter__(self) -> Self:
        self._client = httpx.AsyncClient(
            base_url=self._address.url,
            headers=exchange.headers(self._address, self._registration.identity),
            timeout=self._open_s,
            trust_env=False,
            verify=exchange.no_tls(),
        )
        try:
            await self.register()
            self._socket = await open_socket(
                self._address, self._registration.identity, open_s=self._open_s, ping_s=self._ping_s
            )
        except BaseException:
            await self._client.aclose()
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if self._socket is not None:
                await self._socket.close()
        finally:
            await self._client.aclose()

    async def register(self) -> None:
        """Put our row into the list of agents."""
        await self._ask("POST", "/agents", body=self._registration.as_wire())

    async def heartbeat(self) -> None:
        """Say that we are alive. Raises UnknownError when the registry doesn't know us (any more)."""
        body = {"agentId": self._registration.agent_id, "status": "alive"}
        await self._ask("POST", exchange.path("agents", self._registration.agent_id, "heartbeat"), body=body)

    async def deregister(self) -> None:
        """Take our row out of the list."""
        await self._ask("DELETE", exchange.path("agents", self._registration.agent_id))

    async def inbox(self, before: str | None, limit: int) -> Page[Message]:
        """A page of what awaits us, oldest first."""
        asked = {"agentId": self._registration.agent_id, "limit": limit, "before": before}
        answer = await self._ask("GET", "/channel/inbox", asked)
        return Page(_readable(answers.listed(answer.data)), answer.headers.get("x-next-before"))

    async def acknowledge(self, wire: Mapping[str, Any]) -> None:
        """Store an ack by HTTP, for when the WebSocket is gone."""
        await self._ask("POST", "/channel/acks", body=wire)

    async def identify(self, cursor: Mapping[str, Any], events: str) -> None:
        """Say who we are; the answer comes among the frames."""
        await self.send(
            {
                "type": "identify",
                "agentId": self._registration.agent_id,
                "identity": self._registration.identity,
                "events": events,
                **cursor,
            }
        )

    async def send(self, frame: Mapping[str, Any]) -> int:
        """Send a frame; how many characters it had. Raises ClosedError."""
        assert self._socket is not None  # noqa: S101 - within `async with`
        text = json.dumps(frame, ensure_ascii=False, separators=(",", ":"))
        try:
            await self._socket.send(text)
        except ConnectionClosed as error:
            raise _closed(error) from None
        return len(text)

    async def receive(self) -> Mapping[str, Any]:
        """The next frame that is a JSON object; others are passed over. Raises ClosedError."""
        assert self._socket is not None  # noqa: S101 - within `async with`
        while True:
            try:
                text = await self._socket.recv()
            except ConnectionClosed as error:
                raise _closed(error) from None
            try:
                frame = json.loads(text)
            except (ValueError, RecursionError):
                continue
            if isinstance(frame, dict):
                return frame

    async def _ask(
        self,
        method: str,
        where: str,
        params: Mapping[str, object] | None = None,
        body: Mapping[str, Any] | None = None,
    ) -> exchange.Answer:
        query = {name: str(value) for name, value in (params or {}).items() if value is not None}
        content = None if body is None else dict(body)
        try:
            async with self._client.stream(method, where, params=query, json=content) as told:
                collected = exchange.Collected(time.monotonic() + self._open_s)
                async for part in told.aiter_raw():
                    collected.add(part, time.monotonic())
                return exchange.settle(told.status_code, told.headers, collected.all())
        except httpx.HTTPError as error:
            raise exchange.unanswered(error) from error


def _readable(wires: list[object]) -> tuple[Message, ...]:
    """Without those of a newer registry that can't be understood here: they mustn't hold the others up."""
    found = []
    for wire in wires:
        try:
            found.append(answers.message(wire))
        except answers.AnswerError as error:
            _log.warning("a message of the inbox can't be understood", error=error)
    return tuple(found)


def _closed(error: Exception) -> ClosedError:
    told = getattr(error, "rcvd", None)
    return ClosedError(None if told is None else told.code, str(error))
