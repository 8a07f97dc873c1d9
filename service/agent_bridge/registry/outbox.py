"""What waits for one socket to take it: bounded, written in large pieces, never waited for. Pure."""

from __future__ import annotations

from collections.abc import Callable

PIECE_BYTES = 256 * 1024
"""How much is handed to the transport before asking again whether the peer takes it."""


class Outbox:
    """Frames in order. Frames pile up only while the transport is full (`pause` to `resume`).

    `write` takes bytes and may call `pause` while it does. At most `frames` frames and `size` bytes wait.
    """

    __slots__ = (
        "_bytes",
        "_frames",
        "_limit_bytes",
        "_limit_frames",
        "_paused",
        "_write",
        "taken",
        "written",
    )

    def __init__(self, write: Callable[[bytes], None], *, frames: int, size: int) -> None:
        self._write = write
        self._limit_frames = frames
        self._limit_bytes = size
        self._frames: list[bytes] = []
        self._bytes = 0
        self._paused = False
        self.taken = 0
        """How many frames the transport has taken."""
        self.written = 0
        """How many bytes those had."""

    def __len__(self) -> int:
        return len(self._frames)

    @property
    def is_paused(self) -> bool:
        """Whether the transport is full."""
        return self._paused

    def put(self, frame: bytes) -> bool:
        """Add a frame; it goes with the next `flush`. False: the limit is passed, the peer is too slow."""
        self._frames.append(frame)
        self._bytes += len(frame)
        if len(self._frames) <= self._limit_frames and self._bytes <= self._limit_bytes:
            return True
        # A burst of our own making isn't the peer's fault: only what it doesn't take counts.
        self.flush()
        return not self._paused or (
            len(self._frames) <= self._limit_frames and self._bytes <= self._limit_bytes
        )

    def flush(self) -> None:
        """Hand over what waits, as far as the transport takes it."""
        while self._frames and not self._paused:
            if self._bytes <= PIECE_BYTES:
                piece, self._frames, self._bytes = self._frames, [], 0
            else:
                piece = self._cut()
            data = piece[0] if len(piece) == 1 else b"".join(piece)
            self.taken += len(piece)
            self.written += len(data)
            self._write(data)

    def pause(self) -> None:
        """The transport is full."""
        self._paused = True

    def resume(self) -> None:
        """The transport takes more."""
        self._paused = False
        self.flush()

    def clear(self) -> None:
        """Forget what waits: nobody is there to take it."""
        self._frames, self._bytes = [], 0

    def _cut(self) -> list[bytes]:
        size = count = 0
        for frame in self._frames:
            size += len(frame)
            count += 1
            if size >= PIECE_BYTES:
                break
        piece, self._frames = self._frames[:count], self._frames[count:]
        self._bytes -= size
        return piece
