"""`kill -9` of the real service under sessions that write to each other: all arrives, once, in order."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent_bridge.channel.model import Message
from agent_bridge.client.address import find
from agent_bridge.client.http import Registry
from agent_bridge.client.runtime import DISPLAYED, Receipt, Registration, Session, Timing
from agent_bridge.errors import AgentBridgeError
from system.home import Bridge

EACH = 200
KILL_AT = (30, 110)


@pytest.fixture
def bridge(sealed_home: Path, short_tmp: Path) -> Iterator[Bridge]:
    yield from Bridge.made(sealed_home, short_tmp)


def test_sessions_outlive_every_kill(bridge: Bridge) -> None:
    shown: list[str] = []

    async def body() -> None:
        marks = {mark: asyncio.Event() for mark in (*KILL_AT, EACH)}

        async def show(message: Message) -> Receipt:
            shown.append(message.content)
            if len(shown) in marks:
                marks[len(shown)].set()
            return DISPLAYED

        timing = Timing(first_s=0.05, longest_s=0.2, send_s=60)
        one = Registration(agent_id="one", name="one", project_path="/one", client_name="tester")
        two = Registration(agent_id="two", name="two", project_path="/two", client_name="tester")
        async with Session(one, show, timing=timing) as reader, Session(two, show, timing=timing) as writer:
            service = await asyncio.to_thread(bridge.start)

            async def talk() -> None:
                for number in range(EACH):
                    await writer.send(str(number), to="one", conversation_id="c", expects_response=False)

            talking = asyncio.create_task(talk())
            for mark in KILL_AT:
                await marks[mark].wait()
                service.process.kill()
                service.process.wait()
                service = await asyncio.to_thread(bridge.start)
            await asyncio.gather(talking, marks[EACH].wait())
            assert reader.describe()["connections"] == 1 + len(KILL_AT)

    try:
        asyncio.run(asyncio.wait_for(body(), 90))
    except (TimeoutError, AgentBridgeError) as error:
        logs = "\n".join(service.log.read_text()[-2000:] for service in bridge.running)
        pytest.fail(f"{error!r}: {len(shown)} shown\n{logs}")
    assert shown == [str(number) for number in range(EACH)]
    with Registry(find()) as registry:
        assert registry.inbox("one").items == ()
        assert len(registry.conversation("c", limit=200).messages) == EACH
