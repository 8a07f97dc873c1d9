"""A connection's lines as the streams that the SDK serves, and its messages as lines again."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import anyio
from mcp.shared._context_streams import create_context_streams
from mcp.shared.message import SessionMessage
from mcp_types import jsonrpc_message_adapter

from agent_bridge.mcp.lines import next_line

if TYPE_CHECKING:
    from mcp.shared._stream_protocols import ReadStream, WriteStream

LINE_BYTES = 17 * 1024 * 1024
"""Bytes that a line may have; the shim passes on at most 16 MiB. Who sends more is cut off."""


@asynccontextmanager
async def as_streams(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> AsyncIterator[tuple[ReadStream[SessionMessage | Exception], WriteStream[SessionMessage]]]:
    """The two streams of a connection, while it lasts."""
    received, read = create_context_streams[SessionMessage | Exception](0)
    write, to_send = create_context_streams[SessionMessage](0)

    async def read_lines() -> None:
        async with received:
            while line := await _line(reader):
                try:
                    message = jsonrpc_message_adapter.validate_json(line, by_name=False)
                except ValueError as error:
                    await received.send(error)
                else:
                    await received.send(SessionMessage(message))

    async def write_lines() -> None:
        async with to_send:
            async for item in to_send:
                if writer.is_closing():
                    return
                text = item.message.model_dump_json(by_alias=True, exclude_unset=True)
                writer.write(text.encode("utf-8", "replace") + b"\n")
                await writer.drain()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(_until_gone, read_lines)
        tasks.start_soon(_until_gone, write_lines)
        yield read, write
        tasks.cancel_scope.cancel()


async def _line(reader: asyncio.StreamReader) -> bytes:
    """The next line; b"" at the end, which a line that is too long is as well."""
    try:
        return await next_line(reader, LINE_BYTES) or b""
    except ConnectionError:
        return b""


async def _until_gone(work: Callable[[], Awaitable[None]]) -> None:
    """Either side may go at any moment; the other then sees the end of its stream."""
    try:
        await work()
    except (anyio.ClosedResourceError, anyio.BrokenResourceError, ConnectionError):
        return
