"""`POST /agents/{id}/ag-ui`: an agent's own event stream, piped through to the caller.

Only to addresses on this machine's loopback: the address comes from whoever registered, and the registry
would otherwise send requests into networks that its callers can't reach. Whatever goes wrong with the agent
arrives as a `RUN_ERROR` event within the stream, which has begun by then.
"""

from __future__ import annotations

import asyncio
import ipaddress
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, asynccontextmanager
from typing import TYPE_CHECKING, cast
from urllib.parse import urlsplit

import httpx
from pydantic_core import to_json

from agent_bridge.channel.clock import wall_ms
from agent_bridge.channel.errors import TooManyError, UnknownError
from agent_bridge.registry import wire
from agent_bridge.registry.answers import Receive, Send

if TYPE_CHECKING:
    from agent_bridge.registry.calls import Call
    from agent_bridge.registry.hub import Hub

CONNECT_SECONDS = 5.0
SILENCE_SECONDS = 600.0
"""What an agent may be silent for while it works."""
STREAMS = 64
"""Streams at once: each takes a second connection, which nobody has to give way for."""
_HEADERS = [(b"content-type", b"text/event-stream"), (b"cache-control", b"no-store")]
_TIMEOUT = httpx.Timeout(SILENCE_SECONDS, connect=CONNECT_SECONDS, pool=CONNECT_SECONDS)


class AgUiRoute:
    """The handler; it answers by itself, piece by piece."""

    def __init__(self, hub: Hub) -> None:
        self._hub = hub
        self._streams = 0

    async def run(self, call: Call, send: Send) -> None:
        """Pipe the agent's stream until either side ends it.

        Raises, before anything was sent, UnknownError for an agent that isn't there or has no address here,
        and TooManyError.
        """
        agent_id = call.path_id("agent", "agentId")
        row = self._hub.directory.find(call.caller.sees, agent_id)
        url = None if row is None else address_of(row.url)
        if url is None:
            raise UnknownError("Agent not found or has no URL", detail=agent_id)
        body = await call.body()
        wire.read(body)
        if self._streams >= STREAMS:
            raise TooManyError(
                f"{STREAMS} streams of agents are open", remedy="Try again when one of them has ended."
            )
        self._streams += 1
        try:
            await self._pipe(url, body, call, send)
        finally:
            self._streams -= 1

    async def _pipe(self, url: str, body: bytes, call: Call, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": _HEADERS})
        async with _until_gone(call.receive):
            async with aclosing(_stream(url, body)) as pieces:
                async for piece in pieces:
                    await send({"type": "http.response.body", "body": piece, "more_body": True})
            await send({"type": "http.response.body", "body": b""})


def address_of(url: str) -> str | None:
    """The address of an agent's stream, None where that isn't plain HTTP on this machine's loopback."""
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        return None
    if parts.scheme != "http" or parts.username is not None or parts.query or parts.fragment:
        return None
    if host != "localhost" and not _is_loopback(host):
        return None
    shown = f"[{host}]" if ":" in host else host
    return f"http://{shown}:{port or 80}{parts.path.rstrip('/')}/ag-ui"


def run_error(message: str) -> bytes:
    """A `RUN_ERROR` event as it stands in the stream."""
    event = {"type": "RUN_ERROR", "timestamp": wall_ms(), "message": message}
    return b"data: %b\n\n" % to_json(event)


async def _stream(url: str, body: bytes) -> AsyncGenerator[bytes, None]:
    headers = {
        "content-type": "application/json",
        "accept": "text/event-stream",
        "accept-encoding": "identity",
    }
    # Neither proxies nor credentials from the environment, and no redirect that leads elsewhere.
    # Plain HTTP only (`address_of`), so there is no certificate to look at.
    async with httpx.AsyncClient(trust_env=False, timeout=_TIMEOUT, verify=False) as client:  # noqa: S501
        try:
            async with client.stream("POST", url, content=body, headers=headers) as answer:
                if answer.status_code != 200:
                    yield run_error(f"The agent answered with status {answer.status_code}.")
                    return
                async for piece in answer.aiter_raw():
                    yield piece
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            yield run_error(f"The agent's stream failed: {str(error) or type(error).__name__}.")


@asynccontextmanager
async def _until_gone(receive: Receive) -> AsyncIterator[None]:
    """Cancel what is within as soon as the caller has left; that ends the request to the agent too."""
    within = cast("asyncio.Task[None]", asyncio.current_task())
    left = False

    async def watch() -> None:
        nonlocal left
        while (await receive())["type"] != "http.disconnect":
            pass
        left = True
        within.cancel()

    watcher = asyncio.create_task(watch())
    try:
        yield
    except asyncio.CancelledError:
        if not left:
            raise
        within.uncancel()
    finally:
        watcher.cancel()


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
