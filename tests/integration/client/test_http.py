"""Asking the registry over HTTP: every route of the real one, and what else may listen on its port."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from agent_bridge.channel.errors import (
    ChannelError,
    InvalidError,
    TooLargeError,
    TooManyError,
    UnknownError,
    WrongIdentityError,
)
from agent_bridge.channel.model import AckState, ActorType, ConversationStatus, Draft, Kind
from agent_bridge.channel.writes import Acknowledge
from agent_bridge.client.address import Address
from agent_bridge.client.answers import AnswerError
from agent_bridge.client.http import Registry
from agent_bridge.client.requests import Registration
from agent_bridge.errors import NotRunningError
from integration.registry.running import Running


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    place = tmp_path_factory.mktemp("registry")
    with Running(place, inbox_limit=50, message_bytes=100_000) as started:
        yield started


@pytest.fixture
def registry(running: Running) -> Iterator[Registry]:
    with Registry(address(running)) as asked:
        yield asked


def address(running: Running) -> Address:
    return Address(f"http://127.0.0.1:{running.port}", running.token.current().decode())


def draft(content: str = "hello", to: str | None = "reader", **more: str) -> Draft:
    fields: dict[str, Any] = {"from_agent_id": "writer", "conversation_id": "c", "identity": "global"} | more
    return Draft(kind=Kind.CHAT, content=content, to_agent_id=to, expects_response=True, **fields)


def ack(message_id: str, state: AckState, conversation_id: str = "c") -> Acknowledge:
    return Acknowledge(
        identity="global",
        conversation_id=conversation_id,
        message_id=message_id,
        state=state,
        actor_id="reader",
        actor_type=ActorType.CLIENT,
    )


def test_the_directory(registry: Registry) -> None:
    row = registry.register(
        Registration(
            agent_id="client/with a slash?",
            name="Reader",
            project_path="/projects/green",
            client_name="tester",
            more={"projectType": "python"},
        )
    )
    assert (row["agentId"], row["healthy"], row["projectType"]) == ("client/with a slash?", True, "python")
    assert registry.agent("client/with a slash?")["name"] == "Reader"
    assert [one["name"] for one in registry.agents(project="GREEN", healthy=True, entry_type="client")] == [
        "Reader"
    ]
    assert registry.agents(entry_type="agent") == []
    assert registry.heartbeat("client/with a slash?") > 0
    assert registry.health()["status"] == "ok"
    assert (
        registry.agent_message(
            "client/with a slash?", {"fromAgentId": "a", "type": "notification", "payload": {}}
        )
        is False
    )
    assert registry.deregister("client/with a slash?") is True
    assert registry.deregister("client/with a slash?") is False
    with pytest.raises(UnknownError):
        registry.agent("client/with a slash?")
    with pytest.raises(UnknownError):
        registry.heartbeat("client/with a slash?")


def test_a_message_from_send_to_answer(registry: Registry) -> None:
    posted = registry.send(draft("Is it green?", message_id="question"))
    assert not posted.deduplicated
    assert registry.send(draft("Is it green?", message_id="question")).deduplicated
    assert [one.content for one in registry.inbox("reader").items] == ["Is it green?"]
    assert registry.ack(ack("question", AckState.DISPLAYED)).state is AckState.DISPLAYED
    assert registry.message("question").state is AckState.DISPLAYED
    assert registry.retry("c", "question").attempt_count == 2
    page = registry.conversations(pending=True, participant="reader")
    assert [one.conversation_id for one in page.items] == ["c"]
    assert page.total == 1
    assert registry.suppress("c", "reader") is True
    assert registry.conversations(agent_id="reader").items == ()
    assert registry.conversation("c", agent_id="reader").suppressed is True
    assert registry.revive("c", "reader") is True
    assert registry.revive("c", "reader") is False
    registry.send(draft("Yes.", to="writer", from_agent_id="reader", reply_to="question"))
    thread = registry.conversation("c")
    assert [one.content for one in thread.messages] == ["Is it green?", "Yes."]
    assert thread.acks[-1].state is AckState.ANSWERED
    assert registry.inbox("reader").items == ()
    assert registry.conversations(status=ConversationStatus.PENDING).items[0].last_message.content == "Yes."


def test_lists_are_paged(registry: Registry) -> None:
    for number in range(5):
        registry.send(draft(str(number), to="paged", conversation_id=f"paged-{number}"))
    first = registry.inbox("paged", limit=2)
    assert [one.content for one in first.items] == ["0", "1"]
    second = registry.inbox("paged", limit=2, before=first.next_before)
    last = registry.inbox("paged", limit=2, before=second.next_before)
    assert [one.content for one in (*second.items, *last.items)] == ["2", "3", "4"]
    assert last.next_before is None
    assert first.total == 5
    page = registry.conversations(participant="paged", limit=3)
    rest = registry.conversations(participant="paged", limit=3, before=page.next_before)
    assert [one.last_message.content for one in (*page.items, *rest.items)] == ["4", "3", "2", "1", "0"]


def test_events_after_a_cursor(registry: Registry) -> None:
    before = registry.send(draft(to="cursor", conversation_id="cursor")).message.seq
    registry.send(draft("after", to="cursor", conversation_id="cursor"))
    told = registry.events(before)
    assert [event["data"]["content"] for event in told.items] == ["after"]
    assert not told.more
    with pytest.raises(ChannelError) as caught:
        registry.events(before, epoch="another database")
    assert caught.value.code == "resync"


def test_other_routes(registry: Registry) -> None:
    conversation_id, message_id = registry.notify("look", toAgentId="reader-2", agentId="server")
    assert registry.conversation(conversation_id).messages[0].message_id == message_id
    registry.task_event({"agentId": "a", "agentName": "A", "taskId": "t", "state": "working", "timestamp": 1})
    assert len(registry.dashboard_code()) > 10


def test_errors_come_back_as_their_class(running: Running, registry: Registry) -> None:
    running.register("elsewhere", identity="others")
    with pytest.raises(WrongIdentityError):
        registry.send(draft(to="elsewhere"))
    with pytest.raises(UnknownError):
        registry.conversation("no such")
    with pytest.raises(UnknownError):
        registry.ack(ack("no such", AckState.DISPLAYED))
    with pytest.raises(TooLargeError):
        registry.send(draft("x" * 200_000))
    with pytest.raises(InvalidError):
        registry.inbox("bad\nid")
    with pytest.raises(InvalidError):
        Registry(address(running), "not an identity")
    for number in range(50):
        registry.send(draft(str(number), to="full", conversation_id="full"))
    with pytest.raises(TooManyError):
        registry.send(draft("one too many", to="full", conversation_id="full"))
    assert registry.inbox("full").total == 50


def test_identities_see_their_own(running: Running, registry: Registry) -> None:
    registry.send(draft(to="walled", conversation_id="walled"))
    with Registry(address(running), "others") as other:
        assert other.inbox("walled").items == ()
        with pytest.raises(UnknownError):
            other.conversation("walled")
        with pytest.raises(InvalidError):
            other.send(draft(to="walled"))


def test_a_wrong_token_is_told(running: Running) -> None:
    with (
        Registry(Address(f"http://127.0.0.1:{running.port}", "wrong")) as asked,
        pytest.raises(ChannelError) as caught,
    ):
        asked.agents()
    assert caught.value.code == "unauthorized"


def test_neither_proxies_nor_netrc_of_the_environment_are_used(
    running: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    with Registry(address(running)) as asked:
        assert asked.agents(project="no such") == []


def test_nobody_there() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    with (
        Registry(Address(f"http://127.0.0.1:{port}", "t")) as asked,
        pytest.raises(NotRunningError) as caught,
    ):
        asked.health()
    assert "agent-bridge up" in caught.value.remedy


@contextlib.contextmanager
def answering(answer: bytes, *, hold: bool = False) -> Iterator[Address]:
    """Something on a port that says `answer` to whatever it is asked."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        done = threading.Event()

        def serve() -> None:
            peer, _ = listener.accept()
            with peer:
                peer.recv(65536)
                with contextlib.suppress(OSError):
                    peer.sendall(answer)
                if hold:
                    done.wait(10)

        thread = threading.Thread(target=serve)
        thread.start()
        yield Address(f"http://127.0.0.1:{listener.getsockname()[1]}", "t")
        done.set()
        thread.join(10)


def http(body: bytes, status: str = "200 OK", *more: bytes) -> bytes:
    head = [b"HTTP/1.1 " + status.encode(), b"Content-Length: %d" % len(body), *more]
    return b"\r\n".join([*head, b"", body])


@pytest.mark.parametrize(
    "answer",
    [
        http(b"<html>hello</html>"),
        http(b"[1, 2]"),
        http(b'"text"'),
        http(b"[" * 100_000),
        http(b"", "302 Found", b"Location: http://127.0.0.1:1/"),
        http(b"\xff\xfe"),
    ],
    ids=["page", "list", "text", "nested", "redirect", "bytes"],
)
def test_something_else_on_the_port_is_told_from_the_registry(answer: bytes) -> None:
    with answering(answer) as where, Registry(where) as asked, pytest.raises(AnswerError):
        asked.health()


@pytest.mark.parametrize(
    "answer", [b"", b"SSH-2.0-OpenSSH\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nx"]
)
def test_a_broken_answer_is_no_answer(answer: bytes) -> None:
    with answering(answer) as where, Registry(where) as asked, pytest.raises(NotRunningError):
        asked.health()


def test_who_takes_too_long_does_not_answer() -> None:
    with (
        answering(b"", hold=True) as where,
        Registry(where, timeout=0.1) as asked,
        pytest.raises(NotRunningError, match="doesn't answer"),
    ):
        asked.health()


def test_an_error_of_tomorrow_keeps_its_code_and_says_it_safely() -> None:
    body = b'{"error": "\\u001b[31mNo\\u0007", "code": "of_tomorrow"}'
    with (
        answering(http(body, "418 No")) as where,
        Registry(where) as asked,
        pytest.raises(ChannelError) as caught,
    ):
        asked.health()
    assert (caught.value.code, caught.value.status) == ("of_tomorrow", 418)
    assert caught.value.title == " [31mNo "
    assert caught.value.as_dict()["code"] == "of_tomorrow"


def test_an_answer_without_end_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agent_bridge.client.exchange.ANSWER_BYTES", 1000)
    with (
        answering(http(b"[" + b" " * 5000 + b"]")) as where,
        Registry(where) as asked,
        pytest.raises(AnswerError, match="too long"),
    ):
        asked.agents()


def test_an_id_of_dots_is_an_id(registry: Registry) -> None:
    for name in (".", ".."):
        registry.send(draft("Dots?", message_id=name, conversation_id=name))
        assert registry.message(name).content == "Dots?"
        assert [one.message_id for one in registry.conversation(name).messages] == [name]
