"""The standard streams of the shim: standard output is nobody's but the protocol's."""

from __future__ import annotations

import os


class Streams:
    """The descriptors of the client: `reads` is read, `writes` is written without waiting."""

    __slots__ = ("_was_blocking", "reads", "writes")

    def __init__(self, reads: int, writes: int) -> None:
        self.reads = reads
        self.writes = writes
        self._was_blocking = os.get_blocking(writes)
        os.set_blocking(writes, False)

    def restore(self) -> None:
        """Leave standard output as it was found: a terminal is the shell's too."""
        if self._was_blocking:
            os.set_blocking(self.writes, True)


def claim() -> Streams | None:
    """Move standard output away: what else is printed goes to standard error. None where it is closed."""
    open_ones = [_is_open(number) for number in (0, 1, 2)]
    for number, is_open in enumerate(open_ones):
        if not is_open:
            # The lowest free number is taken: this one.
            os.open(os.devnull, os.O_RDWR if number else os.O_RDONLY)
    if not open_ones[1]:
        return None
    writes = os.dup(1)
    os.dup2(2, 1)
    return Streams(0, writes)


def _is_open(number: int) -> bool:
    try:
        os.fstat(number)
    except OSError:
        return False
    return True
