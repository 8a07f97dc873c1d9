"""Lines of a connection, with a bound of their own: what nobody has asked for yet takes little memory."""

from __future__ import annotations

import asyncio

READ_AHEAD = 64 * 1024
"""Bytes that a connection's reader is made with (`limit`): it takes twice as many before it is asked."""


async def next_line(reader: asyncio.StreamReader, most: int) -> bytes | None:
    """The next line with its end, of `most` bytes; b"" at the end, None for one that is longer.

    A line that isn't ended is none. Nothing can be read after one that is too long.
    """
    line = bytearray()
    while len(line) <= most:
        try:
            line += await reader.readuntil(b"\n")
        except asyncio.LimitOverrunError as error:
            line += await reader.readexactly(error.consumed)
        except asyncio.IncompleteReadError:
            return b""
        else:
            return bytes(line) if len(line) <= most else None
    return None
