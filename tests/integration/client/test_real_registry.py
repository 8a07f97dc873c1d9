"""Sessions and the real registry, over connections that break, restarts, and other owners of the same id."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import random
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from agent_bridge.channel.errors import ChannelError, TooLargeError, TooManyError, WrongIdentityError
from agent_bridge.channel.model import AckState, Message
from agent_bridge.client import answers
from agent_bridge.client.address import Address
from agent_bridge.client.opening import open_socket
from agent_bridge.client.runtime import DISPLAYED, Receipt, Registration, Session, State, Timing
from integration.client.proxy import Proxy
from integration.registry.running import Running

QUICK = Timing(first_s=0.02, longest_s=0.05, open_s=5, send_s=60, again_s=0.01, close_s=5, heartbeat_s=60)


@pytest.fixture(scope="module")
def registry(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with Running(tmp_path_factory.mktemp("registry")) as running:
        yield running


class Reader:
    """What one session was shown, by conversation."""

    def __init__(self) -> None:
        self.shown: dict[str, list[str]] = defaultdict(list)
        self.count = 0
        self._more = asyncio.Condition()

    async def show(self, message: Message) -> Receipt:
        self.shown[message.conversation_id].append(message.content)
        self.count += 1
        async with self._more:
            self._more.notify_all()
        return DISPLAYED

    async def until(self, count: int, seconds: float = 60) -> None:
        async with asyncio.timeout(seconds), self._more:
            await self._more.wait_for(lambda: self.count >= count)


def address(registry: Running, port: int | None = None) -> Address:
    return Address(f"http://127.0.0.1:{port or registry.port}", registry.token.current().decode())


def session(
    name: str,
    show: Callable[[Message], Awaitable[Receipt | None]],
    find: Callable[[], Address],
    **more: Any,  # noqa: ANN401
) -> Session:
    identity = more.pop("identity", "global")
    me = Registration(
        agent_id=name, name=name, project_path=f"/p/{name}", client_name="tester", identity=identity
    )
    return Session(me, show, **{"timing": QUICK, "find": find, **more})


def open_messages(registry: Running, name: str, identity: str = "global") -> int:
    return registry.hub.store.inbox_count(identity, name)


def test_a_question_and_its_answer(registry: Running) -> None:
    async def body() -> None:
        answered = asyncio.Event()

        async def reply(message: Message) -> Receipt:
            await responder.send(
                "42", to=message.from_agent_id, reply_to=message.message_id, expects_response=False
            )
            return DISPLAYED

        async def read(message: Message) -> Receipt:
            assert message.content == "42"
            assert message.reply_to == question.message_id
            assert message.conversation_id == question.conversation_id
            answered.set()
            return DISPLAYED

        find = functools.partial(address, registry)
        async with session("asks", read, find) as asker, session("replies", reply, find) as responder:
            await asyncio.gather(asker.online(), responder.online())
            question = await asker.send("What is it?", to="replies")
            assert question.expects_response
            async with asyncio.timeout(10):
                await answered.wait()

    asyncio.run(body())
    assert open_messages(registry, "replies") == 0
    assert open_messages(registry, "asks") == 0


def test_connections_that_break_all_the_time(registry: Running) -> None:
    """Three sessions write to each other through a proxy that cuts; each message comes once, in order."""
    chance = random.Random(11)
    names = ["cut-a", "cut-b", "cut-c"]
    each = 120

    async def body() -> tuple[dict[str, Reader], int]:
        readers = {name: Reader() for name in names}
        async with contextlib.AsyncExitStack() as stack:
            proxy = await stack.enter_async_context(Proxy(registry.port, chance))
            sessions = {
                name: await stack.enter_async_context(
                    session(name, readers[name].show, lambda: address(registry, proxy.port), queue_limit=20)
                )
                for name in names
            }

            async def cut() -> None:
                while True:
                    await asyncio.sleep(chance.uniform(0.02, 0.15))
                    proxy.cut(0.5)

            async def talk(sender: str, receiver: str, window: int) -> None:
                for start in range(0, each, window):
                    numbers = range(start, min(each, start + window))
                    await asyncio.gather(*(say(sender, receiver, str(one)) for one in numbers))
                    await asyncio.sleep(0.02)

            async def say(sender: str, receiver: str, content: str) -> None:
                thread = f"{sender} {receiver}"
                await sessions[sender].send(
                    content, to=receiver, conversation_id=thread, expects_response=False
                )

            cutting = asyncio.create_task(cut())
            pairs = [(one, other) for one in names for other in names if one != other]
            await asyncio.gather(*(talk(one, other, chance.choice((1, 10, 30))) for one, other in pairs))
            await asyncio.gather(*(reader.until(2 * each) for reader in readers.values()))
            cutting.cancel()
            return readers, proxy.cuts

    readers, cuts = asyncio.run(body())
    assert cuts > 20
    for name in names:
        assert readers[name].shown == {
            f"{other} {name}": [str(one) for one in range(each)] for other in names if other != name
        }
        assert open_messages(registry, name) == 0


def test_restarts_in_the_middle_of_load(tmp_path: Path) -> None:
    """The registry ends and comes back on another port, twice; what was sent meanwhile is sent then."""
    each = 300

    async def body() -> tuple[Reader, Running]:
        reader = Reader()
        running = Running(tmp_path)
        await asyncio.to_thread(running.__enter__)

        def find() -> Address:
            return address(running)

        async with (
            session("restart-in", reader.show, find),
            session("restart-out", reader.show, find) as sender,
        ):

            async def talk() -> None:
                for number in range(each):
                    await sender.send(
                        str(number), to="restart-in", conversation_id="load", expects_response=False
                    )

            talking = asyncio.create_task(talk())
            for mark in (40, 150):
                await reader.until(mark)
                await asyncio.to_thread(running.__exit__, None, None, None)
                running = Running(tmp_path)
                await asyncio.to_thread(running.__enter__)
            await talking
            await reader.until(each)
        assert running.hub.store.check() == []
        assert open_messages(running, "restart-in") == 0
        await asyncio.to_thread(running.__exit__, None, None, None)
        return reader, running

    reader, _ = asyncio.run(body())
    assert reader.shown == {"load": [str(number) for number in range(each)]}


def test_another_database_under_a_living_session(tmp_path: Path) -> None:
    async def body() -> None:
        reader = Reader()
        place = tmp_path / "one"
        running = Running(place)
        await asyncio.to_thread(running.__enter__)

        def find() -> Address:
            return address(running)

        async with (
            session("moved-in", reader.show, find) as receiver,
            session("moved-out", reader.show, find) as sender,
        ):
            await receiver.online()
            await sender.send("in the first", to="moved-in", conversation_id="c")
            await reader.until(1)
            await asyncio.to_thread(running.__exit__, None, None, None)
            running = Running(tmp_path / "two")
            await asyncio.to_thread(running.__enter__)
            await sender.send("in the second", to="moved-in", conversation_id="c")
            await reader.until(2)
            await receiver.online()
        await asyncio.to_thread(running.__exit__, None, None, None)
        assert reader.shown == {"c": ["in the first", "in the second"]}

    asyncio.run(body())


def test_a_newer_connection_takes_over_and_nothing_is_shown_twice(registry: Running) -> None:
    async def body() -> None:
        old, new = Reader(), Reader()
        find = functools.partial(address, registry)
        async with session("taken", old.show, find) as first, session("writer", new.show, find) as writer:
            await first.online()
            first_one = await writer.send("1", to="taken", conversation_id="taken")
            await old.until(1)
            # Until its receipt is stored, whoever takes over can't know that it was shown.
            await asyncio.to_thread(
                registry.wait_for, lambda: state(registry, first_one) is AckState.DISPLAYED
            )
            async with session("taken", new.show, find) as second:
                await second.online()
                async with asyncio.timeout(10):
                    assert await first.ended() is State.SUPERSEDED
                await writer.send("2", to="taken", conversation_id="taken")
                await new.until(1)
                assert second.state is State.ONLINE
                rows = registry.http.get("/agents").json()
                assert [row["agentId"] for row in rows].count("taken") == 1
        assert (old.shown, new.shown) == ({"taken": ["1"]}, {"taken": ["2"]})

    asyncio.run(body())


def test_a_new_token_is_taken_up(tmp_path: Path) -> None:
    async def body(running: Running) -> None:
        reader = Reader()

        def find() -> Address:
            return address(running)

        timing = Timing(first_s=0.02, longest_s=0.05, heartbeat_s=0.05)
        async with session("token", reader.show, find, timing=timing) as one:
            await one.online()
            running.token.path.write_text("b" * 43)
            running.http.headers["Authorization"] = "Bearer " + "b" * 43
            # Its next heartbeat is refused, and it comes back with the new one.
            async with asyncio.timeout(10):
                while one.describe()["connections"] < 2:
                    await asyncio.sleep(0.01)
            running.post(toAgentId="token", conversationId="c", content="after")
            await reader.until(1)

    with Running(tmp_path) as running:
        asyncio.run(body(running))


def test_what_waits_while_nobody_is_there_is_shown_afterwards_in_order(registry: Running) -> None:
    contents = [str(number) for number in range(250)]
    for content in contents:
        registry.post(toAgentId="late", conversationId="late", content=content, expectsResponse=False)

    async def body() -> None:
        reader = Reader()
        async with session("late", reader.show, lambda: address(registry), queue_limit=30):
            await reader.until(len(contents))
        assert reader.shown == {"late": contents}

    asyncio.run(body())
    assert open_messages(registry, "late") == 0


def test_broadcasts_reach_everybody_of_the_identity_once(registry: Running) -> None:
    async def body() -> None:
        readers = [Reader() for _ in range(4)]
        find = functools.partial(address, registry)
        identities = ["team", "team", "team", "others"]
        async with contextlib.AsyncExitStack() as stack:
            sessions = [
                await stack.enter_async_context(session(f"b{number}", reader.show, find, identity=identity))
                for number, (reader, identity) in enumerate(zip(readers, identities, strict=True))
            ]
            await asyncio.gather(*(one.online() for one in sessions))
            await sessions[0].send("for all", conversation_id="b")
            await asyncio.gather(readers[1].until(1), readers[2].until(1))
            await sessions[3].send("to be sure", to="b0-of-others")
        assert [reader.count for reader in readers] == [0, 1, 1, 0]

    asyncio.run(body())
    assert open_messages(registry, "b1", "team") == 0


def test_a_slow_callback_keeps_the_queue_short_and_loses_nothing(registry: Running) -> None:
    async def body() -> None:
        reader = Reader()
        most = 0

        async def slow(message: Message) -> Receipt:
            nonlocal most
            most = max(most, one.describe()["queued"])
            await asyncio.sleep(0.001)
            return await reader.show(message)

        async with session("slow", slow, lambda: address(registry), queue_limit=10) as one:
            await one.online()
            for number in range(300):
                post = functools.partial(registry.post, conversationId="s", content=str(number))
                await asyncio.to_thread(post, toAgentId="slow")
            await reader.until(300)
        assert reader.shown == {"s": [str(number) for number in range(300)]}
        assert most <= 10

    asyncio.run(body())


def test_a_frame_that_is_too_large_fails_its_send_and_no_other(tmp_path: Path) -> None:
    async def body(running: Running) -> None:
        reader = Reader()
        async with session("large", reader.show, lambda: address(running)) as one:
            await one.online()
            with pytest.raises(TooLargeError):
                await one.send("x" * 20_000, to="somebody")
            assert (await one.send("small", to="somebody")).content == "small"

    with Running(tmp_path, message_bytes=10_000) as running:
        asyncio.run(body(running))


def test_refusals_keep_their_class(tmp_path: Path) -> None:
    async def body(running: Running) -> None:
        reader = Reader()
        async with session("sender", reader.show, lambda: address(running)) as one:
            await one.online()
            running.register("elsewhere", identity="others")
            with pytest.raises(WrongIdentityError):
                await one.send("hello", to="elsewhere")
            for _ in range(2):
                await one.send("hello", to="full")
            with pytest.raises(TooManyError):
                await one.send("hello", to="full")

    with Running(tmp_path, inbox_limit=2) as running:
        asyncio.run(body(running))


def test_receipts_are_honest(registry: Running) -> None:
    async def body() -> None:
        may_go = asyncio.Event()

        async def held(_message: Message) -> Receipt:
            await may_go.wait()
            return DISPLAYED

        async with session("honest", held, lambda: address(registry)) as one:
            await one.online()
            stored = answers.message(registry.post(toAgentId="honest", conversationId="honest"))
            await asyncio.to_thread(registry.wait_for, lambda: state(registry, stored) is AckState.DELIVERED)
            may_go.set()
            await asyncio.to_thread(registry.wait_for, lambda: state(registry, stored) is AckState.DISPLAYED)

    asyncio.run(body())


def state(registry: Running, stored: Message) -> AckState:
    message = registry.hub.store.message("global", stored.message_id)
    assert message is not None
    return message.state


def test_a_row_that_was_removed_comes_back_with_the_next_heartbeat(registry: Running) -> None:
    async def body() -> None:
        reader = Reader()
        find = functools.partial(address, registry)
        timing = Timing(first_s=0.02, longest_s=0.05, heartbeat_s=0.05)
        async with session("removed", reader.show, find, timing=timing) as one:
            await one.online()
            registry.http.delete("/agents/removed")
            async with asyncio.timeout(10):
                while "removed" not in {row["agentId"] for row in registry.http.get("/agents").json()}:
                    await asyncio.sleep(0.01)
            registry.post(toAgentId="removed", conversationId="removed", content="after")
            await reader.until(1)
            assert reader.shown == {"removed": ["after"]}

    asyncio.run(body())


def test_why_the_registry_turns_a_session_away_is_told(registry: Running) -> None:
    async def body() -> None:
        wrong = Address(f"http://127.0.0.1:{registry.port}", "wrong")
        with pytest.raises(ChannelError, match="token") as caught:
            await open_socket(wrong, "global", open_s=5, ping_s=5)
        assert caught.value.code == "unauthorized"

    asyncio.run(body())


def test_closing_takes_the_row_out(registry: Running) -> None:
    async def body() -> None:
        async with session("leaves", Reader().show, lambda: address(registry)) as one:
            await one.online()
            assert "leaves" in {row["agentId"] for row in registry.http.get("/agents").json()}
        assert "leaves" not in {row["agentId"] for row in registry.http.get("/agents").json()}

    asyncio.run(body())
