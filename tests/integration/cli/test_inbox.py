"""`inbox` and `conversations`, against a real service."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from agent_bridge.channel.model import AckState, ActorType, Draft, Kind, Message
from agent_bridge.channel.writes import Acknowledge
from agent_bridge.cli.person import person

from .channel_rig import Channel, run

Say = Callable[..., Message]
HOSTILE = "----- END MESSAGE -----\n\x1b]0;owned\x07\x1b[2J\u202eevil\x00\r\n2026-01-01 00:00:00  root -> you"


@pytest.fixture
def identity(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """An identity of its own for each test, so that none sees another's messages."""
    name = f"i{abs(hash(request.node.name))}"
    monkeypatch.setenv("AGENT_BRIDGE_IDENTITY", name)
    return name


@pytest.fixture
def say(channel: Channel, identity: str) -> Say:
    """Has an agent write to the person (or, with `to`, to somebody else)."""

    def say(content: str, **fields: object) -> Message:
        draft = Draft(
            **{
                "identity": identity,
                "from_agent_id": "client-claude-1",
                "from_agent_name": "Claude",
                "to_agent_id": person(identity).agent_id,
                "kind": Kind.CHAT,
                "content": content,
                **fields,
            }  # type: ignore[arg-type]
        )
        with channel.registry(identity) as registry:
            return registry.send(draft).message

    return say


def _contents(*words: str) -> list[str]:
    return [message["content"] for message in run("inbox", "--json", *words).json["data"]["messages"]]


def test_an_empty_one(channel: Channel, identity: str) -> None:
    ran = run("inbox")
    assert (ran.code, ran.out, ran.err) == (0, "", "Nothing awaits you.\n")
    assert run("conversations").err == "There are no such conversations.\n"


def test_what_is_shown_counts_as_displayed(say: Say, channel: Channel, identity: str) -> None:
    question = say("Shall I?", expects_response=True)
    news = say("FYI: done.", expects_response=False)
    peeked = run("inbox", "--peek", "--json").json["data"]
    assert peeked["marked"] == []
    assert peeked["open"] == 2
    ran = run("inbox")
    assert ran.out.index("    Shall I?") < ran.out.index("    FYI: done.")
    assert "agent-bridge reply" in ran.err
    assert _contents() == ["Shall I?"]  # it still awaits an answer
    assert _contents("--all") == ["Shall I?", "FYI: done."]
    with channel.registry(identity) as registry:
        (ack,) = registry.conversation(news.conversation_id).acks
    assert (ack.state, ack.actor_id) == (AckState.DISPLAYED, person(identity).agent_id)
    assert run("reply", question.message_id, "Do.").code == 0
    assert _contents() == []


def test_another_ones_inbox_is_left_as_it_is(say: Say) -> None:
    say("For somebody else.", to_agent_id="client-other-1", expects_response=False)
    for _ in range(2):
        assert _contents("--as", "client-other-1") == ["For somebody else."]
    assert _contents() == []


def test_a_name_is_enough_for_another_ones(say: Say, channel: Channel, identity: str) -> None:
    with channel.agent("quay", identity=identity) as agent:
        say("For it.", to_agent_id=agent, expects_response=True)
        for words in (
            ("inbox", "--as", "claude-code in quay"),
            ("conversations", "--participant", agent[:20]),
        ):
            assert "For it." in run(*words).out, words


def test_a_broadcast_is_in_everybodys_until_they_saw_it(say: Say) -> None:
    say("To all.", to_agent_id=None, expects_response=False)
    assert _contents() == ["To all."]
    assert _contents() == []
    assert _contents("--as", "client-other-1") == ["To all."]


def test_hostile_text_is_shown_as_text(say: Say) -> None:
    say(HOSTILE, expects_response=True)
    ran = run("inbox")
    assert not [sign for sign in ran.out if sign in "\x1b\x07\u202e\r\x00"]
    assert "\\x1b]0;owned\\x07\\x1b[2J\\u202eevil\\x00\n" in ran.out
    assert "\n    2026-01-01 00:00:00  root -> you" in ran.out
    raw = run("inbox", "--json")
    assert raw.out.isascii()
    assert raw.json["data"]["messages"][0]["content"] == HOSTILE


def test_a_long_text_is_cut_unless_asked_for(say: Say) -> None:
    say("x" * 5000)
    assert "and 3000 characters more: `--full`" in run("inbox", "--peek").out
    assert "x" * 5000 in run("inbox", "--peek", "--full").out


def test_pages(say: Say) -> None:
    for number in range(5):
        say(f"Number {number}?")
    first = run("inbox", "--limit", "2", "--json").json["data"]
    assert [message["content"] for message in first["messages"]] == ["Number 0?", "Number 1?"]
    second = run("inbox", "--limit", "2", "--before", first["next"], "--json").json["data"]
    assert [message["content"] for message in second["messages"]] == ["Number 2?", "Number 3?"]
    last = run("inbox", "--limit", "2", "--before", second["next"], "--json").json["data"]
    assert [message["content"] for message in last["messages"]] == ["Number 4?"]
    assert last["next"] is None
    assert f"--before {first['next']}" in run("inbox", "--limit", "2").err


def test_what_is_wrong_usage(channel: Channel) -> None:
    for words in (
        ("inbox", "--all", "--expired"),
        ("inbox", "--limit", "0"),
        ("inbox", "--before", "x"),
        ("conversations", "--status", "odd"),
        ("conversations", "--acks"),
        ("conversations", "some", "--pending"),
    ):
        assert run(*words).code == 2, words


def test_the_list_of_conversations(say: Say, channel: Channel, identity: str) -> None:
    older = say("Older?", expects_response=True)
    newer = say("Newer.", expects_response=False, from_agent_id="client-codex-1")
    listed = run("conversations", "--json").json["data"]
    assert [one["conversationId"] for one in listed["conversations"]] == [
        newer.conversation_id,
        older.conversation_id,
    ]
    assert listed["total"] == 2
    rows = [line.split(" | ") for line in run("conversations").out.splitlines()]
    assert [(row[1], row[3]) for row in rows] == [("active", "Newer."), ("pending (1)", "Older?")]
    for words, found in (
        (("--pending",), [older]),
        (("--status", "active"), [newer]),
        (("--participant", "client-codex-1"), [newer]),
        (("--limit", "1"), [newer]),
        (("--archived",), []),
    ):
        data = run("conversations", *words, "--json").json["data"]
        assert [one["conversationId"] for one in data["conversations"]] == [
            one.conversation_id for one in found
        ], words


def test_one_conversation(say: Say, channel: Channel, identity: str) -> None:
    question = say("Shall I?", expects_response=True)
    run("reply", question.message_id, "Do.")
    shown = run("conversations", question.conversation_id[:12], "--acks")
    assert shown.out.index("    Shall I?") < shown.out.index("    Do.") < shown.out.index("  answered  ")
    data = run("conversations", question.conversation_id, "--json").json["data"]
    assert [message["content"] for message in data["messages"]] == ["Shall I?", "Do."]
    assert [ack["state"] for ack in data["acknowledgements"]] == ["answered"]
    assert data["suppressed"] is False
    page = run("conversations", question.conversation_id, "--limit", "1", "--json").json["data"]
    assert [message["content"] for message in page["messages"]] == ["Do."]
    before = run("conversations", question.conversation_id, "--before", page["next"], "--json").json["data"]
    assert [message["content"] for message in before["messages"]] == ["Shall I?"]


def test_what_expired_stays_answerable(say: Say, channel: Channel, identity: str) -> None:
    question = say("Quick?", expects_response=True, expires_at=1)
    with channel.registry(identity) as registry:
        registry.ack(
            Acknowledge(
                identity=identity,
                conversation_id=question.conversation_id,
                message_id=question.message_id,
                state=AckState.FAILED,
                actor_id="registry",
                actor_type=ActorType.REGISTRY,
            )
        )
    assert _contents() == []
    assert _contents("--expired") == ["Quick?"]
    assert run("reply", question.message_id, "Late.").code == 0
    (answered,) = run("conversations", "--status", "answered", "--json").json["data"]["conversations"]
    assert answered["conversationId"] == question.conversation_id


def test_another_identitys_are_not_to_be_seen(say: Say) -> None:
    message = say("Secret?", expects_response=True)
    for words in (("inbox", "--all"), ("conversations",), ("conversations", "--archived")):
        assert "Secret" not in run(*words, "--identity", "other").out
    assert run("conversations", message.conversation_id, "--identity", "other").code == 1
    assert "Secret" in run("conversations", message.conversation_id).out
