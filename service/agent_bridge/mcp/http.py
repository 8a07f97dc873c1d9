"""The tools over streamable HTTP, for clients that don't start a program: sessions of `/mcp` on the registry.

The SDK's transport does the protocol; this keeps the sessions. Only the handshake of the versions up to
2025-11-25 is answered, as on stdio. Who may call has been checked before; nothing here is trusted for it.
"""

from __future__ import annotations

import asyncio
import json
import math
import uuid
from collections.abc import Awaitable, Callable, MutableMapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import mcp_types as types
from mcp.server.streamable_http import MCP_SESSION_ID_HEADER, StreamableHTTPServerTransport
from pydantic import ValidationError

from agent_bridge.errors import AgentBridgeError
from agent_bridge.log import get_logger
from agent_bridge.mcp.hello import Hello
from agent_bridge.mcp.hello_parse import is_path, shown
from agent_bridge.mcp.places import first_start, root_of

if TYPE_CHECKING:
    from agent_bridge.mcp.brain import Brain
    from agent_bridge.mcp.server import McpServer
    from agent_bridge.mcp.sessions import Connected

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]

PROJECT_HEADER: Final = "X-Agent-Bridge-Project"
"""Names the directory from which the project is found, as an absolute path."""
IDLE_SECONDS: Final = 1_800.0
"""How long a session is kept that asks for nothing and listens to nothing."""
MOST_SESSIONS: Final = 128
BODY_SECONDS: Final = 20.0
"""What the body of a request may take to come."""
_PARSE_ERROR, _INVALID_REQUEST, _METHOD_NOT_FOUND, _INVALID_PARAMS = -32700, -32600, -32601, -32602
_log = get_logger("mcp")


@dataclass(slots=True, eq=False)
class _Live:
    """A session over HTTP, and who may use it."""

    identity: str
    transport: StreamableHTTPServerTransport
    connected: Connected
    serving: asyncio.Task[None] | None = None

    @property
    def idle_until(self) -> float:
        """When it ends for want of requests, by the loop's clock; inf while it is in use."""
        idle = self.transport.idle_scope
        return math.inf if idle is None else idle.deadline


class HttpSessions:
    """An ASGI application for one path, on one loop."""

    def __init__(self, brain: Brain, server: McpServer) -> None:
        self._brain = brain
        self._server = server
        self._live: dict[str, _Live] = {}

    async def answer(self, scope: Scope, receive: Receive, send: Send, identity: str, limit: int) -> None:
        """One request of `identity`; `limit`: bytes that its body may have."""
        body = await _body(receive, limit) if scope["method"] == "POST" else b""
        if body is None:
            await _refuse(send, 413, _INVALID_REQUEST, f"The body is over {limit} bytes.")
            return
        session_id = _header(scope, MCP_SESSION_ID_HEADER)
        if not session_id:
            await self._open(scope, body, receive, send, identity)
            return
        live = self._live.get(session_id)
        if live is None or live.identity != identity:
            await _refuse(send, 404, _INVALID_REQUEST, "Session not found")
            return
        await live.transport.handle_request(scope, _again(body, receive), send)
        if live.transport.is_terminated:
            await self._end(session_id)

    async def close(self) -> None:
        """End all sessions: the service or its registry ends."""
        for session_id in list(self._live):
            await self._end(session_id)

    async def _open(self, scope: Scope, body: bytes, receive: Receive, send: Send, identity: str) -> None:
        if scope["method"] != "POST":
            await _refuse(send, 400, _INVALID_REQUEST, "A session begins with a POST of `initialize`")
            return
        try:
            opening = json.loads(body)
        except (ValueError, RecursionError):
            await _refuse(send, 400, _PARSE_ERROR, "The body isn't JSON")
            return
        method = opening.get("method") if isinstance(opening, dict) else None
        if method != "initialize":
            # A newer client asks whether the newer protocol is spoken; it goes on with the handshake then.
            code = _METHOD_NOT_FOUND if method == "server/discover" else _INVALID_REQUEST
            await _refuse(send, 400, code, "A session begins with `initialize`")
            return
        if (fault := _fault_of(opening)) is not None:
            await _refuse(send, 400, _INVALID_PARAMS, fault)
            return
        if not await self._has_room():
            await _refuse(send, 503, _INVALID_REQUEST, f"{MOST_SESSIONS} sessions are in use already")
            return
        hello = _hello(scope, opening, identity)
        start = first_start(hello)
        try:
            connected = self._brain.sessions.open(hello, start, await asyncio.to_thread(root_of, start))
        except AgentBridgeError as error:
            await _refuse(send, 503, _INVALID_REQUEST, error.sentence())
            return
        await self._begin(_Live(identity, _transport(), connected), scope, _again(body, receive), send)

    async def _has_room(self) -> bool:
        """Whether one more may be open; for it ends the one that has been idle for longest.

        Few clients say that they end; one that is ended so is told with its next request, and begins anew.
        """
        if len(self._live) < MOST_SESSIONS:
            return True
        idle = {session_id: live.idle_until for session_id, live in self._live.items()}
        longest = min(idle, key=lambda session_id: idle[session_id])
        if idle[longest] == math.inf:
            return False
        await self._end(longest)
        return True

    async def _begin(self, live: _Live, scope: Scope, receive: Receive, send: Send) -> None:
        """Have the session answer what opens it; where that fails it is none."""
        session_id = str(live.transport.mcp_session_id)
        self._live[session_id] = live
        status = 500

        async def watch(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        started = asyncio.Event()
        live.serving = asyncio.create_task(self._serve(session_id, live, started))
        try:
            await started.wait()
            await live.transport.handle_request(scope, receive, watch)
        finally:
            if status >= 400:
                await self._end(session_id)

    async def _serve(self, session_id: str, live: _Live, started: asyncio.Event) -> None:
        try:
            async with live.transport.connect() as (read, write):
                started.set()
                idle = live.transport.idle_scope
                assert idle is not None  # noqa: S101 - there is one where an idle timeout is given
                with idle:
                    await self._server.serve(live.connected, read, write)
        except Exception as error:  # noqa: BLE001 - one session's failure is told, and is nobody else's
            self._brain.counts.failed(f"A session over HTTP failed: {type(error).__name__}.")
            _log.error("a session over HTTP failed", exc_info=error)
        finally:
            started.set()
            self._live.pop(session_id, None)
            is_last = self._brain.sessions.close(live.connected)
            await self._brain.presence.end(live.connected, is_last=is_last)

    async def _end(self, session_id: str) -> None:
        live = self._live.pop(session_id, None)
        if live is None:
            return
        if not live.transport.is_terminated:
            await live.transport.terminate()
        if live.serving is not None:
            live.serving.cancel()
            await asyncio.wait({live.serving})


def _transport() -> StreamableHTTPServerTransport:
    return StreamableHTTPServerTransport(mcp_session_id=uuid.uuid4().hex, idle_timeout=IDLE_SECONDS)


def _fault_of(opening: dict[str, Any]) -> str | None:
    """Why the SDK won't accept an `initialize`; a session that never began would be kept as an idle one."""
    try:
        asked = types.JSONRPCRequest.model_validate(opening)
        types.InitializeRequestParams.model_validate(asked.params or {}, by_name=False)
    except ValidationError as error:
        named = [".".join(str(part) for part in one["loc"]) for one in error.errors()]
        return shown(f"`initialize` isn't well-formed: {', '.join(named)}")
    return None


def _hello(scope: Scope, opening: dict[str, Any], identity: str) -> Hello:
    """What a shim would say; there is none, so its process isn't known."""
    params = opening.get("params")
    client = params.get("clientInfo") if isinstance(params, dict) else None
    about = client if isinstance(client, dict) else {}
    project = _header(scope, PROJECT_HEADER)
    return Hello(
        nonce=uuid.uuid4().hex,
        pid=0,
        parent_pid=0,
        cwd="",
        project=project if is_path(project) else "",
        identity=identity,
        client_name=shown(about.get("name", "")),
        client_version=shown(about.get("version", "")),
    )


def _header(scope: Scope, name: str) -> str:
    wanted = name.lower().encode()
    for key, value in scope["headers"]:
        if key == wanted:
            return bytes(value).decode("utf-8", "replace")
    return ""


async def _body(receive: Receive, limit: int) -> bytes | None:
    """The whole body; None where it is over the limit. Raises TimeoutError, ConnectionError."""
    received = bytearray()
    async with asyncio.timeout(BODY_SECONDS):
        while True:
            message = await receive()
            if message["type"] == "http.disconnect":
                raise ConnectionResetError
            received += message.get("body", b"")
            if len(received) > limit:
                return None
            if not message.get("more_body", False):
                return bytes(received)


def _again(body: bytes, receive: Receive) -> Receive:
    """What was read of a request, once more."""
    is_told = False

    async def receiving() -> Message:
        nonlocal is_told
        if is_told:
            return await receive()
        is_told = True
        return {"type": "http.request", "body": body, "more_body": False}

    return receiving


async def _refuse(send: Send, status: int, code: int, message: str) -> None:
    error = {"jsonrpc": "2.0", "id": None, "error": {"code": code, "message": message}}
    body = json.dumps(error).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
