"""The WebSocket endpoint: an ASGI application for one route, and how uvicorn is to run it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import parse_qs

from agent_bridge.channel.errors import ChannelError, InvalidError
from agent_bridge.registry.answers import Receive, Scope, Send
from agent_bridge.registry.audience import Wants
from agent_bridge.registry.connection import EXTENSION, Connection
from agent_bridge.registry.errors_on_wire import answer_for
from agent_bridge.registry.peer import Peer

if TYPE_CHECKING:
    from agent_bridge.config import Settings
    from agent_bridge.registry.hub import Hub

BACKLOG_BYTES = 32 << 20
"""Bytes that may wait for a client that reads slowly; four messages of the largest size if that is more."""


class Endpoint:
    """The application of `/ws`: `WebSocketRoute("/ws", Endpoint(hub, identity_of))`.

    `identity_of(scope)` says which identity was named at the upgrade, None where none was, `*` for the
    dashboard; it raises ChannelError to refuse. Whoever gets here has passed `Access` already. The query
    `events=none` asks for nothing stored before the socket has identified itself and was replayed to.
    """

    def __init__(self, hub: Hub, identity_of: Callable[[Scope], str | None]) -> None:
        self._hub = hub
        self._identity_of = identity_of

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Accept the connection and hand it over; returns at once, the socket stays open."""
        try:
            identity = self._identity_of(scope)
            wants = _wants(scope)
        except ChannelError as error:
            await answer_for(error).refuse_upgrade(send)
            return
        connection = cast("Connection", scope["extensions"][EXTENSION])
        await receive()
        await send({"type": "websocket.accept"})
        if not connection.is_open:
            return
        settings = self._hub.settings
        peer = Peer(self._hub, connection, identity, wants)
        connection.take_over(
            peer, frames=settings.socket_backlog, size=max(BACKLOG_BYTES, 4 * settings.message_bytes)
        )
        self._hub.welcome(peer)
        connection.begin()


def uvicorn_options(settings: Settings) -> dict[str, Any]:
    """What `uvicorn.Config` must be given so that `Endpoint` works: our `ws` class, pings, sizes."""
    return {
        "ws": Connection,
        "ws_max_size": settings.message_bytes,
        "ws_ping_interval": settings.socket_ping_s,
        "ws_per_message_deflate": False,
    }


def _wants(scope: Scope) -> Wants:
    named = parse_qs(scope["query_string"].decode("latin-1")).get("events", ["all"])[-1]
    if named not in ("all", "none"):
        raise InvalidError("events can't be used", detail="it must be one of all, none")
    return "all" if named == "all" else "none"
