"""Answers over HTTP, as small as they can be: status, headers, one body."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, MutableMapping
from dataclasses import dataclass
from typing import Any

from agent_bridge.registry.events import encoded

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Header = tuple[bytes, bytes]

_JSON = (b"content-type", b"application/json")
_TEXT = (b"content-type", b"text/plain; charset=utf-8")
_ALWAYS = ((b"cache-control", b"no-store"), (b"x-content-type-options", b"nosniff"))


@dataclass(frozen=True, slots=True)
class Answer:
    """One whole answer."""

    status: int
    body: bytes
    headers: tuple[Header, ...] = (_JSON,)

    async def send(self, send: Send) -> None:
        """Send it over ASGI."""
        headers = [*self.headers, *_ALWAYS, (b"content-length", b"%d" % len(self.body))]
        await send({"type": "http.response.start", "status": self.status, "headers": headers})
        await send({"type": "http.response.body", "body": self.body})

    async def refuse_upgrade(self, send: Send, *, can_say_why: bool = True) -> None:
        """Answer an upgrade to a WebSocket with it; where the server can't, the upgrade is only refused."""
        if not can_say_why:
            await send({"type": "websocket.close"})
            return
        headers = [*self.headers, (b"content-length", b"%d" % len(self.body))]
        await send({"type": "websocket.http.response.start", "status": self.status, "headers": headers})
        await send({"type": "websocket.http.response.body", "body": self.body})


def as_json(value: object, status: int = 200, headers: tuple[Header, ...] = ()) -> Answer:
    """`value` as JSON."""
    return of_json(encoded(value), status, headers)


def of_json(body: bytes, status: int = 200, headers: tuple[Header, ...] = ()) -> Answer:
    """What is JSON already."""
    return Answer(status, body, (_JSON, *headers))


def as_text(text: str, status: int) -> Answer:
    """Plain text."""
    return Answer(status, text.encode(), (_TEXT,))
