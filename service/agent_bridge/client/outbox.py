"""What was asked over the WebSocket and isn't answered yet: sent again after a lost connection, in order.

Sends carry their `messageId`, so one that was stored before the connection broke isn't stored twice. Two
receipts for one message that both wait become the higher one.
"""

from __future__ import annotations

import asyncio
import itertools
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from agent_bridge.channel.errors import ChannelError, StorageError, TooLargeError, TooManyError
from agent_bridge.channel.writes import Acknowledge
from agent_bridge.client import answers, requests
from agent_bridge.errors import AgentBridgeError

CROWD = 2000
"""Requests without an answer from which on nothing more is taken on."""


@dataclass(slots=True)
class Request:
    """One frame to be sent; `answer` gets the answer's fields, None where nobody waits for them."""

    number: int
    frame: dict[str, Any]
    answer: asyncio.Future[Mapping[str, Any]] | None = None
    receipt: Acknowledge | None = None
    sent: bool = False
    size: int = 0


class Outbox:
    """Requests by number. Everything here belongs to one event loop."""

    def __init__(self) -> None:
        self._open: dict[int, Request] = {}
        self._waiting: deque[int] = deque()
        self._receipts: dict[tuple[str, str], int] = {}
        self._numbers = itertools.count(1)
        self._wake = asyncio.Event()
        self._quiet = asyncio.Event()
        self._calm = asyncio.Event()
        self.refused = 0
        self._tell()

    def __len__(self) -> int:
        return len(self._open)

    def ask(self, kind: str, body: Mapping[str, Any]) -> tuple[Request, asyncio.Future[Mapping[str, Any]]]:
        """A request whose answer somebody awaits."""
        request = self._add({"type": kind, **body})
        request.answer = asyncio.get_running_loop().create_future()
        return request, request.answer

    def receipt(self, receipt: Acknowledge) -> None:
        """An ack that has to reach the registry some time; nobody waits."""
        key = (receipt.conversation_id, receipt.message_id)
        waiting = self._open.get(self._receipts.get(key, 0))
        if waiting is not None and waiting.receipt is not None and not waiting.sent:
            if receipt.state.rank >= waiting.receipt.state.rank:
                waiting.receipt = receipt
                waiting.frame["ack"] = requests.acknowledge(receipt)
            return
        request = self._add({"type": "channel.ack", "ack": requests.acknowledge(receipt)})
        request.receipt = receipt
        self._receipts[key] = request.number

    async def waiting(self) -> None:
        """Returns once there is something to send."""
        while not self._waiting:
            self._wake.clear()
            await self._wake.wait()

    def pop(self) -> Request | None:
        """The next request to send; it counts as sent."""
        if not self._waiting:
            return None
        request = self._open[self._waiting.popleft()]
        request.sent = True
        return request

    def lost(self) -> None:
        """The connection is gone: what wasn't answered is to be sent again, oldest first."""
        for request in self._open.values():
            request.sent = False
        self._waiting = deque(self._open)
        self._wake.set()

    def answered(self, kind: str, fields: Mapping[str, Any]) -> Request | None:
        """An answer came. Returns a receipt that failed for now and may be put back with `put_back`."""
        number = fields.get("requestId")
        request = self._open.get(number) if isinstance(number, int) else None
        if request is None or not request.sent:
            return None
        error = answers.refusal(fields, 400) if kind == "channel.error" else None
        if request.receipt is not None and isinstance(error, StorageError | TooManyError):
            return request
        self.drop(request)
        if error is not None and request.receipt is not None:
            self.refused += 1
        _resolve(request, fields, error)
        return None

    def put_back(self, request: Request) -> None:
        """Send it once more."""
        if request.number in self._open and request.sent:
            request.sent = False
            self._waiting.append(request.number)
            self._wake.set()

    def too_large(self) -> None:
        """A frame was too large for the registry: the largest unanswered one, which must not go again."""
        sent = [request for request in self._open.values() if request.sent]
        if sent:
            largest = max(sent, key=lambda request: request.size)
            self.drop(largest)
            _resolve(largest, {}, TooLargeError("The message is too large for the registry."))

    async def calm(self) -> None:
        """Returns while there are few enough requests that more may be added."""
        await self._calm.wait()

    def drop(self, request: Request) -> None:
        """Nobody waits for it any more."""
        self._open.pop(request.number, None)
        if not request.sent and request.number in self._waiting:
            self._waiting.remove(request.number)
        if request.receipt is not None:
            key = (request.receipt.conversation_id, request.receipt.message_id)
            if self._receipts.get(key) == request.number:
                del self._receipts[key]
        self._tell()

    def end(self, error: AgentBridgeError) -> list[Acknowledge]:
        """Nothing is sent any more: who waits gets `error`. Returns the receipts that didn't get through."""
        left = [request.receipt for request in self._open.values() if request.receipt is not None]
        for request in list(self._open.values()):
            _resolve(request, {}, error)
        self._open.clear()
        self._waiting.clear()
        self._receipts.clear()
        self._tell()
        return left

    async def settled(self) -> None:
        """Returns once everything was answered."""
        await self._quiet.wait()

    def _add(self, frame: dict[str, Any]) -> Request:
        number = next(self._numbers)
        request = Request(number, {**frame, "requestId": number})
        self._open[number] = request
        self._waiting.append(number)
        self._wake.set()
        self._tell()
        return request

    def _tell(self) -> None:
        for event, holds in ((self._quiet, not self._open), (self._calm, len(self._open) < CROWD)):
            event.set() if holds else event.clear()


def _resolve(
    request: Request, fields: Mapping[str, Any], error: ChannelError | AgentBridgeError | None
) -> None:
    if request.answer is None or request.answer.done():
        return
    if error is None:
        request.answer.set_result(fields)
    else:
        request.answer.set_exception(error)
