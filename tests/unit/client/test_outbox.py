"""What was asked and isn't answered yet: in order, again after a lost connection, never for ever."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from agent_bridge.channel.errors import ChannelError, StorageError, TooLargeError
from agent_bridge.channel.model import AckState, ActorType
from agent_bridge.channel.writes import Acknowledge
from agent_bridge.client.outbox import CROWD, Outbox, Request
from agent_bridge.errors import AgentBridgeError


def run(body: Callable[[Outbox], Awaitable[None]]) -> None:
    async def whole() -> None:
        async with asyncio.timeout(5):
            await body(Outbox())

    asyncio.run(whole())


def receipt(state: AckState, name: str = "m") -> Acknowledge:
    return Acknowledge(
        identity="global",
        conversation_id="c",
        message_id=name,
        state=state,
        actor_id="me",
        actor_type=ActorType.CLIENT,
    )


def popped(outbox: Outbox) -> list[Request]:
    found = []
    while (request := outbox.pop()) is not None:
        found.append(request)
    return found


def test_an_answer_reaches_who_asked() -> None:
    async def body(outbox: Outbox) -> None:
        request, answer = outbox.ask("channel.send", {"message": {"a": 1}})
        assert [one.frame for one in popped(outbox)] == [
            {"type": "channel.send", "message": {"a": 1}, "requestId": request.number}
        ]
        outbox.answered("channel.sent", {"requestId": request.number, "message": 7})
        assert (await answer)["message"] == 7
        await outbox.settled()

    run(body)


def test_a_refusal_is_raised() -> None:
    async def body(outbox: Outbox) -> None:
        request, answer = outbox.ask("channel.send", {})
        popped(outbox)
        refused = {"requestId": request.number, "error": "Full", "code": "disk_full"}
        outbox.answered("channel.error", refused)
        with pytest.raises(StorageError, match="Full"):
            await answer

    run(body)


def test_after_a_lost_connection_everything_goes_again_in_order() -> None:
    async def body(outbox: Outbox) -> None:
        requests = [outbox.ask("channel.send", {"n": number})[0] for number in range(5)]
        assert [outbox.pop() for _ in range(3)] == requests[:3]
        outbox.answered("channel.sent", {"requestId": requests[1].number})
        outbox.lost()
        assert popped(outbox) == [requests[0], *requests[2:]]

    run(body)


def test_an_answer_to_what_was_not_sent_on_this_connection_is_passed_over() -> None:
    async def body(outbox: Outbox) -> None:
        request, answer = outbox.ask("channel.send", {})
        outbox.answered("channel.sent", {"requestId": request.number})
        outbox.answered("channel.sent", {"requestId": "7"})
        outbox.answered("channel.sent", {})
        assert not answer.done()
        assert popped(outbox) == [request]

    run(body)


def test_two_receipts_that_wait_become_the_higher_one() -> None:
    async def body(outbox: Outbox) -> None:
        outbox.receipt(receipt(AckState.DELIVERED))
        outbox.receipt(receipt(AckState.DISPLAYED))
        outbox.receipt(receipt(AckState.DELIVERED))
        outbox.receipt(receipt(AckState.DELIVERED, "other"))
        states = [(one.frame["ack"]["messageId"], one.frame["ack"]["state"]) for one in popped(outbox)]
        assert states == [("m", "displayed_to_client"), ("other", "delivered_to_bridge")]

    run(body)


def test_a_receipt_that_is_on_its_way_is_followed_by_the_next() -> None:
    async def body(outbox: Outbox) -> None:
        outbox.receipt(receipt(AckState.DELIVERED))
        first = popped(outbox)
        outbox.receipt(receipt(AckState.DISPLAYED))
        second = popped(outbox)
        assert [one.frame["ack"]["state"] for one in (*first, *second)] == [
            "delivered_to_bridge",
            "displayed_to_client",
        ]

    run(body)


@pytest.mark.parametrize("code", ["storage", "disk_full", "too_many"])
def test_a_receipt_that_fails_for_now_is_put_back(code: str) -> None:
    async def body(outbox: Outbox) -> None:
        outbox.receipt(receipt(AckState.DISPLAYED))
        (request,) = popped(outbox)
        again = outbox.answered("channel.error", {"requestId": request.number, "error": "no", "code": code})
        assert again is request
        outbox.put_back(request)
        assert popped(outbox) == [request]
        outbox.answered("channel.acked", {"requestId": request.number})
        outbox.put_back(request)
        assert popped(outbox) == []

    run(body)


def test_a_receipt_that_fails_for_good_is_counted() -> None:
    async def body(outbox: Outbox) -> None:
        outbox.receipt(receipt(AckState.DISPLAYED))
        (request,) = popped(outbox)
        refused = {"requestId": request.number, "error": "no", "code": "unknown"}
        assert outbox.answered("channel.error", refused) is None
        assert (outbox.refused, len(outbox)) == (1, 0)

    run(body)


def test_only_the_largest_is_given_up_when_a_frame_was_too_large() -> None:
    async def body(outbox: Outbox) -> None:
        asked = [outbox.ask("channel.send", {"n": number}) for number in range(3)]
        for request, size in zip(popped(outbox), (10, 9000, 20), strict=True):
            request.size = size
        outbox.too_large()
        outbox.lost()
        assert popped(outbox) == [asked[0][0], asked[2][0]]
        with pytest.raises(TooLargeError):
            await asked[1][1]

    run(body)


def test_at_the_end_who_waits_is_told_and_unsent_receipts_are_handed_out() -> None:
    async def body(outbox: Outbox) -> None:
        _, answer = outbox.ask("channel.send", {})
        outbox.receipt(receipt(AckState.DISPLAYED))
        assert outbox.end(AgentBridgeError("over")) == [receipt(AckState.DISPLAYED)]
        with pytest.raises(AgentBridgeError, match="over"):
            await answer
        await outbox.settled()
        assert popped(outbox) == []

    run(body)


def test_a_crowd_of_requests_is_waited_for() -> None:
    async def body(outbox: Outbox) -> None:
        for number in range(CROWD):
            outbox.receipt(receipt(AckState.DELIVERED, str(number)))
        waiting = asyncio.ensure_future(outbox.calm())
        await asyncio.sleep(0)
        assert not waiting.done()
        (first, *_) = popped(outbox)
        outbox.answered("channel.acked", {"requestId": first.number})
        await waiting

    run(body)


def test_who_stops_waiting_takes_the_request_back() -> None:
    async def body(outbox: Outbox) -> None:
        request, _answer = outbox.ask("channel.send", {})
        kept, _ = outbox.ask("channel.send", {})
        outbox.drop(request)
        assert popped(outbox) == [kept]
        outbox.drop(kept)
        outbox.lost()
        assert popped(outbox) == []

    run(body)


def test_an_unknown_code_is_a_channel_error() -> None:
    async def body(outbox: Outbox) -> None:
        request, answer = outbox.ask("channel.send", {})
        popped(outbox)
        outbox.answered("channel.error", {"requestId": request.number, "error": "?", "code": "new"})
        with pytest.raises(ChannelError) as caught:
            await answer
        assert caught.value.code == "new"

    run(body)
