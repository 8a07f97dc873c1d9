"""Whatever happens to connection and registry: each message is shown once, each conversation in order."""

from __future__ import annotations

import asyncio
from collections import defaultdict

from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from agent_bridge.channel.model import Message
from agent_bridge.client.runtime import DISPLAYED, Receipt, Registration, Session, Timing
from integration.client.peer import Peer

ME = "client-tester-1"
TIMING = Timing(first_s=0.005, longest_s=0.01, open_s=5, send_s=20, again_s=0.005, close_s=2, tries=1000)
STEPS = (
    "a message",
    "another message",
    "a broadcast",
    "many messages",
    "cut",
    "restart",
    "another database",
    "no replay",
    "replay",
    "rest",
    "send",
)


class Life:
    """A session, a registry that suffers, and what was sent and shown on either side."""

    def __init__(self, peer: Peer, faults: int) -> None:
        self.peer = peer
        self.shown: dict[str, list[str]] = defaultdict(list)
        self.posted: dict[str, list[str]] = defaultdict(list)
        self.sends: list[asyncio.Task[Message]] = []
        self.session: Session
        self._faults = faults
        self._count = 0

    async def show(self, message: Message) -> Receipt:
        await asyncio.sleep(0)
        if self._faults:
            self._faults -= 1
            raise RuntimeError("not now")
        self.shown[message.conversation_id].append(message.content)
        return DISPLAYED

    async def suffer(self, step: str) -> None:
        match step:
            case "a message" | "another message":
                await self._post(step)
            case "a broadcast":
                await self._post("all", None)
            case "many messages":
                for number in range(8):
                    await self._post(STEPS[number % 2])
            case "cut":
                await self.peer.cut()
            case "restart":
                await self.peer.restart()
            case "another database":
                await self.peer.forget()
                await self.peer.restart()
            case "no replay" | "replay":
                self.peer.replays = step == "replay"
            case "rest":
                await self.session.online()
            case "send":
                sending = self.session.send(f"mine {len(self.sends)}", to="somebody")
                self.sends.append(asyncio.create_task(sending))

    async def _post(self, conversation: str, to: str | None = ME) -> None:
        self._count += 1
        self.posted[conversation].append(str(self._count))
        await self.peer.post(to, str(self._count), conversation)


@given(
    steps=st.lists(st.sampled_from(STEPS), max_size=25),
    queue=st.sampled_from([1, 2, 5, 100]),
    parallel=st.integers(1, 3),
    faults=st.integers(0, 3),
)
@example(
    steps=["many messages", "cut", "many messages", "restart", "another database", "a message"],
    queue=2,
    parallel=2,
    faults=1,
)
@settings(max_examples=50, suppress_health_check=[HealthCheck.too_slow])
def test_each_message_once_and_in_order(steps: list[str], queue: int, parallel: int, faults: int) -> None:
    async def body() -> None:
        async with Peer() as peer:
            peer.page = 2
            life = Life(peer, faults)
            me = Registration(agent_id=ME, name="tester", project_path="/p", client_name="tester")
            async with Session(
                me, life.show, timing=TIMING, find=peer.address, queue_limit=queue, parallel=parallel
            ) as life.session:
                for step in steps:
                    await life.suffer(step)
                await asyncio.gather(*life.sends)
                await life.session.online()
                await peer.until(lambda: not peer.inbox(ME), 30)
            mine = [one["content"] for one in peer.messages.values() if one["fromAgentId"] == ME]
        assert life.shown == life.posted
        assert mine == [f"mine {number}" for number in range(len(life.sends))]

    asyncio.run(asyncio.wait_for(body(), 60))
