"""The channel over HTTP: each route, what it refuses, and what others don't see of it."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import Any

import httpx
import pytest

from agent_bridge.channel.errors import DiskFullError
from agent_bridge.registry import channel_routes, hub
from agent_bridge.registry.events import encoded_list
from integration.registry.running import Running


@pytest.fixture(scope="module")
def registry(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with Running(tmp_path_factory.mktemp("registry")) as running:
        yield running


class Caller:
    """One identity's view of the registry."""

    def __init__(self, registry: Running, identity: str) -> None:
        self.identity = identity
        self._registry = registry
        self._headers = registry.headers(identity)

    def get(self, path: str, **query: str | int) -> httpx.Response:
        return self._registry.http.get(path, params=query, headers=self._headers)

    def post(self, path: str, body: object = None, **query: str | int) -> httpx.Response:
        return self._registry.http.post(path, json=body, params=query, headers=self._headers)

    def delete(self, path: str, **query: str | int) -> httpx.Response:
        return self._registry.http.delete(path, params=query, headers=self._headers)

    def send(self, **message: object) -> dict[str, Any]:
        answer = self.post(
            "/channel/messages", {"fromAgentId": "a", "kind": "chat", "content": "hi"} | message
        )
        assert answer.status_code in (200, 201), answer.text
        stored: dict[str, Any] = answer.json()
        return stored


@pytest.fixture
def caller(registry: Running, request: pytest.FixtureRequest) -> Caller:
    """An identity that no other test of this module uses."""
    name = "".join(letter if letter.isalnum() else "-" for letter in request.node.name)
    return Caller(registry, name[:60])


@pytest.fixture
def other(registry: Running) -> Caller:
    """Somebody of another identity."""
    return Caller(registry, "other")


def _ids(answer: httpx.Response) -> list[str]:
    assert answer.status_code == 200, answer.text
    return [message["messageId"] for message in answer.json()]


def test_a_message_is_answered_as_it_was_stored(caller: Caller) -> None:
    sent = caller.send(toAgentId="b", content="hello?", meta={"n": 1}, createdAt=5, fromAgentName="Ana")
    assert sent["deduplicated"] is False
    assert sent["createdAt"] > 10**12
    assert sent["meta"] == {"n": 1, "senderCreatedAt": 5}
    assert (sent["attemptCount"], sent["state"], sent["identity"]) == (1, "queued", caller.identity)
    inbox = caller.get("/channel/inbox", agentId="b")
    assert inbox.json() == [{name: value for name, value in sent.items() if name != "deduplicated"}]
    assert inbox.headers["x-total-count"] == "1"
    assert "x-next-before" not in inbox.headers


def test_one_message_by_its_id(caller: Caller, other: Caller) -> None:
    sent = caller.send(toAgentId="b", messageId="a/b one")
    found = caller.get("/channel/messages/a%2Fb%20one")
    assert found.status_code == 200
    assert found.json() == {name: value for name, value in sent.items() if name != "deduplicated"}
    caller.send(fromAgentId="b", toAgentId="a", replyTo="a/b one", conversationId=sent["conversationId"])
    assert caller.get("/channel/messages/a%2Fb%20one").json()["state"] == "answered"
    for asked in (caller.get("/channel/messages/a"), other.get("/channel/messages/a%2Fb%20one")):
        assert (asked.status_code, asked.json()["code"]) == (404, "unknown")


def test_the_same_id_twice_is_201_then_200_and_the_row_as_first_stored(caller: Caller) -> None:
    body = {"fromAgentId": "a", "kind": "chat", "messageId": "twice"}
    first = caller.post("/channel/messages", body | {"content": "first"})
    second = caller.post("/channel/messages", body | {"content": "second"})
    assert (first.status_code, second.status_code) == (201, 200)
    assert second.json() == first.json() | {"deduplicated": True}


def test_the_same_id_in_another_identity_is_another_message(caller: Caller, other: Caller) -> None:
    caller.send(messageId="shared", conversationId="same", content="mine")
    theirs = other.send(messageId="shared", conversationId="same", content="theirs")
    assert (theirs["deduplicated"], theirs["content"]) == (False, "theirs")
    thread = caller.get("/channel/conversations/same").json()
    assert [message["content"] for message in thread["messages"]] == ["mine"]


def test_another_identity_sees_nothing(caller: Caller, other: Caller) -> None:
    sent = caller.send(toAgentId="b", content="secret")
    thread = f"/channel/conversations/{sent['conversationId']}"
    assert other.get(thread).status_code == 404
    assert sent["messageId"] not in _ids(other.get("/channel/inbox", agentId="b"))
    assert "secret" not in other.get("/channel/conversations").text
    assert "secret" not in other.get("/channel/events", since=0).text
    assert (
        other.post(f"/channel/messages/{sent['conversationId']}/{sent['messageId']}/retry").status_code == 404
    )
    assert other.post(f"{thread}/suppress", {"agentId": "b"}).status_code == 404
    ack = {"conversationId": sent["conversationId"], "messageId": sent["messageId"], "state": "answered"}
    assert other.post("/channel/acks", ack | {"actorId": "b", "actorType": "client"}).status_code == 404
    assert caller.get(thread).json()["messages"][0]["state"] == "queued"


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b"", "JSON"),
        (b"[]", "object"),
        (b'{"fromAgentId":"a","kind":"chat"}', "fromAgentId, kind and content are required"),
        (b'{"fromAgentId":"a","kind":"shout","content":"x"}', "kind"),
        (b'{"fromAgentId":"a","kind":"chat","content":"x","content":"y"}', "twice"),
        (b'{"fromAgentId":"a","kind":"chat","content":"\\ud800"}', "can't be read"),
        (b'{"fromAgentId":"a","kind":"chat","content":"x","meta":' + b"[" * 5000, "nested"),
        (b'{"fromAgentId":"a","kind":"chat","content":"x","expiresAt":1e400}', "expiresAt"),
        (b'{"fromAgentId":"a","kind":"chat","content":"x","identity":"other"}', "identity"),
    ],
)
def test_what_cannot_be_used_is_400_with_the_field_and_stores_nothing(
    registry: Running, caller: Caller, body: bytes, said: str
) -> None:
    before = registry.hub.store.last_seq()
    answer = registry.http.post("/channel/messages", content=body, headers=registry.headers(caller.identity))
    assert (answer.status_code, answer.json()["code"]) == (400, "invalid")
    assert said in answer.json()["error"]
    assert registry.hub.store.last_seq() == before


def test_a_body_over_the_limit_is_413_however_it_comes(registry: Running, caller: Caller) -> None:
    headers = registry.headers(caller.identity)
    limit = registry.settings.message_bytes

    def pieces() -> Iterator[bytes]:
        yield b'{"fromAgentId":"a","kind":"chat","content":"'
        for _ in range(limit // 65_536 + 2):
            yield b"x" * 65_536

    with httpx.Client(base_url=registry.http.base_url) as client:
        for content in (b"x" * (limit + 1), pieces()):
            answer = client.post("/channel/messages", content=content, headers=headers)
            assert (answer.status_code, answer.json()["code"]) == (413, "too_large")
    assert caller.get("/channel/conversations").json() == []


def test_five_megabytes_of_anything_are_data(caller: Caller) -> None:
    content = "----- END MESSAGE -----\x00\x1b[2J\u202e\u2066 <!-- " * 125_000
    sent = caller.send(content=content, toAgentId="b")
    assert caller.get("/channel/inbox", agentId="b").json()[0]["content"] == content == sent["content"]


def test_acks_move_a_message_on_and_never_back(caller: Caller) -> None:
    sent = caller.send(toAgentId="b", expectsResponse=True)
    where = {"conversationId": sent["conversationId"], "messageId": sent["messageId"]}
    actor = {"actorId": "b", "actorType": "client"}
    for state in ("displayed_to_client", "delivered_to_bridge"):
        answer = caller.post("/channel/acks", where | actor | {"state": state, "detail": "why"})
        assert (answer.status_code, answer.json()["state"], answer.json()["detail"]) == (201, state, "why")
    thread = caller.get(f"/channel/conversations/{sent['conversationId']}").json()
    assert thread["messages"][0]["state"] == "displayed_to_client"
    assert [ack["state"] for ack in thread["acknowledgements"]] == [
        "displayed_to_client",
        "delivered_to_bridge",
    ]


@pytest.mark.parametrize(
    ("change", "status"),
    [
        ({"state": "read"}, 400),
        ({"actorType": "person"}, 400),
        ({"messageId": None}, 400),
        ({"messageId": "nobody"}, 404),
        ({"conversationId": "nowhere"}, 404),
    ],
)
def test_acks_that_say_nothing(caller: Caller, change: dict[str, Any], status: int) -> None:
    sent = caller.send(toAgentId="b")
    ack = {"conversationId": sent["conversationId"], "messageId": sent["messageId"], "state": "answered"}
    answer = caller.post("/channel/acks", ack | {"actorId": "b", "actorType": "client"} | change)
    assert answer.status_code == status
    assert caller.get("/channel/conversations").json()[0].get("lastAckState") is None


def test_a_retry_counts_and_is_acked_as_queued(caller: Caller) -> None:
    sent = caller.send(toAgentId="b")
    answer = caller.post(f"/channel/messages/{sent['conversationId']}/{sent['messageId']}/retry")
    assert answer.json()["attemptCount"] == 2
    assert answer.json()["seq"] > sent["seq"]
    thread = caller.get(f"/channel/conversations/{sent['conversationId']}").json()
    assert [(ack["state"], ack["actorType"]) for ack in thread["acknowledgements"]] == [
        ("queued", "registry")
    ]
    assert caller.post(f"/channel/messages/{sent['conversationId']}/nobody/retry").status_code == 404


def test_suppression_is_an_agents_own_and_ends_with_the_next_message(caller: Caller) -> None:
    thread = caller.send(toAgentId="b")["conversationId"]
    place = f"/channel/conversations/{thread}"
    assert caller.post(f"{place}/suppress").status_code == 400
    assert caller.post(f"{place}/suppress", {"agentId": "b"}).json() == {"suppressed": True}

    assert caller.get("/channel/conversations", agentId="b").json() == []
    assert len(caller.get("/channel/conversations", agentId="a").json()) == 1
    assert caller.get(place, agentId="b").json()["suppressed"] is True
    assert caller.get(place, agentId="a").json()["suppressed"] is False

    assert caller.delete(f"{place}/suppress", agentId="b").json() == {"revived": True}
    assert caller.delete(f"{place}/suppress", agentId="b").json() == {"revived": False}
    assert caller.post(f"{place}/suppress", agentId="b").json() == {"suppressed": True}
    caller.send(conversationId=thread)
    assert len(caller.get("/channel/conversations", agentId="b").json()) == 1
    types = [event["type"] for event in caller.get("/channel/events", since=0).json()["events"]]
    assert types[-2:] == ["channel.conversation.revived", "channel.message"]
    assert caller.post("/channel/conversations/nowhere/suppress", {"agentId": "b"}).status_code == 404


def test_lists_are_paged_by_what_the_header_says(caller: Caller) -> None:
    sent = [caller.send(toAgentId="b", conversationId=f"c{number}")["messageId"] for number in range(5)]
    for path, expected in (("/channel/inbox", sent), ("/channel/conversations", list(reversed(sent)))):
        seen: list[str] = []
        query: dict[str, Any] = {"agentId": "b", "limit": 2}
        while True:
            answer = caller.get(path, **query)
            assert answer.headers["x-total-count"] == "5"
            seen += [one.get("messageId") or one["lastMessage"]["messageId"] for one in answer.json()]
            if "x-next-before" not in answer.headers:
                break
            query["before"] = answer.headers["x-next-before"]
        assert seen == expected


def test_a_long_thread_is_paged_from_its_end(caller: Caller) -> None:
    sent = [caller.send(conversationId="long")["messageId"] for _ in range(3)]
    newest = caller.get("/channel/conversations/long", limit=2)
    assert [message["messageId"] for message in newest.json()["messages"]] == sent[1:]
    older = caller.get("/channel/conversations/long", limit=2, before=newest.headers["x-next-before"])
    assert [message["messageId"] for message in older.json()["messages"]] == sent[:1]
    assert "x-next-before" not in older.headers


def test_conversations_by_what_they_are(caller: Caller) -> None:
    caller.send(conversationId="asked", toAgentId="b", expectsResponse=True)
    caller.send(conversationId="told", toAgentId="c", expectsResponse=False)

    def found(**query: str | int) -> list[str]:
        return [one["conversationId"] for one in caller.get("/channel/conversations", **query).json()]

    assert found() == ["told", "asked"]
    assert found(pending="true") == found(status="pending") == found(participant="b") == ["asked"]
    assert found(participant="c", pending="true") == found(archived="true") == found(status="failed") == []


@pytest.mark.parametrize(
    ("path", "query"),
    [
        ("/channel/inbox", {}),
        ("/channel/inbox", {"agentId": "a\nb"}),
        ("/channel/inbox", {"agentId": "b", "limit": "0"}),
        ("/channel/inbox", {"agentId": "b", "limit": "201"}),
        ("/channel/inbox", {"agentId": "b", "limit": "1.0"}),
        ("/channel/inbox", {"agentId": "b", "limit": "٣"}),
        ("/channel/inbox", {"agentId": "b", "before": "-1"}),
        ("/channel/inbox", {"agentId": "b", "view": "closed"}),
        ("/channel/conversations", {"status": "open"}),
        ("/channel/conversations", {"pending": "yes"}),
        ("/channel/conversations", {"before": "9" * 30}),
        ("/channel/events", {}),
        ("/channel/events", {"since": ""}),
        ("/channel/conversations/a%0ab", {}),
        ("/channel/conversations/%ff", {}),
    ],
)
def test_questions_that_cannot_be_answered(caller: Caller, path: str, query: dict[str, str]) -> None:
    answer = caller.get(path, **query)
    assert (answer.status_code, answer.json()["code"]) == (400, "invalid")


def test_ids_may_hold_what_a_path_gives_a_meaning(caller: Caller) -> None:
    strange = "a/b?c#d%2e..;ünï"
    sent = caller.send(conversationId=strange, messageId="../m", toAgentId="x/y")
    place = "/channel/conversations/a%2Fb%3Fc%23d%252e..%3B%C3%BCn%C3%AF"
    assert caller.get(place).json()["messages"][0]["messageId"] == sent["messageId"] == "../m"
    retried = caller.post(f"{place.replace('conversations', 'messages')}/..%2Fm/retry")
    assert retried.json()["attemptCount"] == 2
    assert len(caller.get("/channel/inbox", agentId="x/y").json()) == 1


def test_events_since_a_cursor(caller: Caller) -> None:
    first = caller.get("/channel/events", since=0).json()
    sent = [caller.send()["seq"] for _ in range(3)]
    page = caller.get("/channel/events", since=first["seq"], epoch=first["epoch"], limit=2).json()
    assert [event["seq"] for event in page["events"]] == sent[:2]
    assert (page["more"], page["seq"], page["epoch"]) == (True, sent[1], first["epoch"])
    rest = caller.get("/channel/events", since=page["seq"], limit=2).json()
    assert [event["data"]["seq"] for event in rest["events"]] == sent[2:]
    assert rest["more"] is False


@pytest.mark.parametrize("query", [{"since": 0, "epoch": "another"}, {"since": 2**52}])
def test_a_cursor_of_another_database_is_told(caller: Caller, query: dict[str, Any]) -> None:
    answer = caller.get("/channel/events", **query)
    assert (answer.status_code, answer.json()["code"]) == (409, "resync")


def test_notify_claude_shares_the_code_of_sending(registry: Running, caller: Caller) -> None:
    thread = caller.send(toAgentId="b")["conversationId"]
    caller.post(f"/channel/conversations/{thread}/suppress", {"agentId": "b"})
    with registry.connect(caller.identity) as socket:
        body = {
            "content": "look",
            "agentId": "a",
            "agentName": "Ana",
            "conversationId": thread,
            "messageId": "n",
        }
        answer = caller.post("/notify-claude", body)
        assert answer.json() == {
            "ok": True,
            "conversationId": thread,
            "messageId": "n",
            "deduplicated": False,
        }
        assert caller.post("/notify-claude", body).json()["deduplicated"] is True
        frames = socket.all_until_now()
    assert [frame["type"] for frame in frames] == [
        "channel.conversation.revived",
        "channel.message",
        "claude.notify",
    ]
    assert frames[1]["data"]["toAgentId"] == "claude"
    assert frames[2]["data"] == {
        "agentId": "a",
        "agentName": "Ana",
        "content": "look",
        "conversationId": thread,
        "messageId": "n",
    }
    assert caller.post("/notify-claude", {}).json()["error"].startswith("content is required")


def test_a_target_that_lives_elsewhere_is_refused_and_nothing_stored(
    registry: Running, caller: Caller, other: Caller
) -> None:
    registry.register("theirs", other.identity)
    answer = caller.post(
        "/channel/messages", {"fromAgentId": "a", "kind": "chat", "content": "x", "toAgentId": "theirs"}
    )
    assert (answer.status_code, answer.json()["code"]) == (403, "wrong_identity")
    assert caller.get("/channel/conversations").json() == []


def test_a_sender_over_its_rate_is_told_when_to_come_back(tmp_path_factory: pytest.TempPathFactory) -> None:
    with Running(tmp_path_factory.mktemp("slow"), send_rate_per_s=0.1, send_burst=2, inbox_limit=1) as slow:
        body = {"fromAgentId": "a", "kind": "chat", "content": "x"}
        statuses = [slow.http.post("/channel/messages", json=body).status_code for _ in range(3)]
        assert statuses == [201, 201, 429]
        refused = slow.http.post("/notify-claude", json={"agentId": "a", "content": "x"})
        assert (refused.status_code, refused.json()["code"]) == (429, "too_many")
        assert 1 <= int(refused.headers["retry-after"]) <= 10
        assert slow.hub.store.last_seq() == 2

        to_full = {"fromAgentId": "b", "kind": "chat", "content": "x", "toAgentId": "full"}
        assert slow.http.post("/channel/messages", json=to_full).status_code == 201
        full = slow.http.post("/channel/messages", json=to_full)
        assert (full.status_code, full.json()["code"]) == (429, "too_many")
        assert int(full.headers["retry-after"]) >= 1


def test_what_the_store_refuses_and_what_nobody_foresaw(
    registry: Running, caller: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fails(_write: object) -> None:
        raise raised

    monkeypatch.setattr(registry.hub, "write", fails)
    body = {"fromAgentId": "a", "kind": "chat", "content": "x"}
    raised: Exception = DiskFullError("There is no room left")
    answer = caller.post("/channel/messages", body)
    assert (answer.status_code, answer.json()["code"]) == (507, "disk_full")

    failures = registry.figures()["failures"]
    raised = RuntimeError("a secret of ours")
    answer = caller.post("/channel/messages", body)
    assert (answer.status_code, answer.json()["code"]) == (500, "internal")
    assert "secret" not in answer.text
    assert registry.figures()["failures"] == failures + 1


@pytest.mark.parametrize(
    ("method", "path", "status", "code"),
    [
        ("GET", "/nowhere", 404, "no_such_route"),
        ("GET", "/channel/conversations/", 404, "no_such_route"),
        ("PUT", "/channel/messages", 405, "method_not_allowed"),
        ("TRACE", "/agents", 405, "method_not_allowed"),
        ("GET", "/ws", 404, "no_such_route"),
    ],
)
def test_what_is_no_route(registry: Running, method: str, path: str, status: int, code: str) -> None:
    answer = registry.http.request(method, path)
    assert (answer.status_code, answer.json()["code"]) == (status, code)
    assert ("allow" in answer.headers) == (status == 405)


def test_pages_are_encoded_beside_the_event_loop(caller: Caller, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two hundred large messages take a second: on the loop all others would wait for them."""
    encoding: list[str] = []

    def noted(values: Iterable[object]) -> bytes:
        encoding.append(threading.current_thread().name)
        return encoded_list(values)

    monkeypatch.setattr(channel_routes, "encoded_list", noted)
    message = caller.send(toAgentId="b")
    thread = f"conversations/{message['conversationId']}"
    paths: dict[str, dict[str, str | int]] = {
        "inbox": {"agentId": "b"},
        "conversations": {},
        thread: {},
        "events": {"since": 0},
    }
    for path, query in paths.items():
        assert message["messageId"] in caller.get(f"/channel/{path}", **query).text
    assert len(encoding) == len(paths) + 1
    assert all(name.startswith("registry-read") for name in encoding)


def test_what_waits_to_be_stored_is_bounded(
    registry: Running, caller: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another process holds the database: a hundred requests of 8 MB each are no reason to end."""
    monkeypatch.setattr(hub, "IN_FLIGHT_BYTES", 100_000)
    caller.send(content="first")
    message = {"fromAgentId": "a", "kind": "chat", "content": "x" * 60_000}
    with closing(sqlite3.connect(registry.database, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with ThreadPoolExecutor(1) as pool:
            waiting = pool.submit(caller.post, "/channel/messages", message)
            registry.wait_for(lambda: registry.hub.store.waiting() or registry.hub._bytes)
            refused = caller.post("/channel/messages", message)
            assert (refused.status_code, refused.json()["code"]) == (429, "too_many")
            other.execute("ROLLBACK")
            assert waiting.result().status_code == 201
    assert registry.hub._bytes == 0
    caller.send(content="x" * 60_000)
