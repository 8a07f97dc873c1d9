"""What the hub has to know of writes and of what came of them. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from agent_bridge.channel.errors import ChannelError
from agent_bridge.channel.writes import Acknowledged, Outcome, Send, Sent, Settled, Write


def size_of(write: Write) -> int:
    """About the bytes that a write holds."""
    if not isinstance(write, Send):
        return 0
    meta = write.draft.meta
    return len(write.draft.content) + (len(repr(meta)) if meta else 0)


def seq_of(outcome: Outcome) -> int | None:
    """The seq of the message or ack that was stored."""
    if isinstance(outcome, Sent):
        return outcome.message.seq
    return outcome.ack.seq if isinstance(outcome, Acknowledged) else None


def seqs_of(settled: Sequence[Settled]) -> Iterator[int]:
    """The seqs of all that was stored."""
    for one in settled:
        if not isinstance(one.outcome, ChannelError):
            yield from (event.seq for event in one.outcome.events if event.seq is not None)
