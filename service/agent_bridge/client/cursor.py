"""How far a client has come in the registry's order of things, so that it can go on after a gap. Pure."""

from __future__ import annotations

from typing import Any


class Cursor:
    """`(epoch, seq)`: everything up to `seq` of the database `epoch` is known. None at first.

    While the registry replays, only replayed events move it on: a live one that comes in between doesn't
    mean that all before it are known.
    """

    def __init__(self) -> None:
        self.epoch: str | None = None
        self.seq: int | None = None
        self.replaying = False

    def question(self) -> dict[str, Any]:
        """What `identify` says of it."""
        return {} if self.seq is None else {"since": self.seq, "epoch": self.epoch}

    def identified(self, epoch: str | None, seq: int) -> bool:
        """The registry knows us. Whether a replay follows; if not, everything is to be fetched."""
        self.replaying = self.seq is not None and epoch == self.epoch
        if not self.replaying:
            self.epoch, self.seq = epoch, seq
        return self.replaying

    def event(self, seq: int, *, replayed: bool) -> None:
        """An event came that is stored under `seq`."""
        if self.seq is not None and (replayed or not self.replaying):
            self.seq = max(self.seq, seq)

    def replayed(self, seq: int) -> None:
        """The replay is over; all up to `seq` is known."""
        self.replaying = False
        self.seq = max(self.seq or 0, seq)

    def resync(self, epoch: str | None, seq: int) -> None:
        """The registry can't replay: begin at `seq` once everything was fetched."""
        self.replaying = False
        self.epoch, self.seq = epoch, seq
