"""What a socket says and is told, over a real connection."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect

from agent_bridge.registry import strict_json, wire
from integration.registry.running import Running


@pytest.fixture(scope="module")
def registry(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with Running(tmp_path_factory.mktemp("registry"), message_bytes=200_000) as running:
        yield running


@pytest.fixture
def fresh(request: pytest.FixtureRequest) -> str:
    """An identity that no other test of this module uses."""
    return re.sub(r"[^A-Za-z0-9]", "-", request.node.name)[-40:].lstrip("-")


def _types(frames: list[dict[str, Any]]) -> list[str]:
    return [frame["type"] for frame in frames]


def test_the_snapshot_comes_first_and_says_where_things_are(registry: Running, fresh: str) -> None:
    registry.register("someone", fresh)
    stored = registry.post(fresh)

    with registry.connect(fresh) as socket:
        assert [row["agentId"] for row in socket.snapshot["agents"]] == ["someone"]
        assert socket.snapshot["seq"] >= stored["seq"]
        assert socket.snapshot["epoch"] == registry.hub.epoch


def test_saying_who_one_is_again_is_acknowledged(registry: Running, fresh: str) -> None:
    with registry.connect(fresh) as socket:
        first = socket.identify("me")
        assert (first["agentId"], first["identity"]) == ("me", fresh)

        assert socket.identify("me")["agentId"] == "me"
        assert socket.all_until_now() == []


def test_a_send_is_answered_after_its_commit(registry: Running, fresh: str) -> None:
    with registry.agent("me", fresh) as socket:
        socket.send("r1", content="stored?", toAgentId="you")
        sent = socket.until("channel.sent")["data"]

        assert sent["requestId"] == "r1"
        assert sent["deduplicated"] is False
        assert (sent["message"]["fromAgentId"], sent["message"]["content"]) == ("me", "stored?")
        thread = registry.http.get(
            f"/channel/conversations/{sent['message']['conversationId']}", headers=registry.headers(fresh)
        ).json()
        assert [message["messageId"] for message in thread["messages"]] == [sent["message"]["messageId"]]


def test_the_answer_holds_the_message_as_the_event_does(registry: Running, fresh: str) -> None:
    with registry.agent("me", fresh) as socket:
        socket.send(1, toAgentId="you", meta={"deep": [1, {"x": None}]})
        seen: list[dict[str, Any]] = []
        sent = socket.until("channel.sent", seen)

        (event,) = seen
        assert event["type"] == "channel.message"
        assert event["data"] == sent["data"]["message"]
        assert event["seq"] == event["data"]["seq"]


def test_many_sends_at_once_keep_their_order(registry: Running, fresh: str) -> None:
    count = 700
    with registry.agent("me", fresh) as socket, registry.agent("you", fresh, events="own") as target:
        for number in range(count):
            socket.send(number, content=str(number), toAgentId="you", conversationId="thread")

        answers = [socket.until("channel.sent")["data"] for _ in range(count)]
        told = [target.until("channel.message") for _ in range(count)]

    assert [answer["requestId"] for answer in answers] == list(range(count))
    assert [frame["data"]["content"] for frame in told] == [str(number) for number in range(count)]
    seqs = [frame["seq"] for frame in told]
    assert seqs == sorted(set(seqs))


def test_the_same_message_twice_is_one_event(registry: Running, fresh: str) -> None:
    with registry.agent("me", fresh) as socket, registry.agent("you", fresh) as target:
        for request in (1, 2):
            socket.send(request, messageId="same", toAgentId="you")
        answers = [socket.until("channel.sent")["data"] for _ in range(2)]

        assert [answer["deduplicated"] for answer in answers] == [False, True]
        assert answers[0]["message"] == answers[1]["message"]
        assert _types(target.all_until_now()) == ["channel.message"]


def test_over_http_the_same_message_twice_is_201_then_200_and_one_event(
    registry: Running, fresh: str
) -> None:
    with registry.agent("you", fresh) as target:
        draft = {"fromAgentId": "a", "kind": "chat", "content": "x", "messageId": "m", "toAgentId": "you"}
        codes = [
            registry.http.post("/channel/messages", json=draft, headers=registry.headers(fresh)).status_code
            for _ in range(2)
        ]

        assert codes == [201, 200]
        assert _types(target.all_until_now()) == ["channel.message"]


def test_nobody_gets_a_frame_twice(registry: Running, fresh: str) -> None:
    with (
        registry.agent("target", fresh) as target,
        registry.agent("other", fresh) as other,
        registry.connect(fresh) as silent,
    ):
        registry.post(fresh, toAgentId="target")

        for socket in (target, other, silent):
            assert _types(socket.all_until_now()) == ["channel.message"]


def test_own_is_what_concerns_the_agent_or_everybody(registry: Running, fresh: str) -> None:
    with registry.agent("me", fresh, events="own") as socket:
        registry.post(fresh, fromAgentId="a", toAgentId="b", content="not mine")
        registry.post(fresh, fromAgentId="a", toAgentId="me", content="mine")
        registry.post(fresh, fromAgentId="a", content="everybody's")

        told = [frame["data"]["content"] for frame in socket.all_until_now()]

    assert told == ["mine", "everybody's"]


def test_an_ack_is_answered_and_told(registry: Running, fresh: str) -> None:
    message = registry.post(fresh, toAgentId="me")
    with registry.agent("me", fresh) as socket, registry.connect(fresh) as other:
        ack = {
            "conversationId": message["conversationId"],
            "messageId": message["messageId"],
            "state": "displayed_to_client",
            "actorId": "me",
            "actorType": "client",
        }
        socket.say("channel.ack", requestId="a1", ack=ack)
        acked = socket.until("channel.acked")["data"]

        assert acked["requestId"] == "a1"
        assert acked["ack"]["state"] == "displayed_to_client"
        assert other.until("channel.ack")["data"] == acked["ack"]


def test_an_ack_for_an_unknown_message_is_an_error(registry: Running, fresh: str) -> None:
    with registry.connect(fresh) as socket:
        ack = {"conversationId": "c", "messageId": "m", "state": "queued", "actorId": "a"}
        socket.say("channel.ack", requestId=4, ack=ack | {"actorType": "client"})
        error = socket.until("channel.error")["data"]

        assert (error["requestId"], error["code"]) == (4, "unknown")


def test_a_suppressed_conversation_is_revived_before_its_message(registry: Running, fresh: str) -> None:
    message = registry.post(fresh, toAgentId="me", conversationId="quiet")
    answer = registry.http.post(
        "/channel/conversations/quiet/suppress", params={"agentId": "me"}, json={"agentId": "me"},
        headers=registry.headers(fresh),
    )  # fmt: skip
    assert answer.status_code == 200, answer.text
    with registry.agent("me", fresh) as socket:
        registry.post(fresh, toAgentId="me", conversationId=message["conversationId"])

        assert _types(socket.all_until_now()) == ["channel.conversation.revived", "channel.message"]


def test_an_answer_marks_what_it_answers(registry: Running, fresh: str) -> None:
    question = registry.post(fresh, fromAgentId="asker", toAgentId="me", expectsResponse=True)
    with registry.agent("asker", fresh) as asker, registry.agent("me", fresh) as socket:
        socket.send(1, replyTo=question["messageId"], toAgentId="asker", content="yes")
        seen: list[dict[str, Any]] = []
        ack = asker.until("channel.ack", seen)["data"]

        assert "yes" in [frame["data"].get("content") for frame in seen]
        assert (ack["messageId"], ack["state"]) == (question["messageId"], "answered")


@pytest.mark.parametrize(
    "text", ["no json", "[]", "{}", '{"type": 5}', '{"type":"snapshot"}', "", "\x00", "NaN"]
)
def test_what_isnt_understood_is_ignored_and_counted(registry: Running, fresh: str, text: str) -> None:
    with registry.connect(fresh) as socket:
        before = registry.figures()["ignored"]
        socket.connection.send(text)

        assert socket.all_until_now() == []
        assert registry.figures()["ignored"] == before + 1


def test_binary_frames_are_ignored(registry: Running, fresh: str) -> None:
    with registry.connect(fresh) as socket:
        socket.connection.send(b'{"type":"identify","agentId":"me"}')

        assert socket.all_until_now() == []
        assert not registry.hub.reaches(fresh, "me")


@pytest.mark.parametrize(
    ("message", "code"),
    [
        ('{"kind":"chat","content":"x","fromAgentId":"a","fromAgentId":"b"}', "invalid"),
        ('{"kind":"chat","content":"\\ud800","fromAgentId":"a"}', "invalid"),
        ('{"kind":"shout","content":"x","fromAgentId":"a"}', "invalid"),
        ('{"kind":"chat","fromAgentId":"a"}', "invalid"),
        ('"text"', "invalid"),
        ("null", "invalid"),
    ],
)
def test_a_send_that_cant_be_is_answered_with_the_reason(
    registry: Running, fresh: str, message: str, code: str
) -> None:
    with registry.connect(fresh) as socket:
        socket.connection.send(f'{{"type":"channel.send","requestId":"r","message":{message}}}')
        error = socket.until("channel.error")["data"]

        assert (error["requestId"], error["code"]) == ("r", code)
        assert error["error"]


def test_a_message_in_pieces_is_one_message(registry: Running, fresh: str) -> None:
    with registry.connect(fresh) as socket:
        socket.connection.send(iter(['{"type":"ident', 'ify","agent', 'Id":"me"}']))

        assert socket.until("identified")["agentId"] == "me"


def test_too_large_a_frame_ends_its_socket_only(registry: Running, fresh: str) -> None:
    with registry.agent("other", fresh) as other:
        socket = registry.connect(fresh)
        socket.connection.send("x" * 300_000)

        assert socket.closing()[0] == 1009
        registry.post(fresh, toAgentId="other")
        assert other.until("channel.message")


def test_an_agent_message_goes_to_its_target_and_to_the_others_once(registry: Running, fresh: str) -> None:
    with (
        registry.agent("me", fresh) as socket,
        registry.agent("you", fresh) as target,
        registry.connect(fresh) as other,
    ):
        data = {"toAgentId": "you", "type": "notification", "payload": {"n": 1}}
        socket.say("agent.message", data=data)

        for told in (target, other):
            event = told.until("agent.message")
            told_of = event["data"]
            assert told_of.pop("timestamp") > 0
            assert told_of == data | {"fromAgentId": "me"}
            assert "seq" not in event
            assert told.all_until_now() == []


@pytest.mark.parametrize(
    "data", [None, [], {}, {"toAgentId": "you"}, {"toAgentId": 5, "type": "notification"}]
)
def test_an_agent_message_that_cant_be_is_told_why(registry: Running, fresh: str, data: object) -> None:
    with registry.agent("me", fresh) as socket, registry.connect(fresh) as other:
        socket.say("agent.message", data=data)
        error = socket.until("error")["data"]

        assert (error["code"], error["about"]) == ("invalid", "agent.message")
        assert other.all_until_now() == []


def test_a_heartbeat_keeps_the_row_and_without_one_it_says_so(registry: Running, fresh: str) -> None:
    with registry.agent("me", fresh) as socket, registry.connect(fresh) as other:
        socket.say("heartbeat")
        error = socket.until("error")["data"]
        assert (error["code"], error["about"]) == ("unknown", "heartbeat")

        registry.register("me", fresh)
        socket.say("heartbeat")
        assert other.until("agent.heartbeat")["data"]["agentId"] == "me"


# The wall between identities.


def test_nothing_of_one_identity_reaches_a_socket_of_another(registry: Running, fresh: str) -> None:
    with registry.agent("me", f"{fresh}.a") as ours, registry.agent("me", f"{fresh}.b") as theirs:
        registry.register("session", f"{fresh}.a")
        registry.post(f"{fresh}.a", toAgentId="me")
        theirs.say("agent.message", data={"toAgentId": "me", "type": "notification", "payload": {}})
        assert theirs.until("agent.message")

        assert _types(ours.all_until_now()) == ["agent.registered", "channel.message"]
        assert theirs.all_until_now() == []


def test_a_message_to_a_session_of_another_identity_is_refused(registry: Running, fresh: str) -> None:
    registry.register("theirs", f"{fresh}.b")
    with registry.agent("me", f"{fresh}.a") as socket:
        socket.send(1, toAgentId="theirs")
        assert socket.until("channel.error")["data"]["code"] == "wrong_identity"

        socket.say("agent.message", data={"toAgentId": "theirs", "type": "notification", "payload": {}})
        assert socket.until("error")["data"]["code"] == "wrong_identity"


def test_a_message_of_another_identity_than_the_sockets_is_refused(registry: Running, fresh: str) -> None:
    with registry.agent("me", fresh) as socket:
        socket.send(1, toAgentId="you", identity="elsewhere")

        assert socket.until("channel.error")["data"]["code"] == "invalid"


def test_identity_can_be_named_by_identify_where_the_upgrade_named_none(
    registry: Running, fresh: str
) -> None:
    registry.register("neighbour", fresh)
    with registry.connect() as socket:
        assert "neighbour" not in [row["agentId"] for row in socket.snapshot["agents"]]

        assert socket.identify("me", identity=fresh)["identity"] == fresh

        snapshot = socket.until("snapshot")
        assert [row["agentId"] for row in snapshot["agents"]] == ["neighbour"]
        registry.post("global", content="not for me")
        registry.post(fresh, content="for me")
        assert [frame["data"]["content"] for frame in socket.all_until_now()] == ["for me"]


def test_identity_named_at_the_upgrade_cant_be_left(registry: Running, fresh: str) -> None:
    with registry.connect(fresh) as socket:
        socket.say("identify", agentId="me", identity="elsewhere")
        error = socket.until("error")["data"]

        assert (error["code"], error["about"]) == ("invalid", "identify")
        assert not registry.hub.reaches("elsewhere", "me")


def test_nobody_but_the_dashboard_may_ask_for_all_identities(registry: Running) -> None:
    with pytest.raises(InvalidStatus) as refused:
        registry.connect("*")

    assert refused.value.response.status_code == 403


def test_the_dashboard_hears_all_identities_and_is_replayed_all(registry: Running, fresh: str) -> None:
    code = registry.http.post("/dashboard/codes").json()["code"]
    cookie = registry.http.get(f"/dashboard/login?code={code}", headers={"Authorization": ""}).cookies
    headers = {"Cookie": "; ".join(f"{name}={value}" for name, value in cookie.items())}
    headers["Origin"] = f"http://127.0.0.1:{registry.port}"
    since = registry.hub.seq
    registry.post(f"{fresh}.a", content="missed a")
    registry.post(f"{fresh}.b", content="missed b")
    with registry.connect(query="identity=*&events=none", additional_headers=headers) as dashboard:
        dashboard.identify("client-dashboard-ui", since=since, epoch=registry.hub.epoch)
        seen: list[dict[str, Any]] = []
        dashboard.until("replayed", seen)
        assert [frame["data"]["content"] for frame in seen] == ["missed a", "missed b"]

        registry.post(f"{fresh}.a", content="live a")
        registry.register("someone", f"{fresh}.b")
        assert _types(dashboard.all_until_now()) == ["channel.message", "agent.registered"]
        # What it sends needs an identity of its own, or goes to the default one.
        dashboard.send(1, fromAgentId="client-dashboard-ui", toAgentId="x", identity=f"{fresh}.b")
        assert dashboard.until("channel.sent")["data"]["message"]["identity"] == f"{fresh}.b"


def test_without_the_token_there_is_no_socket(registry: Running) -> None:
    before = registry.figures()["open"]
    with pytest.raises(InvalidStatus) as refused:
        registry.connect(query="events=bad")
    assert refused.value.response.status_code == 400

    with (
        pytest.raises(InvalidStatus) as refused,
        connect(f"ws://127.0.0.1:{registry.port}/ws"),
    ):
        pass
    assert refused.value.response.status_code == 401
    assert registry.figures()["open"] == before


# Limits and failures.


def test_a_sender_over_its_rate_is_told_and_the_others_go_on(tmp_path: Path) -> None:
    with (
        Running(tmp_path, send_rate_per_s=0.001, send_burst=3) as registry,
        registry.agent("fast") as fast,
        registry.agent("calm") as calm,
    ):
        for number in range(5):
            fast.send(number, toAgentId="calm")
        answers: dict[int, str] = {}
        while len(answers) < 5:
            frame = fast.next()
            if frame["type"] != "channel.message":
                answers[frame["data"]["requestId"]] = frame["type"]
        assert [answers[number] for number in range(5)] == ["channel.sent"] * 3 + ["channel.error"] * 2

        calm.send(1, toAgentId="fast")
        assert calm.until("channel.sent")["data"]["requestId"] == 1


def test_a_full_inbox_is_told_to_the_sender_and_nothing_is_stored(tmp_path: Path) -> None:
    with Running(tmp_path, inbox_limit=2) as registry, registry.agent("me") as socket:
        for number in range(3):
            socket.send(number, toAgentId="you", expectsResponse=True, messageId=str(number))
        error = socket.until("channel.error")["data"]

        assert (error["requestId"], error["code"]) == (2, "too_many")
        assert registry.on_loop(lambda: registry.hub.store.message("global", "2")) is None
        assert registry.on_loop(lambda: registry.hub.store.message("global", "1")) is not None


def test_a_failure_of_ours_ends_that_socket_and_no_other(
    registry: Running, fresh: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with registry.agent("other", fresh) as other:
        failures = registry.figures()["failures"]
        socket = registry.agent("me", fresh)
        with monkeypatch.context() as patched:
            patched.setattr(registry.hub.directory, "heartbeat", _fail)
            socket.say("heartbeat")
            assert socket.closing()[0] == 1011

        assert registry.figures()["failures"] == failures + 1
        registry.post(fresh, toAgentId="other")
        assert other.until("channel.message")


def test_a_socket_that_cant_be_written_to_is_no_others_trouble(
    registry: Running, fresh: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = registry.agent("broken", fresh)
    with registry.agent("me", fresh) as socket, registry.agent("other", fresh) as other:
        peer = registry.hub.audience.speaker(fresh, "broken")
        assert peer is not None
        with monkeypatch.context() as patched:
            patched.setattr(peer.connection, "put", _fail)
            socket.send("r", toAgentId="broken")

            assert socket.until("channel.sent")["data"]["requestId"] == "r"
            assert other.until("channel.message")
            registry.wait_for(lambda: not registry.hub.reaches(fresh, "broken"))
    broken.connection.socket.close()


def _fail(*_args: object) -> None:
    raise RuntimeError("not foreseen")


def test_large_json_is_read_beside_the_event_loop_and_in_order(
    registry: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Eight megabytes of it take a third of a second, in which all others would wait."""
    reading: list[tuple[int, bool]] = []

    def noted(data: Any) -> Any:  # noqa: ANN401
        reading.append((len(data), threading.current_thread() is registry._thread))
        return read(data)

    read = strict_json.read
    monkeypatch.setattr(strict_json, "read", noted)
    monkeypatch.setattr(wire, "QUICK_BYTES", 50_000)
    large = "x" * 100_000
    with registry.agent("me", "large") as socket:
        socket.send(1, toAgentId="b", content=large)
        socket.send(2, toAgentId="b", content="small")
        socket.connection.send('{"type":"channel.send","requestId":3,"requestId":3,"a":"' + large + '"}')
        socket.send(4, toAgentId="b", content="small")
        answers: list[dict[str, Any]] = []
        while len(answers) < 4:
            frame = socket.next()
            if frame["type"] in ("channel.sent", "channel.error"):
                answers.append(frame)
    registry.post("large", content=large)
    registry.post("large", content="small")

    sent = [frame["data"]["requestId"] for frame in answers if frame["type"] == "channel.sent"]
    assert sent == [1, 2, 4]
    assert "key twice" in next(frame for frame in answers if frame["data"]["requestId"] == 3)["data"]["error"]
    assert {size > 50_000 for size, on_loop in reading if on_loop} == {False}
    assert len([size for size, on_loop in reading if size > 50_000 and not on_loop]) == 3
