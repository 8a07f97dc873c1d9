"""Fifty sessions in a process of their own that write to each other without a rest. Run as a program.

Orders are a line of JSON on standard input: `url`, `token`, `clients`, `partners`, `each`. The answer, in
the file that its argument names: `shown`, what each was shown by conversation; `seconds`; `connections`;
`stored`, ids.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections import defaultdict
from pathlib import Path
from typing import Any

import uvloop

from agent_bridge.channel.model import Message
from agent_bridge.client.address import Address
from agent_bridge.client.runtime import DISPLAYED, Receipt, Registration, Session, Timing


class Member:
    """One of the crowd: what it was shown, and that it has got everything."""

    def __init__(self, number: int, expected: int) -> None:
        self.agent_id = f"client-{number}"
        self.shown: dict[str, list[int]] = defaultdict(list)
        self.complete = asyncio.Event()
        self._left = expected

    async def show(self, message: Message) -> Receipt:
        self.shown[message.conversation_id].append(int(message.content))
        self._left -= 1
        if self._left == 0:
            self.complete.set()
        return DISPLAYED


async def crowd(order: dict[str, Any]) -> dict[str, Any]:
    """Connect, send everything, wait for everything, close."""
    count, partners, each = order["clients"], order["partners"], order["each"]
    address = Address(order["url"], order["token"])
    members = [Member(number, partners * each) for number in range(count)]
    sessions = [
        Session(
            Registration(
                agent_id=member.agent_id, name=member.agent_id, project_path=f"/p/{member.agent_id}"
            ),
            member.show,
            events="own",
            timing=Timing(send_s=120, close_s=60),
            find=lambda: address,
        )
        for member in members
    ]
    for session in sessions:
        session.start()
    await asyncio.gather(*(session.online() for session in sessions))

    async def talk(sender: int, receiver: int) -> list[str]:
        conversation = f"{sender} to {receiver}"
        ids = []
        for number in range(each):
            stored = await sessions[sender].send(
                str(number),
                to=members[receiver].agent_id,
                conversation_id=conversation,
                expects_response=False,
            )
            ids.append(stored.message_id)
        return ids

    began = time.monotonic()
    talks = [talk(one, (one + step) % count) for one in range(count) for step in range(1, partners + 1)]
    stored = await asyncio.gather(*talks)
    await asyncio.gather(*(member.complete.wait() for member in members))
    seconds = time.monotonic() - began
    connections = sum(session.describe()["connections"] for session in sessions)
    await asyncio.gather(*(session.close() for session in sessions))
    return {
        "seconds": seconds,
        "connections": connections,
        "shown": {member.agent_id: member.shown for member in members},
        "stored": [message_id for ids in stored for message_id in ids],
    }


if __name__ == "__main__":
    told = uvloop.run(crowd(json.loads(sys.stdin.readline())))
    Path(sys.argv[1]).write_text(json.dumps(told), encoding="ascii")
