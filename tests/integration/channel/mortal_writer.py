"""Writes without end and prints each text once it was handed back as stored; to be killed."""

from __future__ import annotations

import itertools
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from sqlalchemy import Connection, insert

from agent_bridge.channel.clock import Moment, Timeline
from agent_bridge.channel.model import Draft, Kind
from agent_bridge.channel.storage.engine import Database
from agent_bridge.channel.storage.place import Place
from agent_bridge.channel.storage.writer import Writer
from agent_bridge.channel.writes import Done, Send, Settled, Write
from integration.channel.notes import MIGRATIONS, NOTES


def main(path: Path) -> None:
    """Write for ever, at most a thousand ahead."""
    writer = Writer(Database(Place.file(path), MIGRATIONS), _apply, _tell, now=Timeline().now)
    writer.start()
    for number in itertools.count():
        while writer.waiting() > 1000:
            pass
        body = f"{os.getpid()}-{number}"
        writer.submit(Send(Draft(identity="global", from_agent_id="ann", kind=Kind.CHAT, content=body)))


def _apply(connection: Connection, writes: Sequence[Write], _moment: Moment) -> list[Done]:
    connection.execute(
        insert(NOTES), [{"body": write.draft.content} for write in writes if isinstance(write, Send)]
    )
    return [Done(True) for _ in writes]


def _tell(settled: Sequence[Settled]) -> None:
    lines = [each.write.draft.content for each in settled if isinstance(each.write, Send)]
    os.write(1, ("\n".join(lines) + "\n").encode())


main(Path(sys.argv[1]))
