"""What every registry must do: one test for each line of the list, over real HTTP and WebSocket.

The server is the one that the service runs, with its sweeps; the clock is the test's. What each line comes to
in detail is tested beside the part that does it: `test_http_*`, `test_ws_*`, `tests/integration/channel`.
"""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agent_bridge.channel.model import Draft, Kind
from agent_bridge.channel.writes import Send
from agent_bridge.client.address import Address
from agent_bridge.client.runtime import DISPLAYED, Registration, Session, Timing
from integration.channel.records import Clock
from integration.registry.running import Running
from integration.registry.swept import Swept

LIST_MS = 100
"""What a page of the list or of an inbox may take over HTTP with 10,000 messages stored."""
_numbers = itertools.count(1)


@pytest.fixture(scope="module")
def registry(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Swept]:
    with Swept(tmp_path_factory.mktemp("registry"), message_bytes=1 << 20) as running:
        yield running


@pytest.fixture
def mine() -> str:
    """An identity that no other test uses."""
    return f"mine-{next(_numbers)}"


def ask(
    registry: Running,
    identity: str,
    method: str,
    path: str,
    body: object = None,
    **query: str | int,
) -> Any:  # noqa: ANN401 - JSON is anything
    answer = registry.http.request(method, path, json=body, params=query, headers=registry.headers(identity))
    assert answer.status_code < 300, answer.text
    return answer.json()


def types(frames: list[dict[str, Any]]) -> list[str]:
    return [frame["type"] for frame in frames]


def test_1_the_same_id_twice_is_201_then_200_and_one_event(registry: Swept, mine: str) -> None:
    draft = {"fromAgentId": "a", "toAgentId": "b", "kind": "chat", "messageId": "m"}
    with registry.agent("b", mine) as target, registry.connect(mine) as other:
        answers = [
            registry.http.post(
                "/channel/messages", json=draft | {"content": content}, headers=registry.headers(mine)
            )
            for content in ("first", "second")
        ]

        assert [answer.status_code for answer in answers] == [201, 200]
        assert [answer.json()["deduplicated"] for answer in answers] == [False, True]
        assert [answer.json()["content"] for answer in answers] == ["first", "first"]
        for socket in (target, other):
            assert types(socket.all_until_now()) == ["channel.message"]


def test_2_a_suppressed_thread_is_revived_before_its_message(registry: Swept, mine: str) -> None:
    registry.post(mine, toAgentId="b", conversationId="c")
    ask(registry, mine, "POST", "/channel/conversations/c/suppress", agentId="b")
    assert ask(registry, mine, "GET", "/channel/conversations", agentId="b") == []
    with registry.agent("b", mine) as socket:
        registry.post(mine, toAgentId="b", conversationId="c", content="again")

        revived, message = socket.all_until_now()
    assert (revived["type"], revived["data"]["conversationId"]) == ("channel.conversation.revived", "c")
    assert (message["type"], message["data"]["content"]) == ("channel.message", "again")
    assert len(ask(registry, mine, "GET", "/channel/conversations", agentId="b")) == 1


def test_3_a_second_socket_closes_the_first_with_4001_and_the_row_stays(registry: Swept, mine: str) -> None:
    registry.register("me", mine)
    with registry.connect(mine) as other:
        first = registry.agent("me", mine)
        with registry.agent("me", mine) as second:
            assert first.closing()[0] == 4001
            registry.wait_for(lambda: len(registry.hub.peers) == 2)
            assert ask(registry, mine, "GET", "/agents/me")["healthy"] is True
            registry.post(mine, toAgentId="me")
            assert types(second.all_until_now()) == ["channel.message"]
            assert types(other.all_until_now()) == ["channel.message"], "nobody left"


def test_4_a_clients_row_goes_with_its_socket_and_an_agents_is_unhealthy(registry: Swept, mine: str) -> None:
    registry.register("session", mine)
    registry.register(f"server-{mine}", mine, entryType="agent", clientInfo=None)
    with registry.connect(mine) as other:
        registry.agent("session", mine).close()
        registry.agent(f"server-{mine}", mine).close()

        assert other.until("agent.deregistered")["data"]["agentId"] == "session"
        assert other.until("agent.unhealthy")["data"]["agentId"] == f"server-{mine}"
    rows = {row["agentId"]: row["healthy"] for row in ask(registry, mine, "GET", "/agents")}
    assert "session" not in rows
    assert rows[f"server-{mine}"] is False


def test_5_unhealthy_after_90_s_and_removed_after_120_s(registry: Swept, mine: str) -> None:
    registry.register("me", mine)

    def after(seconds: float) -> tuple[list[str], list[bool]]:
        registry.clock.go_on(round(seconds * 1000))
        registry.sweep("presence")
        rows = ask(registry, mine, "GET", "/agents", entryType="client")
        told = [frame for frame in socket.all_until_now() if frame["data"]["agentId"] == "me"]
        return types(told), [row["healthy"] for row in rows]

    with registry.connect(mine) as socket:
        assert after(89.999) == ([], [True])
        assert after(0.001) == (["agent.unhealthy"], [False])
        assert after(29.999) == ([], [False])
        ask(registry, mine, "POST", "/agents/me/heartbeat")
        assert after(89.999) == (["agent.heartbeat"], [True])
        assert after(30.001) == (["agent.removed"], [])


def test_6_a_pending_message_past_its_time_gets_one_failed_ack(registry: Swept, mine: str) -> None:
    due = registry.clock.wall + 300_000
    asked = registry.post(
        mine, toAgentId="b", conversationId="c", content="Well?", expectsResponse=True, expiresAt=due
    )
    with registry.connect(mine) as socket:
        registry.clock.go_on(299_999)
        registry.sweep("expiry")
        assert socket.all_until_now() == []
        (entry,) = ask(registry, mine, "GET", "/channel/conversations")
        assert entry["status"] == "pending"
        registry.clock.go_on(1)
        (entry,) = ask(registry, mine, "GET", "/channel/conversations")
        assert entry["status"] == "expired"
        for _ in range(3):
            registry.sweep("expiry")

        (event,) = socket.all_until_now()
    assert event["type"] == "channel.ack"
    told = {name: event["data"][name] for name in ("messageId", "state", "actorId", "actorType")}
    assert told == {
        "messageId": asked["messageId"],
        "state": "failed",
        "actorId": "registry",
        "actorType": "registry",
    }
    thread = ask(registry, mine, "GET", "/channel/conversations/c")
    assert thread["acknowledgements"] == [event["data"]]
    (entry,) = ask(registry, mine, "GET", "/channel/conversations")
    assert (entry["status"], entry["pendingCount"], entry["pendingReply"]) == ("failed", 0, False)


def test_7_no_identity_sees_another(registry: Swept, mine: str) -> None:
    """In random order, with every route and frame: `test_identities.py`."""
    theirs = f"{mine}-other"
    with registry.connect(theirs) as stranger:
        registry.register("session", mine)
        sent = registry.post(mine, toAgentId="session", conversationId="c", expectsResponse=True)
        after = stranger.snapshot["seq"]

        assert stranger.all_until_now() == []
        assert ask(registry, theirs, "GET", "/channel/conversations") == []
        assert ask(registry, theirs, "GET", "/channel/inbox", agentId="session") == []
        assert ask(registry, theirs, "GET", "/agents", entryType="client") == []
        assert ask(registry, theirs, "GET", "/channel/events", since=after)["events"] == []
        for path in ("/channel/conversations/c", "/agents/session"):
            answer = registry.http.get(path, headers=registry.headers(theirs))
            assert answer.status_code == 404
        assert ask(registry, theirs, "GET", "/health")["agents"] == len(
            ask(registry, theirs, "GET", "/agents")
        )
        draft = {"fromAgentId": "a", "toAgentId": "session", "kind": "chat", "content": "x"}
        refused = registry.http.post("/channel/messages", json=draft, headers=registry.headers(theirs))
        assert (refused.status_code, refused.json()["code"]) == (403, "wrong_identity")
        with registry.agent("session", theirs, since=after, epoch=registry.hub.epoch) as twin:
            frames: list[dict[str, Any]] = []
            twin.until("replayed", frames)
            assert types(frames) == []
    # Its own identity has it all.
    assert [one["messageId"] for one in ask(registry, mine, "GET", "/channel/inbox", agentId="session")] == [
        sent["messageId"]
    ]


def test_8_a_restart_keeps_what_was_stored_and_agents_reappear(tmp_path: Path) -> None:
    clock = Clock()
    running = Swept(tmp_path, clock)
    timing = Timing(first_s=0.02, longest_s=0.05, heartbeat_s=0.2)
    me = Registration(agent_id="me", name="me", project_path="/p", client_name="tester")

    def find() -> Address:
        return Address(f"http://127.0.0.1:{running.port}", running.token.current().decode())

    async def show(_: object) -> Any:  # noqa: ANN401
        return DISPLAYED

    def write(running: Swept) -> None:
        kept = running.post(toAgentId="you", conversationId="kept", expectsResponse=True)
        ack = {"messageId": kept["messageId"], "conversationId": "kept", "state": "delivered_to_bridge"}
        actor = {"actorId": "you", "actorType": "bridge"}
        ask(running, "global", "POST", "/channel/acks", ack | actor)
        running.post(toAgentId="you", conversationId="hidden")
        ask(running, "global", "POST", "/channel/conversations/hidden/suppress", agentId="you")

    async def body() -> None:
        nonlocal running
        async with Session(me, show, timing=timing, find=find) as session:
            await session.online()
            await asyncio.to_thread(write, running)
            before = seen(running)
            assert len(before["list"]) == 1
            assert [one["state"] for one in before["kept"]["acknowledgements"]] == ["delivered_to_bridge"]
            await asyncio.to_thread(running.__exit__, None, None, None)

            running = await asyncio.to_thread(Swept(tmp_path, clock).__enter__)
            assert seen(running) == before
            async with asyncio.timeout(10):
                while not (rows := ask(running, "global", "GET", "/agents")):
                    await asyncio.sleep(0.02)
            assert [row["agentId"] for row in rows] == ["me"]

    def seen(running: Swept) -> dict[str, Any]:
        return {
            "list": ask(running, "global", "GET", "/channel/conversations", agentId="you"),
            "kept": ask(running, "global", "GET", "/channel/conversations/kept"),
            "hidden": ask(running, "global", "GET", "/channel/conversations/hidden", agentId="you"),
            "inbox": ask(running, "global", "GET", "/channel/inbox", agentId="you"),
        }

    running.__enter__()
    try:
        asyncio.run(body())
    finally:
        running.__exit__(None, None, None)


def test_9_the_database_deleted_under_it_the_next_write_succeeds(tmp_path: Path) -> None:
    with Swept(tmp_path) as running, running.agent("b") as socket:
        running.post(toAgentId="b", content="lost")
        assert socket.until("channel.message")["data"]["content"] == "lost"
        for path in running.database.parent.glob(f"{running.database.name}*"):
            path.unlink()

        running.post(toAgentId="b", content="kept")

        assert socket.until("resync")["epoch"] != socket.snapshot["epoch"]
        messages = ask(running, "global", "GET", "/channel/inbox", agentId="b")
        assert [one["content"] for one in messages] == ["kept"]
        assert running.database.exists()


def test_10_with_ten_thousand_messages_lists_answer_in_time(registry: Swept, mine: str) -> None:
    store = registry.hub.store
    before = store.last_seq()
    for number in range(10_000):
        store.submit(
            Send(
                Draft(
                    identity=mine,
                    from_agent_id="a",
                    to_agent_id=f"agent-{number // 10 % 100}",
                    conversation_id=f"c{number // 10}",
                    kind=Kind.CHAT,
                    content="The build of part seven is red since this morning.",
                    expects_response=number % 10 == 9,
                )
            )
        )
    registry.wait_for(lambda: registry.hub.seq >= before + 10_000)

    def took(path: str, **query: str | int) -> float:
        answers = []
        for _ in range(7):
            begun = time.perf_counter()
            assert len(ask(registry, mine, "GET", path, **query)) == 25
            answers.append((time.perf_counter() - begun) * 1000)
        return min(answers)

    assert took("/channel/conversations", limit=25) < LIST_MS
    assert took("/channel/conversations", limit=25, pending="true") < LIST_MS
    assert took("/channel/inbox", limit=25, agentId="agent-7") < LIST_MS
    headers = registry.http.get("/channel/conversations", headers=registry.headers(mine)).headers
    assert headers["x-total-count"] == "1000"


@pytest.mark.parametrize("origin", ["https://example.invalid", "http://localhost:3000", "null"])
def test_11_a_post_from_another_origin_is_refused(registry: Swept, mine: str, origin: str) -> None:
    draft = {"fromAgentId": "a", "kind": "chat", "content": "x"}
    own = {"Origin": f"http://127.0.0.1:{registry.port}"}
    before = registry.hub.store.last_seq()
    for page, status in ({"Origin": origin}, 403), (own, 201):
        answer = registry.http.post("/channel/messages", json=draft, headers=registry.headers(mine) | page)
        assert answer.status_code == status
        assert not [name for name in answer.headers if name.startswith("access-control")]
        assert registry.hub.store.last_seq() == before + (status == 201)
