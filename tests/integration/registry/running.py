"""A registry for the tests: the real application on uvicorn and loopback, in a thread of this process."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from pathlib import Path
from types import TracebackType
from typing import Any, TypeVar

import httpx
import uvicorn
import uvloop
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import ClientConnection, connect

from agent_bridge.channel.clock import Timeline
from agent_bridge.channel.storage.place import Place
from agent_bridge.config import Settings
from agent_bridge.registry.app import Registry, make_app
from agent_bridge.registry.http_protocol import bounded_http
from agent_bridge.registry.hub import Hub
from agent_bridge.registry.security import Access
from agent_bridge.registry.sockets import uvicorn_options
from agent_bridge.registry.token import TokenFile

PATIENCE = 10.0
"""Seconds until something that must come counts as missing."""
T = TypeVar("T")


class Running:
    """A registry that runs until the `with` block ends. `settings` are its settings."""

    def __init__(
        self,
        place: Path,
        *,
        timeline: Timeline | None = None,
        connections: int = 1000,
        **settings: Any,  # noqa: ANN401
    ) -> None:
        self.settings = Settings(**({"send_rate_per_s": 1e6, "send_burst": 1_000_000} | settings))
        self.database = place / "channel" / "channel.sqlite"
        self.token = TokenFile(place / "registry.token")
        self._timeline = timeline
        self._connections = connections
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=512)
        self.port: int = self._listener.getsockname()[1]
        self.hub: Hub
        self.application: Registry
        self._loop: asyncio.AbstractEventLoop
        self.http_server: uvicorn.Server
        self._started: Future[None] = Future()
        self._thread = threading.Thread(target=self._run, name="registry under test")
        self.http = httpx.Client(base_url=f"http://127.0.0.1:{self.port}", headers=self.headers())

    def __enter__(self) -> Running:
        self._thread.start()
        self._started.result(PATIENCE)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.http.close()
        self.http_server.should_exit = True
        self._thread.join(PATIENCE)
        assert not self._thread.is_alive()

    def headers(self, identity: str | None = None) -> dict[str, str]:
        """What a client sends with every request."""
        headers = {"Authorization": f"Bearer {self.token.current().decode()}"}
        return headers if identity is None else headers | {"X-Agent-Bridge-Identity": identity}

    def connect(self, identity: str | None = None, query: str = "", **more: Any) -> Client:  # noqa: ANN401
        """An open socket that has got its snapshot."""
        url = f"ws://127.0.0.1:{self.port}/ws{query and '?' + query}"
        headers = self.headers(identity)
        # A client that has frames unread can't say goodbye: it isn't waited for.
        more = {"max_size": None, "close_timeout": 1} | more
        more.setdefault("additional_headers", headers)
        opening = connect(url, compression=None, **more)
        return Client(opening.__enter__())

    def agent(self, agent_id: str, identity: str | None = None, query: str = "", **identify: Any) -> Client:  # noqa: ANN401
        """An open socket that speaks for an agent."""
        client = self.connect(identity, query)
        client.identify(agent_id, **identify)
        return client

    def register(self, agent_id: str, identity: str = "global", **more: Any) -> None:  # noqa: ANN401
        """Enter a row into the directory, a client's where nothing else is said."""
        row = {
            "agentId": agent_id,
            "name": agent_id,
            "projectPath": f"/projects/{agent_id}",
            "entryType": "client",
            "clientInfo": {"clientName": "claude-code", "clientVersion": "1"},
        }
        answer = self.http.post("/agents", json=row | more, headers=self.headers(identity))
        assert answer.status_code == 201, answer.text

    def post(self, identity: str = "global", **message: Any) -> dict[str, Any]:  # noqa: ANN401
        """Send a message over HTTP."""
        draft = {"fromAgentId": "poster", "kind": "chat", "content": "hello"} | message
        answer = self.http.post("/channel/messages", json=draft, headers=self.headers(identity))
        assert answer.status_code in (200, 201), answer.text
        stored: dict[str, Any] = answer.json()
        return stored

    def on_loop(self, function: Callable[[], T]) -> T:
        """What `function` returns, called on the registry's own thread."""

        async def call() -> T:
            return function()

        return asyncio.run_coroutine_threadsafe(call(), self._loop).result(PATIENCE)

    def figures(self) -> Mapping[str, Any]:
        """What the hub counted of its sockets."""
        figures: Mapping[str, Any] = self.on_loop(self.hub.describe)["sockets"]
        return figures

    def wait_for(self, condition: Callable[[], object]) -> None:
        """Look until `condition` holds, after each thing that the registry's loop does."""

        async def look() -> None:
            while not condition():
                await asyncio.sleep(0.005)

        asyncio.run_coroutine_threadsafe(asyncio.wait_for(look(), PATIENCE), self._loop).result()

    def _run(self) -> None:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            try:
                runner.run(self._serve())
            except BaseException as error:
                if self._started.done():
                    raise
                self._started.set_exception(error)

    async def _serve(self) -> None:
        self._loop = asyncio.get_running_loop()
        url = self.settings.database_url
        place = Place.of(url) if url else Place.file(self.database)
        self.hub = Hub(place, self._timeline or Timeline(), self.settings)
        access = Access(self.token, self.port, message_bytes=self.settings.message_bytes)
        self.application = make_app(self.hub, access, self.settings)
        self.http_server = uvicorn.Server(
            uvicorn.Config(
                self.application,
                http=bounded_http(self._connections),
                lifespan="off",
                log_config=None,
                access_log=False,
                proxy_headers=False,
                timeout_graceful_shutdown=2,
                **uvicorn_options(self.settings),
            )
        )
        await self.hub.start()
        serving = asyncio.create_task(self.http_server.serve(sockets=[self._listener]))
        while not self.http_server.started:
            await asyncio.sleep(0.005)
        self._started.set_result(None)
        await serving
        await self.hub.stop()


class Client:
    """A socket's other end; the frames as objects."""

    def __init__(self, connection: ClientConnection) -> None:
        self.connection = connection
        self.snapshot = self.next()
        assert self.snapshot["type"] == "snapshot"

    def __enter__(self) -> Client:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Say goodbye."""
        self.connection.close()

    def say(self, kind: str, **fields: Any) -> None:  # noqa: ANN401
        """Send a frame."""
        self.connection.send(json.dumps({"type": kind, **fields}))

    def identify(self, agent_id: str, **fields: Any) -> dict[str, Any]:  # noqa: ANN401
        """Say who this is; the answer."""
        self.say("identify", agentId=agent_id, **fields)
        return self.until("identified")

    def send(self, request_id: str | int | None = None, **message: Any) -> None:  # noqa: ANN401
        """Send a message, without waiting for the answer."""
        draft = {"kind": "chat", "content": "hello"} | message
        self.say("channel.send", **({} if request_id is None else {"requestId": request_id}), message=draft)

    def next(self, timeout: float = PATIENCE) -> dict[str, Any]:
        """The next frame."""
        frame: dict[str, Any] = json.loads(self.connection.recv(timeout=timeout))
        return frame

    def until(self, kind: str, seen: list[dict[str, Any]] | None = None) -> dict[str, Any]:
        """The next frame of that type; those before it are put into `seen`."""
        while True:
            frame = self.next()
            if frame["type"] == kind:
                return frame
            if seen is not None:
                seen.append(frame)

    def all_until_now(self) -> list[dict[str, Any]]:
        """Every frame that was on its way: those before the answer to a question asked now."""
        seen: list[dict[str, Any]] = []
        self.say("channel.ack", requestId="until now", ack={})
        while True:
            frame = self.next()
            if frame["type"] == "channel.error" and frame["data"].get("requestId") == "until now":
                return seen
            seen.append(frame)

    def closing(self) -> tuple[int, str]:
        """Code and reason of the close frame that must come; what comes before is read."""
        try:
            while True:
                self.connection.recv(timeout=PATIENCE)
        except ConnectionClosed as closed:
            if closed.rcvd is None:
                raise AssertionError("broken off without a close frame") from closed
            return closed.rcvd.code, closed.rcvd.reason
