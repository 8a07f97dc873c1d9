"""A registry of a hundred lines, over real HTTP and WebSockets: the protocol as its clients see it.

It keeps everything in memory and can be told to misbehave: cut connections, forget, hold answers back, send
anything.
"""

from __future__ import annotations

import asyncio
import json
import uuid
from collections.abc import Awaitable, Callable, MutableMapping
from types import TracebackType
from typing import Any, Self
from urllib.parse import parse_qs, unquote

import uvicorn

from agent_bridge.client.address import Address

TOKEN = "a-token-of-the-tests"
Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
_RANKS = ["queued", "delivered_to_bridge", "displayed_to_client", "failed", "answered"]


class Peer:
    """Use with `async with`; `address()` is what a session's `find` returns."""

    def __init__(self) -> None:
        self.epoch = uuid.uuid4().hex
        self.seq = 0
        self.log: list[tuple[int, str, dict[str, Any]]] = []
        self.messages: dict[str, dict[str, Any]] = {}
        self.acks: list[dict[str, Any]] = []
        self.agents: dict[str, dict[str, Any]] = {}
        self.sockets: dict[str, Send] = {}
        self.asked: list[tuple[str, str]] = []
        self.headers: list[dict[str, str]] = []
        self.identified: list[dict[str, Any]] = []
        self.token = TOKEN
        self.replays = True
        self.answers = True
        self.store_before_silence = True
        self.refusal: tuple[int, dict[str, Any]] | None = None
        self.inbox_refusal: tuple[int, dict[str, Any]] | None = None
        self.page = 100
        self.changed = asyncio.Condition()
        self._cuts: set[asyncio.Event] = set()

    async def __aenter__(self) -> Self:
        await self._serve(0)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop()

    async def _serve(self, port: int) -> None:
        config = uvicorn.Config(
            self._application,
            interface="asgi3",
            host="127.0.0.1",
            port=port,
            log_level="error",
            lifespan="off",
            ws_ping_interval=None,
        )
        config.load()
        self._server = uvicorn.Server(config)
        self._task = asyncio.create_task(self._server._serve())
        while not self._server.started:
            await asyncio.sleep(0.001)
        self.port = int(self._server.servers[0].sockets[0].getsockname()[1])

    async def stop(self) -> None:
        await self.cut()
        # Told to exit, it would look up from a nap of 0.1 s first, and take another one.
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)
        for server in self._server.servers:
            server.close()
        for connection in list(self._server.server_state.connections):
            if connection.transport is not None:
                connection.transport.abort()

    async def restart(self) -> None:
        """A new process on another port: agents are forgotten, messages are not."""
        await self.stop()
        self.agents.clear()
        await self._serve(0)

    def address(self) -> Address:
        return Address(f"http://127.0.0.1:{self.port}", self.token)

    async def cut(self) -> None:
        """End every connection as a crash does."""
        for cut in self._cuts:
            cut.set()
        while self._cuts:
            await asyncio.sleep(0.001)

    async def close_with(self, agent_id: str, code: int) -> None:
        await self.sockets[agent_id]({"type": "websocket.close", "code": code, "reason": "told by a test"})

    async def raw(self, agent_id: str, text: str) -> None:
        await self.sockets[agent_id]({"type": "websocket.send", "text": text})

    async def until(self, holds: Callable[[], object], seconds: float = 10) -> None:
        """Returns once `holds()` is true; looked at whenever something came in."""
        async with asyncio.timeout(seconds), self.changed:
            await self.changed.wait_for(lambda: bool(holds()))

    async def post(
        self, to: str | None, content: str, conversation: str = "c", **more: object
    ) -> dict[str, Any]:
        """A message from somebody else."""
        wire = {"fromAgentId": "somebody", "kind": "chat", "content": content, "conversationId": conversation}
        return await self.store({**wire, **({} if to is None else {"toAgentId": to}), **more})

    async def store(self, asked: dict[str, Any]) -> dict[str, Any]:
        message_id = asked.get("messageId") or uuid.uuid4().hex
        if message_id in self.messages:
            return self.messages[message_id]
        message = {
            "conversationId": "c",
            "identity": "global",
            "expectsResponse": False,
            **asked,
            "messageId": message_id,
            "createdAt": 1,
            "attemptCount": 1,
            "state": "queued",
        }
        self.messages[message_id] = message
        await self._event("channel.message", message)
        return message

    async def again(self, message_id: str) -> None:
        """A retry."""
        message = self.messages[message_id]
        message["attemptCount"] += 1
        await self._event("channel.message", message)

    async def forget(self) -> None:
        """Another database, with the same messages in it (so that an inbox still has them)."""
        self.epoch, self.seq, self.log = uuid.uuid4().hex, 0, []
        for message in self.messages.values():
            self.seq += 1
            message["seq"] = self.seq
            self.log.append((self.seq, "channel.message", message))

    def inbox(self, agent_id: str) -> list[dict[str, Any]]:
        return sorted(
            (one for one in self.messages.values() if self._is_open(one, agent_id)),
            key=lambda one: one["seq"],
        )

    def states(self, message_id: str) -> list[str]:
        return [ack["state"] for ack in self.acks if ack["messageId"] == message_id]

    def _is_open(self, one: dict[str, Any], agent_id: str) -> bool:
        if (
            one["kind"] == "presence"
            or one.get("toAgentId", agent_id) != agent_id
            or one["fromAgentId"] == agent_id
        ):
            return False
        if "toAgentId" not in one:
            mine = [
                ack
                for ack in self.acks
                if ack["messageId"] == one["messageId"] and ack["actorId"] == agent_id
            ]
            return all(ack["state"] in ("queued", "delivered_to_bridge") for ack in mine)
        return _RANKS.index(one["state"]) < (3 if one["expectsResponse"] else 2)

    async def _event(self, kind: str, data: dict[str, Any]) -> None:
        self.seq += 1
        data["seq"] = self.seq
        self.log.append((self.seq, kind, dict(data)))
        frame = {"type": kind, "timestamp": "t", "seq": self.seq, "data": dict(data)}
        for send in list(self.sockets.values()):
            await _quietly(send, frame)
        await self._tell()

    async def _tell(self) -> None:
        async with self.changed:
            self.changed.notify_all()

    async def _application(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.headers.append({name.decode(): value.decode() for name, value in scope["headers"]})
        allowed = self.headers[-1].get("authorization") == f"Bearer {self.token}"
        if scope["type"] == "websocket":
            if allowed:
                await self._socket(receive, send)
            else:
                await send({"type": "websocket.close", "code": 1008})
            return
        body = (await receive()).get("body", b"")
        self.asked.append((scope["method"], scope["raw_path"].decode()))
        headers: list[tuple[bytes, bytes]] = []
        status, data = 401, {"error": "no", "code": "unauthorized"}
        if self.refusal is not None:
            status, data = self.refusal
        elif allowed:
            status, data, headers = await self._answer(scope, json.loads(body) if body else {})
        text = data if isinstance(data, bytes) else json.dumps(data).encode()
        head = [(b"content-type", b"application/json"), *headers]
        await send({"type": "http.response.start", "status": status, "headers": head})
        await send({"type": "http.response.body", "body": text})
        await self._tell()

    async def _answer(self, scope: Scope, body: dict[str, Any]) -> tuple[int, Any, list[tuple[bytes, bytes]]]:
        parts = [unquote(part) for part in scope["raw_path"].decode().strip("/").split("/")]
        query = {name: values[0] for name, values in parse_qs(scope["query_string"].decode()).items()}
        match [scope["method"], *parts]:
            case ["POST", "agents"]:
                self.agents[body["agentId"]] = body
                return 201, body, []
            case ["DELETE", "agents", agent_id]:
                return 200, {"removed": self.agents.pop(agent_id, None) is not None}, []
            case ["POST", "agents", agent_id, "heartbeat"]:
                if agent_id not in self.agents:
                    return 404, {"error": "Agent not found", "code": "unknown"}, []
                return 200, {"ok": True, "timestamp": 1}, []
            case ["GET", "channel", "inbox"] if self.inbox_refusal is not None:
                return *self.inbox_refusal, []
            case ["GET", "channel", "inbox"]:
                rest = [
                    one for one in self.inbox(query["agentId"]) if one["seq"] > int(query.get("before", 0))
                ]
                page = rest[: self.page]
                more = len(rest) > self.page
                return 200, page, [(b"x-next-before", str(page[-1]["seq"]).encode())] if more else []
            case ["POST", "channel", "acks"]:
                return 201, await self._ack(body), []
            case _:
                return 404, {"error": "no such route", "code": "unknown"}, []

    async def _ack(self, body: dict[str, Any]) -> dict[str, Any]:
        ack = {**body, "timestamp": 1}
        self.acks.append(ack)
        message = self.messages.get(ack["messageId"])
        if message is not None:
            message["state"] = max(message["state"], ack["state"], key=_RANKS.index)
        self.seq += 1
        ack["seq"] = self.seq
        await self._tell()
        return ack

    async def _socket(self, receive: Receive, send: Send) -> None:
        cut = asyncio.Event()
        self._cuts.add(cut)
        task = asyncio.create_task(self._converse(receive, send))
        cutting = asyncio.create_task(cut.wait())
        try:
            await asyncio.wait([task, cutting], return_when=asyncio.FIRST_COMPLETED)
        finally:
            task.cancel()
            cutting.cancel()
            await asyncio.gather(task, cutting, return_exceptions=True)
            self.sockets = {name: one for name, one in self.sockets.items() if one is not send}
            if cut.is_set():
                # 1012: the service restarts. A real crash sends nothing, which ends the same way.
                await _quietly(send, None)
            self._cuts.discard(cut)

    async def _converse(self, receive: Receive, send: Send) -> None:
        await receive()
        await send({"type": "websocket.accept"})
        await _quietly(send, {"type": "snapshot", "agents": [], "seq": self.seq, "epoch": self.epoch})
        while True:
            event = await receive()
            if event["type"] != "websocket.receive":
                return
            await self._frame(json.loads(event["text"]), send)
            await self._tell()

    async def _frame(self, frame: dict[str, Any], send: Send) -> None:
        if frame["type"] == "identify":
            await self._identify(frame, send)
        elif frame["type"] == "channel.send":
            if self.answers or self.store_before_silence:
                known = frame["message"].get("messageId") in self.messages
                message = await self.store(frame["message"])
                answer = {"requestId": frame["requestId"], "message": message, "deduplicated": known}
                if self.answers:
                    await _quietly(send, {"type": "channel.sent", "data": answer})
        elif frame["type"] == "channel.ack" and self.answers:
            ack = await self._ack(frame["ack"])
            await _quietly(
                send, {"type": "channel.acked", "data": {"requestId": frame["requestId"], "ack": ack}}
            )

    async def _identify(self, frame: dict[str, Any], send: Send) -> None:
        self.identified.append(frame)
        known = self.sockets.get(frame["agentId"]) is send
        at, epoch = self.seq, self.epoch
        await _quietly(send, {"type": "identified", "agentId": frame["agentId"], "seq": at, "epoch": epoch})
        if known or "since" not in frame:
            self.sockets[frame["agentId"]] = send
            return
        if frame["epoch"] != epoch or not self.replays:
            self.sockets[frame["agentId"]] = send
            await _quietly(send, {"type": "resync", "reason": "told", "seq": at, "epoch": epoch})
            return
        done = frame["since"]
        while missed := [one for one in self.log if one[0] > done]:
            for seq, kind, data in missed:
                await _quietly(
                    send, {"type": kind, "timestamp": "t", "seq": seq, "data": data, "replay": True}
                )
                done = seq
        self.sockets[frame["agentId"]] = send
        await _quietly(send, {"type": "replayed", "seq": max(done, at)})


async def _quietly(send: Send, frame: dict[str, Any] | None) -> None:
    """A socket that is gone is no fault of the registry's."""
    try:
        if frame is None:
            await send({"type": "websocket.close", "code": 1012})
        else:
            await send({"type": "websocket.send", "text": json.dumps(frame)})
    except Exception:  # noqa: BLE001 - uvicorn raises several things here, for the same reason
        return
