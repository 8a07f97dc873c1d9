"""Running what goes on for long, so that it ends in order however it is told to."""

from __future__ import annotations

import asyncio
import os
import select
import signal
import stat
import sys
import threading
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any, TypeVar

T = TypeVar("T")
_SIGNALS = (signal.SIGTERM, signal.SIGHUP)


def run_until_told(work: Coroutine[Any, Any, T]) -> T:
    """The result of `work`, which is cancelled, and may clean up, when the process is told to end.

    Raises KeyboardInterrupt on Ctrl-C, SystemExit on SIGTERM and SIGHUP, BrokenPipeError when nobody reads
    stdout any more, also while there is nothing to print.
    """
    return asyncio.run(_guarded(work))


async def _guarded(work: Coroutine[Any, Any, T]) -> T:
    loop = asyncio.get_running_loop()
    task = asyncio.ensure_future(work)
    causes: list[BaseException] = []

    def end(cause: BaseException) -> None:
        causes.append(cause)
        task.cancel()

    # What is ignored stays so: `nohup` means it.
    heard = [number for number in _SIGNALS if signal.getsignal(number) is not signal.SIG_IGN]
    for number in heard:
        loop.add_signal_handler(number, end, SystemExit(128 + number))
    _watch_pipe(loop, lambda: end(BrokenPipeError()))
    try:
        return await task
    except asyncio.CancelledError:
        if causes:
            raise causes[0] from None
        raise
    finally:
        for number in heard:
            loop.remove_signal_handler(number)


def _watch_pipe(loop: asyncio.AbstractEventLoop, closed: Callable[[], None]) -> None:
    """Have `closed` called when stdout is a pipe whose reader is gone."""
    try:
        descriptor = sys.stdout.fileno()
        if not stat.S_ISFIFO(os.fstat(descriptor).st_mode):
            return
    except (OSError, ValueError):
        return

    def watch() -> None:
        poll = select.poll()
        poll.register(descriptor, 0)  # errors are told unasked
        poll.poll()
        with suppress(RuntimeError):  # the loop has ended
            loop.call_soon_threadsafe(closed)

    threading.Thread(target=watch, name="pipe", daemon=True).start()
