"""A connection of a shim: its hello, our welcome, then MCP until one of the two goes."""

from __future__ import annotations

import asyncio
import json
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from agent_bridge import __version__
from agent_bridge.errors import AgentBridgeError
from agent_bridge.log import get_logger
from agent_bridge.mcp.hello import HELLO_VERSION, RENAMED
from agent_bridge.mcp.hello_parse import HELLO_BYTES, HelloError, parse_hello
from agent_bridge.mcp.lines import next_line
from agent_bridge.mcp.places import first_start, root_of

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from agent_bridge.mcp.brain import Brain
    from agent_bridge.mcp.server import McpServer
    from agent_bridge.mcp.sessions import Connected

HELLO_SECONDS = 5.0
"""What a shim gets to say its hello."""
_log = get_logger("mcp")


async def answer_shim(
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
    brain: Brain,
    load: Callable[[], Awaitable[McpServer]],
) -> None:
    """Serve one connection to its end, and close it. `load` gives the server, which may have to be imported.

    Nothing is raised but a cancellation.
    """
    try:
        connected = await _welcomed(reader, writer, brain)
        if connected is not None:
            await _serve(reader, writer, brain, connected, load)
    except (ConnectionError, TimeoutError):
        pass
    except Exception as error:  # noqa: BLE001 - one connection's failure is told, and is nobody else's
        brain.counts.failed(f"A client's connection failed: {type(error).__name__}.")
        _log.error("a client's connection failed", exc_info=error)
    finally:
        writer.close()


async def _welcomed(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, brain: Brain
) -> Connected | None:
    """The session after its welcome; None for a shim that was refused or said nothing."""
    try:
        hello = parse_hello(await _first_line(reader))
        start = first_start(hello)
        root = await asyncio.to_thread(root_of, start)
        connected = brain.sessions.open(hello, start, root)
    except AgentBridgeError as error:
        _log.warning("a client was refused", error=error)
        await _say(writer, {"refused": {"reason": error.sentence()}})
        return None
    try:
        welcome = {
            "version": HELLO_VERSION,
            "service": __version__,
            "agentId": connected.session.agent_id,
            "catalogue": brain.catalogue["digest"],
        }
        await _say(writer, {"welcome": welcome})
    except BaseException:
        brain.sessions.close(connected)
        raise
    return connected


async def _serve(
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
    brain: Brain,
    connected: Connected,
    load: Callable[[], Awaitable[McpServer]],
) -> None:
    def tell_id(agent_id: str) -> None:
        if not writer.is_closing():
            told = {"jsonrpc": "2.0", "method": RENAMED, "params": {"agentId": agent_id}}
            writer.write(json.dumps(told).encode() + b"\n")

    connected.tell_id = tell_id
    try:
        server = await load()
        from agent_bridge.mcp.streams import as_streams

        async with as_streams(reader, writer) as (read, write):
            await server.serve(connected, read, write)
    finally:
        is_last = brain.sessions.close(connected)
        with suppress(asyncio.CancelledError):
            await brain.presence.end(connected, is_last=is_last)


async def _first_line(reader: asyncio.StreamReader) -> bytes:
    async with asyncio.timeout(HELLO_SECONDS):
        line = await next_line(reader, HELLO_BYTES)
    if line is None:
        raise HelloError("The hello is too long", detail=f"{HELLO_BYTES} bytes at most")
    if not line:
        raise ConnectionResetError
    return line


async def _say(writer: asyncio.StreamWriter, message: dict[str, Any]) -> None:
    writer.write(json.dumps(message).encode() + b"\n")
    await writer.drain()
