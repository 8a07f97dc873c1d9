"""Several registries with one PostgreSQL database: what one stores, the others' sockets hear, in order."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from agent_bridge.channel.storage.place import Place
from integration.channel.cluster import Cluster
from integration.channel.records import Records
from integration.registry.running import PATIENCE, Client, Running

Pair = tuple[Running, Running]


@pytest.fixture
def pair(postgresql_url: str, tmp_path: Path) -> Iterator[Pair]:
    """Two registries."""
    with ExitStack() as stack:
        one, other = (
            stack.enter_context(Running(tmp_path / name, database_url=postgresql_url))
            for name in ("one", "other")
        )
        yield one, other


def _until(condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def _messages(client: Client, count: int) -> list[dict[str, Any]]:
    """The next `count` messages; acks between them are left out."""
    return [client.until("channel.message") for _ in range(count)]


def test_a_message_and_its_answer_cross(pair: Pair) -> None:
    here, there = pair
    with here.agent("asker") as asker, there.agent("asked") as asked:
        asker.send("1", toAgentId="asked", content="Is it green?", fromAgentId="asker")
        question = asked.until("channel.message")["data"]
        assert question["content"] == "Is it green?"
        assert asker.until("channel.sent")["data"]["message"]["messageId"] == question["messageId"]
        asked.send(
            "2",
            toAgentId="asker",
            fromAgentId="asked",
            content="Yes.",
            replyTo=question["messageId"],
            conversationId=question["conversationId"],
        )
        seen: list[dict[str, Any]] = []
        acked = asker.until("channel.ack", seen)
        assert (acked["data"]["state"], acked["data"]["messageId"]) == ("answered", question["messageId"])
        assert "Yes." in [one["data"]["content"] for one in seen if one["type"] == "channel.message"]


def test_all_sockets_hear_all_once_in_the_order_of_their_numbers(pair: Pair) -> None:
    each = 60
    with pair[0].agent("a", events="all") as a, pair[1].agent("b", events="all") as b:
        writers = [
            threading.Thread(
                target=lambda one=one, name=name: [
                    one.post(fromAgentId=name, messageId=f"{name}-{number}", expectsResponse=False)
                    for number in range(each)
                ]
            )
            for one, name in zip(pair, ("left", "right"), strict=True)
        ]
        for writer in writers:
            writer.start()
        heard = [_messages(client, 2 * each) for client in (a, b)]
        for writer in writers:
            writer.join(20)
        for frames in heard:
            numbers = [frame["seq"] for frame in frames]
            assert numbers == sorted(set(numbers))
            assert len({frame["data"]["messageId"] for frame in frames}) == 2 * each
        assert a.all_until_now() == b.all_until_now() == []


def test_a_cursor_of_one_holds_at_the_other(pair: Pair) -> None:
    here, there = pair
    with here.agent("reader") as reader:
        here.post(content="first", toAgentId="reader")
        (first,) = _messages(reader, 1)
    there.post(content="second", toAgentId="reader")
    there.wait_for(lambda: there.hub.seq > first["seq"])
    with there.connect() as client:
        client.identify("reader", since=first["seq"], epoch=client.snapshot["epoch"])
        missed = client.until("channel.message")
        assert (missed["data"]["content"], missed["replay"]) == ("second", True)
        client.until("replayed")


def test_after_a_lost_connection_what_was_missed_is_told(
    pair: Pair, cluster: Cluster, database_name: str
) -> None:
    here, there = pair
    with there.agent("reader") as reader:
        here.post(content="before", toAgentId="reader")
        assert _messages(reader, 1)[0]["data"]["content"] == "before"
        cluster.end_connections(database_name)
        here.post(content="after", toAgentId="reader")
        assert _messages(reader, 1)[0]["data"]["content"] == "after"


def test_that_nothing_is_heard_is_told_until_it_is_again(cluster: Cluster, postgresql_url: str) -> None:
    with Records(Place.of(postgresql_url)) as records:
        heard = threading.Event()
        records.store.follow(heard.set)
        assert heard.wait(PATIENCE)
        cluster.stop()
        try:
            _until(lambda: "can't be heard" in " ".join(records.store.health().reasons))
        finally:
            heard.clear()
            cluster.start()
        assert heard.wait(PATIENCE)
        assert records.store.health().reasons == ()


def test_the_end_waits_for_nobody_who_listens(postgresql_url: str, tmp_path: Path) -> None:
    with Running(tmp_path, database_url=postgresql_url) as running:
        running.post(content="x")
        assert "channel-listener" in {thread.name for thread in threading.enumerate()}
    assert "channel-listener" not in {thread.name for thread in threading.enumerate()}
