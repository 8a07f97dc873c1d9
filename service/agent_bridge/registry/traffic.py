"""What went over the sockets, in figures."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class Traffic:
    """Counts since the start; changed on the loop's thread, read from any."""

    frames_sent: int = 0
    """By sockets that are closed; those that are open count for themselves."""
    frames_received: int = 0
    cut_off: int = 0
    """Sockets broken off because their peer was too slow or gone."""
    superseded: int = 0
    """Sockets closed because a newer one speaks for their agent."""
    ignored: int = 0
    """Frames that weren't JSON, or of a type that nobody knows."""
    refused: int = 0
    """Frames answered with an error."""
    failures: int = 0
    """Exceptions of ours that nobody foresaw; the log has them."""
    replays: int = 0
    replayed_events: int = 0
    resyncs: int = 0
    """Sockets that were told to fetch everything."""
