"""The event loop of the tools: shims connect to it, and it ends when it is told to."""

from __future__ import annotations

import asyncio
import socket
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

from agent_bridge.daemon.status_server import is_ours
from agent_bridge.log import get_logger
from agent_bridge.mcp.lines import READ_AHEAD
from agent_bridge.mcp.sessions import MOST_SESSIONS
from agent_bridge.mcp.transport import answer_shim

if TYPE_CHECKING:
    from agent_bridge.daemon.mcp_parts import McpParts
    from agent_bridge.mcp.server import McpServer

THREADS = 8
"""Calls that read or write stores at the same time; each store is one thread's at a time anyway."""
DRAIN_SECONDS = 1.0
"""What calls under way get at the end; what isn't answered then is asked again by the shims."""
MOST_CONNECTIONS = MOST_SESSIONS + 128
"""Connections at a time, those included that have said no hello yet: the rest of the service needs file
descriptors too, of which a process may have 1,024 at the least."""
_LOOK_SECONDS = 0.02
_KEEPS_FILE: dict[str, Any] = {"cleanup_socket": False} if sys.version_info >= (3, 13) else {}
"""Python 3.13 removes a socket's file with the server; the next run of the loop listens on the same one."""
_log = get_logger("mcp")


class McpLoop:
    """One run of the loop, on the thread that calls `run`."""

    def __init__(
        self, listener: socket.socket, parts: McpParts, renewed: Callable[[], socket.socket | None]
    ) -> None:
        """`renewed` gives the listener that has taken the place of the one before, if one has."""
        self._listener = listener
        self._parts = parts
        self._renewed = renewed
        self._accepting: asyncio.Server | None = None
        self._looking: asyncio.Task[None] | None = None
        self._loop = asyncio.new_event_loop()
        self._told = asyncio.Event()
        self._connections: dict[asyncio.Task[None], asyncio.StreamWriter] = {}

    def run(self, started: Callable[[], None]) -> None:
        """Serve until `stop`; `started` is called once connections are accepted. Raises what ends it."""
        threads = ThreadPoolExecutor(THREADS, thread_name_prefix="mcp-tool")
        self._loop.set_default_executor(threads)
        try:
            self._loop.run_until_complete(self._serve(started))
        finally:
            self._end_tasks()
            threads.shutdown(wait=False, cancel_futures=True)
            self._loop.close()

    def stop(self) -> None:
        """Make `run` return soon. From any thread."""
        self._soon(self._told.set)

    def look(self) -> None:
        """Accept on another listener if there is one. From any thread."""
        self._soon(self._look)

    def _soon(self, act: Callable[[], None]) -> None:
        try:
            self._loop.call_soon_threadsafe(act)
        except RuntimeError:
            return  # it was closed just now

    async def _serve(self, started: Callable[[], None]) -> None:
        brain = await asyncio.to_thread(self._parts.brain)
        self._accepting = await self._accept(self._listener)
        self._look()  # who asked for it just now met no loop yet
        started()
        try:
            await self._told.wait()
        finally:
            self._accepting.close()
            if self._told.is_set():
                brain.presence.stop()
            await self._drain()

    async def _accept(self, listener: socket.socket) -> asyncio.Server:
        return await asyncio.start_unix_server(
            self._connected, sock=listener.dup(), limit=READ_AHEAD, **_KEEPS_FILE
        )

    def _look(self) -> None:
        if self._accepting is not None and (self._looking is None or self._looking.done()):
            self._looking = self._loop.create_task(self._change_listener())

    async def _change_listener(self) -> None:
        """Who is connected stays so."""
        listener = self._renewed()
        if listener is None:
            return
        before, self._accepting = self._accepting, await self._accept(listener)
        if before is not None:
            before.close()

    def _end_tasks(self) -> None:
        """End what is left, which is everything where the loop failed: connections are closed, and their
        sessions with them."""
        if left := asyncio.all_tasks(self._loop):
            for task in left:
                task.cancel()
            self._loop.run_until_complete(asyncio.wait(left, timeout=3 * DRAIN_SECONDS))

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None  # noqa: S101 - a callback of asyncio's is run as a task
        if len(self._connections) >= MOST_CONNECTIONS:
            writer.close()  # one with patience comes again
            return
        self._connections[task] = writer
        try:
            peer: socket.socket = writer.get_extra_info("socket")
            if not is_ours(peer):
                _log.warning("a process of another user was refused")
                writer.close()
                return
            await answer_shim(reader, writer, self._parts.brain(), self._load)
        except asyncio.CancelledError:
            writer.close()  # the service ends: asyncio would log a task that is cancelled
        finally:
            del self._connections[task]

    async def _load(self) -> McpServer:
        return await asyncio.to_thread(self._parts.server)

    async def _drain(self) -> None:
        until = self._loop.time() + DRAIN_SECONDS
        sessions = self._parts.brain().sessions
        while sessions.calls_under_way() and self._loop.time() < until:
            await asyncio.sleep(_LOOK_SECONDS)
        await asyncio.sleep(_LOOK_SECONDS)  # for answers that are made, and not written yet
        for task, writer in self._connections.items():
            # First of all: the SDK answers what it cancels, and the shim would ask nobody else then.
            writer.close()
            task.cancel()
        if self._connections:
            await asyncio.wait(self._connections, timeout=DRAIN_SECONDS)
