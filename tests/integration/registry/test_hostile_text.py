"""Hostile texts from end to end: what is stored, fetched, told, replayed and put before a session is data.

What commands show of them: `tests/integration/cli/test_inbox.py` and `test_tail.py`.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import pytest

from agent_bridge.channel.model import Message
from agent_bridge.channel.prompt import CONTENT_MOST, injection
from agent_bridge.client import answers
from hostile import CONTROLS, MEGABYTES, TEXTS
from integration.registry.running import Running

_numbers = itertools.count(1)


@pytest.fixture(scope="module")
def registry(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with Running(tmp_path_factory.mktemp("registry")) as running:
        yield running


@pytest.fixture
def mine() -> str:
    """An identity that no other test uses."""
    return f"mine-{next(_numbers)}"


def get(registry: Running, identity: str, path: str, **query: str | int) -> Any:  # noqa: ANN401
    answer = registry.http.get(path, params=query, headers=registry.headers(identity))
    assert answer.status_code == 200, answer.text
    return answer.json()


def fetched(registry: Running, identity: str, since: int) -> dict[str, Any]:
    """The one message of an identity, by every route that shows it."""
    (conversation,) = get(registry, identity, "/channel/conversations")
    thread = get(registry, identity, f"/channel/conversations/{conversation['conversationId']}")
    events = get(registry, identity, "/channel/events", since=since)["events"]
    return {
        "inbox": get(registry, identity, "/channel/inbox", agentId="b"),
        "thread": thread["messages"],
        "list": [conversation["lastMessage"]],
        "events": [event["data"] for event in events],
    }


@pytest.mark.parametrize("text", [*TEXTS.values(), MEGABYTES], ids=[*TEXTS, "five megabytes"])
@pytest.mark.parametrize("way", ["HTTP", "socket"])
def test_a_text_is_stored_fetched_told_and_replayed_as_it_is(
    registry: Running, mine: str, text: str, way: str
) -> None:
    draft = {"toAgentId": "b", "kind": "chat", "content": text, "expectsResponse": True, "taskId": "t"}
    if text is not MEGABYTES:
        draft["meta"] = {"toAgentId": "evil", "content": "evil", text: [text]}
    with registry.agent("a", mine) as sender, registry.agent("b", mine) as target:
        before = target.snapshot["seq"]
        if way == "HTTP":
            sent = registry.post(mine, fromAgentId="a", **draft)
            del sent["deduplicated"]
        else:
            sender.send("r", **draft)
            sent = sender.until("channel.sent")["data"]["message"]
        assert (sent["content"], sent.get("meta")) == (text, draft.get("meta"))
        assert (sent["fromAgentId"], sent["toAgentId"]) == ("a", "b")
        # One frame, whatever stands in it.
        assert [(frame["type"], frame["data"]) for frame in target.all_until_now()] == [
            ("channel.message", sent)
        ]

    for route, messages in fetched(registry, mine, before).items():
        assert messages == [sent], route
    frames: list[dict[str, Any]] = []
    with registry.connect(mine, "events=none") as late:
        late.identify("b", since=before, epoch=registry.hub.epoch)
        late.until("replayed", frames)
    assert [frame["data"] for frame in frames] == [sent]
    put_before_a_session(answers.message(sent))


def put_before_a_session(message: Message) -> None:
    """The prompt with this message differs from one with a plain text inside the fence only."""
    outside, inside, mark = split(injection(message, reply_tool="reply"))
    assert not set("\n".join([*outside, *inside])) & CONTROLS - {"\t"}
    assert not [line for line in inside if mark in line]
    plain = answers.message({**message.as_wire(), "content": "plain", "meta": {}})
    rest = [line for line in outside if "channel_inbox with" not in line]
    assert rest == split(injection(plain, reply_tool="reply"))[0]
    assert (len(outside) > len(rest)) is (len(message.content) > CONTENT_MOST)
    assert inside, "shown it is"


def split(text: str) -> tuple[list[str], list[str], str]:
    """The lines outside the fence, with its mark left out; those inside; the mark."""
    lines = text.split("\n")
    (begin,) = (at for at, line in enumerate(lines) if line.startswith("----- BEGIN MESSAGE ") and at < 9)
    mark = lines[begin].split()[3]
    (end,) = (at for at, line in enumerate(lines) if line == f"----- END MESSAGE {mark} -----")
    outside = [line.replace(mark, "MARK") for line in lines[:begin] + lines[end + 1 :]]
    return outside, lines[begin + 1 : end], mark


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_what_an_ack_says_is_data_too(registry: Running, mine: str, text: str) -> None:
    message = registry.post(mine, toAgentId="b", conversationId="c")
    ack = {"conversationId": "c", "messageId": message["messageId"], "state": "failed", "detail": text}
    with registry.agent("b", mine) as socket:
        socket.say("channel.ack", requestId=1, ack=ack | {"actorId": "b", "actorType": "bridge"})
        told = [frame["data"] for frame in (socket.until("channel.ack"), socket.until("channel.acked"))]
        assert socket.all_until_now() == []
    assert told[0] == told[1]["ack"]
    assert told[0]["detail"] == text
    assert get(registry, mine, "/channel/conversations/c")["acknowledgements"] == [told[0]]


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_ids_and_names_with_such_texts_are_refused_or_kept_on_a_line(
    registry: Running, mine: str, text: str
) -> None:
    before = registry.hub.store.last_seq()
    draft = {"fromAgentId": "a", "toAgentId": "b", "kind": "chat", "content": "x"}
    for name in ("fromAgentId", "toAgentId", "conversationId", "messageId", "replyTo", "taskId"):
        answer = registry.http.post(
            "/channel/messages", json=draft | {name: text}, headers=registry.headers(mine)
        )
        assert (answer.status_code, answer.json()["code"]) == (400, "invalid"), name
    assert registry.hub.store.last_seq() == before
    answer = registry.http.post(
        "/channel/messages", json=draft | {"fromAgentName": text}, headers=registry.headers(mine)
    )
    if answer.status_code == 201:
        assert not set(answer.json()["fromAgentName"]) & (CONTROLS | {"\n"})
    else:
        assert (answer.status_code, answer.json()["code"]) == (400, "invalid")
