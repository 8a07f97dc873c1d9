"""A TCP proxy on the loopback that cuts what goes through it, in the middle of whatever that is."""

from __future__ import annotations

import asyncio
import random
from types import TracebackType
from typing import Self


class Proxy:
    """Passes connections on to `port`, which may change; `cut` breaks some of them.

    The registry checks the `Host` of requests, so its port is put in place of the proxy's.
    """

    def __init__(self, port: int, chance: random.Random) -> None:
        self.target = port
        self.port = 0
        self.cuts = 0
        self._chance = chance
        self._open: set[asyncio.StreamWriter] = set()
        self._tasks: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.close()
        for writer in self._open:
            writer.transport.abort()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def cut(self, share: float) -> None:
        """Break that share of the connections, without a goodbye; what was on its way is lost."""
        for writer in list(self._open):
            if self._chance.random() < share:
                self.cuts += 1
                writer.transport.abort()

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        try:
            far_reader, far_writer = await asyncio.open_connection("127.0.0.1", self.target)
        except OSError:
            writer.transport.abort()
            return
        pair = {writer, far_writer}
        self._open |= pair
        try:
            await asyncio.wait(
                [
                    asyncio.create_task(self._pass(reader, far_writer)),
                    asyncio.create_task(self._pass(far_reader, writer)),
                ],
                return_when=asyncio.FIRST_COMPLETED,
            )
        finally:
            self._open -= pair
            for one in pair:
                one.transport.abort()

    async def _pass(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        mine, real = b"127.0.0.1:%d" % self.port, b"127.0.0.1:%d" % self.target
        try:
            while piece := await reader.read(4096):
                writer.write(piece.replace(mine, real))
                await writer.drain()
        except OSError:
            return
