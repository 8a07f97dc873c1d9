"""Bytes to lines and lines to bytes, with bounded memory on both sides."""

from __future__ import annotations

from collections import deque

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

LONGEST_LINE = 16 * 1024 * 1024
"""Bytes that a line may have, from a client and from the service."""


class LineCutter:
    """Cuts what is read into lines; one that is too long is dropped as it comes, and told as None."""

    __slots__ = ("_is_too_long", "_line", "_longest")

    def __init__(self, longest: int = LONGEST_LINE) -> None:
        self._longest = longest
        self._line = bytearray()
        self._is_too_long = False

    def feed(self, data: bytes) -> list[bytes | None]:
        """The lines that ended with this piece, without their ends (LF or CRLF)."""
        *ends, rest = data.split(b"\n")
        lines = []
        for end in ends:
            self._keep(end)
            lines.append(self._ended())
        self._keep(rest)
        return lines

    def last(self) -> bytes | None:
        """What is left when nothing more comes: a line that wasn't ended, b"" for none."""
        return self._ended()

    def _keep(self, piece: bytes) -> None:
        if self._is_too_long:
            return
        if len(self._line) + len(piece) > self._longest:
            self._is_too_long = True
            self._line = bytearray()
        else:
            self._line += piece

    def _ended(self) -> bytes | None:
        line = None if self._is_too_long else bytes(self._line).removesuffix(b"\r")
        self._is_too_long = False
        self._line = bytearray()
        return line


class Outbox:
    """Lines that wait to be written to one place. `size` is what waits, in bytes."""

    __slots__ = ("_lines", "_written", "size")

    def __init__(self) -> None:
        self._lines: deque[bytes] = deque()
        self._written = 0
        self.size = 0

    def put(self, line: bytes) -> None:
        """Append a line; `line` is without its end."""
        self._lines.append(line + b"\n")
        self.size += len(line) + 1

    def clear(self) -> None:
        """Forget everything: there is nobody any more to write to."""
        self._lines.clear()
        self._written = self.size = 0

    def flush(self, write: Callable[[memoryview], int]) -> None:
        """Write as much as goes without waiting. `write` is as os.write; its OSErrors come through."""
        while self._lines:
            line = self._lines[0]
            try:
                count = write(memoryview(line)[self._written :])
            except BlockingIOError:
                return
            self._written += count
            self.size -= count
            if self._written == len(line):
                self._lines.popleft()
                self._written = 0
