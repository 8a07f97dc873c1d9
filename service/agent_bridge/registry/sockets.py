"""The WebSocket endpoint: an ASGI application for one route, and how uvicorn is to run it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, MutableMapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from agent_bridge.config import Settings
    from agent_bridge.registry.hub import Hub

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]


class Endpoint:
    """The application of `/ws`: `WebSocketRoute("/ws", Endpoint(hub, identity_of))`.

    `identity_of(scope)` says which identity was named at the upgrade, None where none was, `*` for the
    dashboard; it raises ChannelError to refuse. Whoever gets here has passed `Access` already.
    """

    def __init__(self, hub: Hub, identity_of: Callable[[Scope], str | None]) -> None:
        raise NotImplementedError

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Accept the connection and hand it over; returns at once, the socket stays open."""
        raise NotImplementedError


def uvicorn_options(settings: Settings) -> dict[str, Any]:
    """What `uvicorn.Config` must be given so that `Endpoint` works (its `ws` protocol class, pings, sizes)."""
    raise NotImplementedError
