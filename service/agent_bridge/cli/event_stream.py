"""What happens in one identity, as it happens: for commands that look on (`tail`) or wait (`send --wait`).

A looker-on has a WebSocket of its own under an id that nobody else has, so that two of them don't take over
from each other, and no row in the list: nothing can be sent to it.
"""

from __future__ import annotations

import asyncio
import json
import time
import uuid
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any

from agent_bridge.client import address as addresses
from agent_bridge.client.address import Address
from agent_bridge.client.backoff import Backoff
from agent_bridge.client.cursor import Cursor
from agent_bridge.client.opening import open_socket
from agent_bridge.errors import AgentBridgeError, NotRunningError, RefusedError

_OPEN_SECONDS = 10.0
_PING_SECONDS = 20.0
_STABLE_SECONDS = 5.0
"""A connection that held so long was none that is broken off at once, again and again."""
_GAP = "The registry can't tell what happened before."
_GAPS = {
    "epoch": "The registry has another database than before: what happened meanwhile isn't shown.",
    "too_new": "The registry hasn't come as far as that; from here on all is shown.",
}
_REMEMBERED = 10_000
"""Events that are known by their number, so that none is told twice."""


@dataclass(frozen=True, slots=True)
class Event:
    """Something happened. `seq` is None for what isn't stored; `frame` is the whole frame of the registry."""

    type: str
    data: Mapping[str, Any]
    seq: int | None
    frame: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Connected:
    """The stream begins, or goes on. `gap`: why something may be missing before it, else empty."""

    gap: str = ""


@dataclass(frozen=True, slots=True)
class Lost:
    """The connection is gone; the stream tries again until it is back."""

    why: str


class EventStream:
    """Events, for ever (`items`). The first connection must succeed; lost ones are made again.

    `since` begins after that event (see `Event.seq`), None with what comes from now on.
    Raises NotRunningError and AgentBridgeError at the first connection; RefusedError also later.
    """

    def __init__(
        self,
        identity: str,
        *,
        since: int | None = None,
        find: Callable[[], Address] = addresses.find,
        backoff: Backoff | None = None,
    ) -> None:
        self._identity = identity
        self._agent_id = f"client-looker-on-{uuid.uuid4()}"
        self._find = find
        self._backoff = backoff or Backoff(0.2, 2.0, 10.0)
        self._cursor = Cursor()
        self._cursor.seq = since
        self._told: dict[int, None] = {}

    @property
    def cursor(self) -> tuple[str | None, int | None]:
        """Database and number of the last event up to which everything was told."""
        return self._cursor.epoch, self._cursor.seq

    async def items(self) -> AsyncGenerator[Event | Connected | Lost, None]:
        """What happens, for ever; close it when it isn't needed any more (`contextlib.aclosing`)."""
        was_connected = False
        while True:
            begun = time.monotonic()
            try:
                async with aclosing(self._connection()) as connection:
                    async for item in connection:
                        was_connected = True
                        yield item
            except RefusedError:
                raise
            except AgentBridgeError as error:
                if not was_connected:
                    raise
                yield Lost(error.sentence())
            if time.monotonic() - begun > _STABLE_SECONDS:
                self._backoff.reset()
            await asyncio.sleep(self._backoff.next())

    async def _connection(self) -> AsyncGenerator[Event | Connected, None]:
        """One connection, until it is gone. Raises NotRunningError then."""
        from websockets.exceptions import ConnectionClosed

        socket = await open_socket(self._find(), self._identity, open_s=_OPEN_SECONDS, ping_s=_PING_SECONDS)
        try:
            self._greeted(await socket.recv())
            asked = self._cursor.seq is not None
            identify = {"type": "identify", "agentId": self._agent_id, "identity": self._identity}
            await socket.send(json.dumps({**identify, "events": "all", **self._cursor.question()}))
            async for text in socket:
                item = self._read(text, asked=asked)
                if item is not None:
                    yield item
            raise NotRunningError("The connection to the registry is gone.")
        except ConnectionClosed as error:
            raise NotRunningError("The connection to the registry is gone.", detail=str(error)) from None
        finally:
            await socket.close()

    def _greeted(self, text: str | bytes) -> None:
        """The first frame, a snapshot, names the database: a number that was typed is meant for that one."""
        frame = _frame(text)
        if self._cursor.epoch is None and frame is not None:
            self._cursor.epoch = _text(frame, "epoch")

    def _read(self, text: str | bytes, *, asked: bool) -> Event | Connected | None:
        frame = _frame(text)
        if frame is None:
            return None
        kind = frame["type"]
        if kind == "identified":
            return self._identified(frame, asked=asked)
        if kind == "replayed":
            self._cursor.replayed(_number(frame, "seq") or 0)
            return None
        if kind == "resync":
            self._told.clear()  # another database counts anew
            self._cursor.resync(_text(frame, "epoch"), _number(frame, "seq") or 0)
            return Connected(gap=_GAPS.get(_text(frame, "reason") or "", _GAP))
        data = frame.get("data")
        return self._happened(kind, data, frame) if isinstance(data, dict) else None

    def _identified(self, frame: Mapping[str, Any], *, asked: bool) -> Connected | None:
        epoch, seq = _text(frame, "epoch"), _number(frame, "seq") or 0
        replays = self._cursor.identified(epoch, seq)
        if asked and not replays:
            return None  # a `resync` follows and says why
        return Connected()

    def _happened(self, kind: str, data: Mapping[str, Any], frame: Mapping[str, Any]) -> Event | None:
        seq = _number(frame, "seq")
        if seq is not None:
            if seq in self._told:
                return None
            self._told[seq] = None
            if len(self._told) > _REMEMBERED:
                del self._told[next(iter(self._told))]
            self._cursor.event(seq, replayed=frame.get("replay") is True)
        return Event(kind, data, seq, frame)


def _frame(text: str | bytes) -> dict[str, Any] | None:
    """The frame, None for what isn't one."""
    try:
        frame = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return frame if isinstance(frame, dict) and isinstance(frame.get("type"), str) else None


def _text(frame: Mapping[str, Any], name: str) -> str | None:
    value = frame.get(name)
    return value if isinstance(value, str) else None


def _number(frame: Mapping[str, Any], name: str) -> int | None:
    value = frame.get(name)
    return value if isinstance(value, int) and not isinstance(value, bool) else None
