"""A session against a small registry of the tests' own: what it does with each thing that can happen."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from agent_bridge.channel.errors import ChannelError
from agent_bridge.channel.model import AckState, Message
from agent_bridge.client.runtime import (
    DISPLAYED,
    EndedError,
    NoAnswerError,
    Receipt,
    Registration,
    Session,
    State,
    Timing,
    failed,
)
from integration.client.peer import Peer

ME = "client-tester-1"
QUICK = Timing(first_s=0.01, longest_s=0.02, open_s=3, send_s=5, again_s=0.01, close_s=1, heartbeat_s=60)


class Screen:
    """What was shown, in order."""

    def __init__(self, receipt: Receipt | None = DISPLAYED) -> None:
        self.shown: list[str] = []
        self.receipt = receipt
        self._more = asyncio.Condition()

    async def show(self, message: Message) -> Receipt | None:
        self.shown.append(message.content)
        async with self._more:
            self._more.notify_all()
        return self.receipt

    async def until(self, *contents: str, seconds: float = 10) -> None:
        """Returns once just that was shown; nothing else may have been."""
        async with asyncio.timeout(seconds), self._more:
            await self._more.wait_for(lambda: len(self.shown) >= len(contents))
        assert self.shown == list(contents)


def session(peer: Peer, show: Callable[[Message], Awaitable[Receipt | None]], **more: Any) -> Session:  # noqa: ANN401
    me = Registration(agent_id=ME, name="tester", project_path="/p", client_name="tester")
    return Session(me, show, **{"timing": QUICK, "find": peer.address, **more})


def run(body: Callable[[Peer, Screen], Awaitable[None]], screen: Screen | None = None) -> None:
    async def whole() -> None:
        async with asyncio.timeout(30), Peer() as peer:
            await body(peer, screen or Screen())

    asyncio.run(whole())


def test_a_session_registers_and_says_who_it_is() -> None:
    async def body(peer: Peer, screen: Screen) -> None:
        async with session(peer, screen.show) as one:
            await one.online()
            assert one.describe()["state"] == "online"
            row = peer.agents[ME]
            assert (row["entryType"], row["identity"], row["projectPath"]) == ("client", "global", "/p")
            assert row["pid"] > 0
            assert row["host"]
            assert peer.identified == [
                {"type": "identify", "agentId": ME, "identity": "global", "events": "own"}
            ]
            assert all(headers["x-agent-bridge-identity"] == "global" for headers in peer.headers)
        assert one.state is State.CLOSED
        assert ME not in peer.agents

    run(body)


def test_messages_are_shown_in_order_each_once_and_acked() -> None:
    async def body(peer: Peer, screen: Screen) -> None:
        before = await peer.post(ME, "before")
        async with session(peer, screen.show) as one:
            await one.online()
            await screen.until("before")
            await peer.post(ME, "live")
            await peer.post("somebody-else", "not mine")
            await peer.post(None, "for all")
            await peer.post(ME, "mine", fromAgentId=ME)
            await peer.post(ME, "a presence", kind="presence")
            last = await peer.post(ME, "last")
            await screen.until("before", "live", "for all", "last")
            await peer.until(lambda: "displayed_to_client" in peer.states(last["messageId"]))
        assert peer.states(before["messageId"])[-1] == "displayed_to_client"
        assert {ack["actorId"] for ack in peer.acks} == {ME}
        assert peer.inbox(ME) == []

    run(body)


def test_a_message_counts_as_delivered_on_arrival_and_as_displayed_when_the_callback_says_so() -> None:
    async def body(peer: Peer, _screen: Screen) -> None:
        may_go = asyncio.Event()

        async def slow(_message: Message) -> Receipt:
            await may_go.wait()
            return DISPLAYED

        async with session(peer, slow) as one:
            await one.online()
            message = await peer.post(ME, "hello")
            await peer.until(lambda: peer.states(message["messageId"]) == ["delivered_to_bridge"])
            may_go.set()
            await peer.until(lambda: peer.states(message["messageId"])[1:] == ["displayed_to_client"])

    run(body)


def test_a_callback_that_says_nothing_leaves_the_message_open() -> None:
    async def body(peer: Peer, screen: Screen) -> None:
        async with session(peer, screen.show) as one:
            await one.online()
            message = await peer.post(ME, "held")
            await screen.until("held")
            await peer.until(lambda: peer.acks)
            await one.send("an answer to be sure that nothing else is on its way", to="somebody")
            assert peer.states(message["messageId"]) == ["delivered_to_bridge"]
            assert [one["content"] for one in peer.inbox(ME)] == ["held"]

    run(body, Screen(None))


def test_what_was_given_up_is_told_to_the_sender() -> None:
    async def body(peer: Peer, screen: Screen) -> None:
        async with session(peer, screen.show) as one:
            await one.online()
            message = await peer.post(ME, "hello")
            await peer.until(lambda: "failed" in peer.states(message["messageId"]))
            assert peer.acks[-1]["detail"] == "the pane is gone"

    run(body, Screen(failed("the pane is gone")))


def test_a_callback_that_raises_is_tried_again_in_order_and_then_given_up() -> None:
    async def body(peer: Peer, _screen: Screen) -> None:
        calls: list[str] = []

        async def show(message: Message) -> Receipt:
            calls.append(message.content)
            if message.content == "poison" or (message.content == "once" and calls.count("once") == 1):
                raise RuntimeError("no terminal")
            return DISPLAYED

        async with session(peer, show) as one:
            await one.online()
            poison = await peer.post(ME, "poison")
            await peer.post(ME, "once")
            last = await peer.post(ME, "last")
            await peer.until(lambda: "displayed_to_client" in peer.states(last["messageId"]))
        assert calls == ["poison", "poison", "poison", "once", "once", "last"]
        assert peer.states(poison["messageId"])[-1] == "failed"
        assert one.describe()["raised"] == 4

    run(body)


def test_conversations_are_shown_side_by_side_where_that_is_asked_for() -> None:
    async def body(peer: Peer, _screen: Screen) -> None:
        running: set[str] = set()
        together = asyncio.Event()

        async def show(message: Message) -> Receipt:
            assert message.conversation_id not in running
            running.add(message.conversation_id)
            if running == {"a", "b"}:
                together.set()
            await together.wait()
            running.discard(message.conversation_id)
            return DISPLAYED

        async with session(peer, show, parallel=2) as one:
            await one.online()
            for name in ("a", "a", "b", "b"):
                await peer.post(ME, "hello", name)
            async with asyncio.timeout(5):
                await peer.until(lambda: not peer.inbox(ME))

    run(body)


def test_after_a_cut_it_goes_on_where_it_was() -> None:
    async def body(peer: Peer, screen: Screen) -> None:
        async with session(peer, screen.show) as one:
            await one.online()
            await peer.post(ME, "1")
            await screen.until("1")
            await peer.cut()
            await peer.post(ME, "2")
            await peer.post(ME, "3")
            await screen.until("1", "2", "3")
            assert peer.identified[-1]["epoch"] == peer.epoch
            assert peer.identified[-1]["since"] > 0
            assert one.describe()["connections"] == 2

    run(body)


def test_a_restart_on_another_port_is_followed_and_registered_again() -> None:
    async def body(peer: Peer, screen: Screen) -> None:
        async with session(peer, screen.show) as one:
            await one.online()
            port = peer.port
            await peer.restart()
            assert peer.port != port
            await peer.post(ME, "after")
            await screen.until("after")
            assert ME in peer.agents

    run(body)


def test_a_new_token_is_read_before_the_next_connection() -> None:
    async def body(peer: Peer, screen: Screen) -> None:
        async with session(peer, screen.show) as one:
            await one.online()
            peer.token = "another"
            await peer.cut()
            await peer.post(ME, "after")
            await screen.until("after")

    run(body)


def test_another_database_is_told_by_its_epoch_and_fetched() -> None:
    async def body(peer: Peer, screen: Screen) -> None:
        async with session(peer, screen.show) as one:
            await one.online()
            await peer.post(ME, "1")
            await screen.until("1")
            peer.sockets.clear()
            await peer.post(ME, "2")
            await peer.forget()
            await peer.cut()
            await screen.until("1", "2")
            await peer.post(ME, "3")
            await screen.until("1", "2", "3")

    run(body)


def test_a_registry_that_cannot_replay_is_fetched_from() -> None:
    async def body(peer: Peer, screen: Screen) -> None:
        seen: list[str] = []
        peer.replays = False
        peer.page = 2
        async with session(peer, screen.show, on_event=lambda frame: seen.append(frame["type"])) as one:
            await one.online()
            await peer.cut()
            for number in range(7):
                await peer.post(ME, str(number))
            await screen.until(*map(str, range(7)))
            assert "resync" in seen

    run(body)


def test_a_retry_is_shown_again_only_if_the_message_was_not_displayed() -> None:
    async def body(peer: Peer, screen: Screen) -> None:
        async with session(peer, screen.show) as one:
            await one.online()
            held = await peer.post(ME, "held")
            await screen.until("held")
            await peer.again(held["messageId"])
            await screen.until("held", "held")
            screen.receipt = DISPLAYED
            await peer.again(held["messageId"])
            await screen.until("held", "held", "held")
            await peer.again(held["messageId"])
            await peer.post(ME, "end")
            await screen.until("held", "held", "held", "end")

    run(body, Screen(None))


def test_a_heartbeat_that_finds_nobody_registers_again() -> None:
    async def body(peer: Peer, screen: Screen) -> None:
        quick = Timing(first_s=0.01, longest_s=0.02, heartbeat_s=0.02)
        async with session(peer, screen.show, timing=quick) as one:
            await one.online()
            peer.agents.clear()
            await peer.until(lambda: ME in peer.agents)
            await peer.until(lambda: len(peer.identified) == 2)
            assert one.describe()["connections"] == 1

    run(body)


def test_a_superseded_session_stops_for_good() -> None:
    async def body(peer: Peer, screen: Screen) -> None:
        async with session(peer, screen.show) as one:
            await one.online()
            await peer.close_with(ME, 4001)
            async with asyncio.timeout(5):
                assert await one.ended() is State.SUPERSEDED
            with pytest.raises(EndedError, match="newer connection"):
                await one.send("hello", to="somebody")
            with pytest.raises(EndedError):
                await one.online()
        assert one.state is State.SUPERSEDED
        assert len(peer.identified) == 1

    run(body)


@pytest.mark.parametrize("code", [1000, 1001, 1008, 1011, 4000, 4002])
def test_any_other_close_code_is_no_reason_to_stop(code: int) -> None:
    async def body(peer: Peer, screen: Screen) -> None:
        async with session(peer, screen.show) as one:
            await one.online()
            await peer.close_with(ME, code)
            await peer.until(lambda: len(peer.identified) == 2)
            await peer.post(ME, "still here")
            await screen.until("still here")

    run(body)


def test_who_took_over_is_told_what_was_shown() -> None:
    async def body(peer: Peer, screen: Screen) -> None:
        async with session(peer, screen.show) as one:
            await one.online()
            peer.answers = False
            message = await peer.post(ME, "hello")
            await screen.until("hello")
            await peer.close_with(ME, 4001)
            await one.ended()
        assert "displayed_to_client" in peer.states(message["messageId"])

    run(body)


def test_a_send_is_answered_with_the_message_as_stored() -> None:
    async def body(peer: Peer, screen: Screen) -> None:
        async with session(peer, screen.show) as one:
            stored = await one.send("hello", to="somebody", conversation_id="k", meta={"a": 1})
            assert (stored.content, stored.conversation_id, stored.seq) == ("hello", "k", 1)
            assert stored.meta == {"a": 1}
            assert [message["fromAgentId"] for message in peer.messages.values()] == [ME]

    run(body)


def test_a_send_whose_answer_is_lost_is_stored_once() -> None:
    async def body(peer: Peer, screen: Screen) -> None:
        async with session(peer, screen.show) as one:
            await one.online()
            peer.answers = False
            sending = asyncio.create_task(one.send("hello", to="somebody"))
            await peer.until(lambda: peer.messages)
            await peer.cut()
            peer.answers = True
            stored = await sending
            assert list(peer.messages) == [stored.message_id]

    run(body)


def test_sends_while_nobody_answers_are_carried_out_in_order_afterwards() -> None:
    async def body(peer: Peer, screen: Screen) -> None:
        async with session(peer, screen.show) as one:
            await one.online()
            await peer.stop()
            sends = [asyncio.create_task(one.send(str(number), to="somebody")) for number in range(20)]
            await asyncio.sleep(0)
            await peer._serve(0)
            await asyncio.gather(*sends)
        assert [message["content"] for message in peer.messages.values()] == [str(n) for n in range(20)]

    run(body)


def test_a_send_has_a_deadline_and_names_the_id_to_send_again_with() -> None:
    async def body(peer: Peer, screen: Screen) -> None:
        async with session(peer, screen.show) as one:
            await one.online()
            peer.answers = False
            with pytest.raises(NoAnswerError) as caught:
                await one.send("hello", to="somebody", deadline_s=0.05)
            await peer.until(lambda: peer.messages)
            assert caught.value.message_id in peer.messages
            peer.answers = True
            stored = await one.send("hello", to="somebody", message_id=caught.value.message_id)
            assert stored.message_id == caught.value.message_id
            assert len(peer.messages) == 1

    run(body)


def test_what_the_registry_refuses_is_raised() -> None:
    async def body(peer: Peer, screen: Screen) -> None:
        async with session(peer, screen.show) as one:
            await one.online()
            peer.answers = False
            sending = asyncio.create_task(one.send("hello", to="somebody"))
            await peer.until(lambda: peer.messages)
            answer = {"requestId": 1, "error": "That is too much", "code": "a_code_of_tomorrow"}
            await peer.raw(ME, json.dumps({"type": "channel.error", "data": answer}))
            with pytest.raises(ChannelError, match="That is too much") as caught:
                await sending
            assert caught.value.code == "a_code_of_tomorrow"

    run(body)


def test_an_ack_of_the_callers_own() -> None:
    async def body(peer: Peer, screen: Screen) -> None:
        got: asyncio.Queue[Message] = asyncio.Queue()

        async def show(message: Message) -> None:
            got.put_nowait(message)

        async with session(peer, show) as one:
            await peer.post(ME, "hello")
            message = await got.get()
            ack = await one.ack(message, AckState.ANSWERED, detail="done")
            assert (ack.state, ack.detail, ack.actor_id) == (AckState.ANSWERED, "done", ME)
            assert peer.inbox(ME) == []
            await peer.again(message.message_id)
            await one.send("to be sure", to="somebody")
            assert got.empty()

    run(body)


def test_what_does_not_fit_stays_in_the_inbox_and_is_fetched_later() -> None:
    async def body(peer: Peer, _screen: Screen) -> None:
        shown: list[str] = []
        may_go = asyncio.Event()
        most = 0

        async def slow(message: Message) -> Receipt:
            nonlocal most
            await may_go.wait()
            most = max(most, one.describe()["queued"])
            shown.append(message.content)
            return DISPLAYED

        async with session(peer, slow, queue_limit=4) as one:
            await one.online()
            await peer.post(ME, "0")
            await peer.until(lambda: peer.acks)
            for number in range(1, 50):
                await peer.post(ME, str(number), f"c{number % 3}")
            may_go.set()
            await peer.until(lambda: not peer.inbox(ME))
        assert most <= 4
        assert sorted(shown, key=int) == [str(number) for number in range(50)]
        for thread in range(3):
            mine = [int(content) for content in shown if int(content) % 3 == thread]
            assert mine == sorted(mine)

    run(body)


def test_a_message_larger_than_the_whole_queue_is_shown_too() -> None:
    async def body(peer: Peer, screen: Screen) -> None:
        async with session(peer, screen.show, queue_bytes=1000) as one:
            await one.online()
            contents = ["a" * 5000, "b" * 5000, "c"]
            for content in contents:
                await peer.post(ME, content)
            await screen.until(*contents)

    run(body)


@pytest.mark.parametrize(
    "text",
    [
        "not json",
        "[1, 2]",
        '{"type": 7}',
        '{"type": "channel.message", "seq": 9, "data": {"kind": "a kind of tomorrow"}}',
        '{"type": "channel.message", "data": null}',
        '{"type": "channel.sent", "data": {"requestId": "no such"}}',
        '{"type": "channel.sent"}',
        "[" * 100_000,
    ],
)
def test_a_frame_that_cannot_be_understood_harms_nothing(text: str) -> None:
    async def body(peer: Peer, screen: Screen) -> None:
        async with session(peer, screen.show) as one:
            await one.online()
            await peer.raw(ME, text)
            await peer.post(ME, "after")
            await screen.until("after")
            assert one.describe()["connections"] == 1

    run(body)


def test_an_event_callback_that_raises_harms_nothing() -> None:
    async def body(peer: Peer, screen: Screen) -> None:
        def broken(_frame: object) -> None:
            raise RuntimeError("a view's fault")

        async with session(peer, screen.show, on_event=broken) as one:
            await one.online()
            await peer.post(ME, "hello")
            await screen.until("hello")

    run(body)


def test_a_session_that_is_refused_says_why_and_goes_on_trying() -> None:
    async def body(peer: Peer, screen: Screen) -> None:
        peer.refusal = (503, {"error": "The database can't be written", "code": "storage"})
        async with session(peer, screen.show) as one:
            await peer.until(lambda: len(peer.asked) > 3)
            assert one.trouble is not None
            assert "The database can't be written" in one.describe()["trouble"]
            peer.refusal = None
            await one.online()
            assert one.trouble is None

    run(body)


def test_an_inbox_that_cannot_be_read_is_told_and_read_later() -> None:
    async def body(peer: Peer, screen: Screen) -> None:
        await peer.post(ME, "waiting")
        peer.inbox_refusal = (503, {"error": "The database is locked", "code": "storage"})
        async with session(peer, screen.show) as one:
            await one.online()
            await peer.until(lambda: peer.asked.count(("GET", "/channel/inbox")) > 1)
            assert "The database is locked" in one.describe()["trouble"]
            peer.inbox_refusal = None
            await screen.until("waiting")
            assert one.trouble is None

    run(body)


def test_a_message_of_tomorrow_in_the_inbox_holds_up_no_other() -> None:
    async def body(peer: Peer, screen: Screen) -> None:
        await peer.post(ME, "?", kind="a kind of tomorrow")
        await peer.post(ME, "known")
        async with session(peer, screen.show):
            await screen.until("known")

    run(body)


def test_closing_lets_a_callback_finish_and_its_receipt_out() -> None:
    async def body(peer: Peer, _screen: Screen) -> None:
        begun, may_go = asyncio.Event(), asyncio.Event()

        async def slow(_message: Message) -> Receipt:
            begun.set()
            await may_go.wait()
            return DISPLAYED

        one = session(peer, slow)
        one.start()
        message = await peer.post(ME, "hello")
        await peer.post(ME, "never begun")
        await begun.wait()
        closing = asyncio.create_task(one.close())
        await asyncio.sleep(0)
        may_go.set()
        await closing
        assert peer.states(message["messageId"])[-1] == "displayed_to_client"
        assert [one["content"] for one in peer.inbox(ME)] == ["never begun"]

    run(body)


def test_closing_between_two_connections_gets_the_receipt_out_with_the_next() -> None:
    async def body(peer: Peer, screen: Screen) -> None:
        late = Timing(first_s=60, longest_s=60, close_s=10)
        async with session(peer, screen.show, timing=late, uniform=lambda _low, high: high) as one:
            await one.online()
            peer.answers = False
            message = await peer.post(ME, "hello")
            await screen.until("hello")
            await peer.cut()
            while one.describe()["state"] == "online":
                await asyncio.sleep(0)
            peer.answers = True
        assert "displayed_to_client" in peer.states(message["messageId"])
        assert ME not in peer.agents

    run(body)


def test_closing_when_nobody_is_there_and_nothing_is_left_to_say_is_quick() -> None:
    async def body(peer: Peer, screen: Screen) -> None:
        await peer.stop()
        async with asyncio.timeout(5):
            one = session(peer, screen.show, timing=Timing(first_s=60, longest_s=60, close_s=60))
            one.start()
            await asyncio.sleep(0)
            await one.close()

    run(body)


def test_closing_waits_for_nobody_for_ever_and_leaves_no_task() -> None:
    async def body(peer: Peer, _screen: Screen) -> None:
        begun = asyncio.Event()

        async def stuck(_message: Message) -> Receipt:
            begun.set()
            await asyncio.Event().wait()
            return DISPLAYED

        before = asyncio.all_tasks()
        one = session(peer, stuck, timing=Timing(close_s=0.05, first_s=0.01))
        one.start()
        await peer.post(ME, "hello")
        await begun.wait()
        async with asyncio.timeout(5):
            await one.close()
            await one.close()
        assert {
            task.get_name() for task in asyncio.all_tasks() - before if "session" in task.get_name()
        } == set()
        assert peer.states(next(iter(peer.messages))) == ["delivered_to_bridge"]

    run(body)
