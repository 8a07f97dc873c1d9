"""`inbox` and `conversations`, against a real service."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

from agent_bridge.channel.model import AckState, ActorType, Draft, Kind, Message
from agent_bridge.channel.writes import Acknowledge
from agent_bridge.cli.person import person
from hostile import CONTROLS, MEGABYTES, TEXTS

from .channel_rig import Channel, run

Say = Callable[..., Message]
_SHOWN = re.compile(r"\\x([0-9a-f]{2})|\\u([0-9a-f]{4})|\\U([0-9a-f]{8})")


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
    assert (ran.code, ran.out) == (0, "")
    mine = f"This is the inbox of {person(identity).project_path}; every project has its own."
    assert ran.err == f"Nothing awaits you. {mine} --all shows what was dealt with, --sent what you wrote.\n"
    assert run("inbox", "--all").err == f"The inbox is empty. {mine}\n"
    assert run("inbox", "--expired").err == "Nothing has expired.\n"
    assert run("inbox", "--sent").err == "Nothing was sent from here.\n"
    assert run("inbox", "--as", "client-other-1").err == "Nothing is there for client-other-1.\n"
    assert run("conversations").err.startswith("There are no conversations; --archived shows")
    for words in (("--archived",), ("--pending",), ("--status", "failed"), ("--participant", "x")):
        assert run("conversations", *words).err == "There are no such conversations.\n"


def test_what_is_shown_counts_as_displayed(say: Say, channel: Channel, identity: str) -> None:
    question = say("Shall I?", expects_response=True)
    news = say("FYI: done.", expects_response=False)
    peeked = run("inbox", "--peek", "--json").json["data"]
    assert peeked["marked"] == []
    assert peeked["open"] == 2
    ran = run("inbox")
    assert ran.out.index("    Shall I?") < ran.out.index("    FYI: done.")
    assert f"agent-bridge reply {question.message_id[:8]} TEXT" in ran.err
    assert "(client-claude-1) -> you\n" in ran.out
    assert _contents() == ["Shall I?"]  # it still awaits an answer
    assert _contents("--all") == ["Shall I?", "FYI: done."]
    with channel.registry(identity) as registry:
        (ack,) = registry.conversation(news.conversation_id).acks
    assert (ack.state, ack.actor_id) == (AckState.DISPLAYED, person(identity).agent_id)
    assert run("reply", question.message_id, "Do.").code == 0
    assert _contents() == []


def test_what_was_sent_and_how_far_it_came(say: Say, identity: str) -> None:
    me = person(identity).agent_id
    thread = say("A question to me?", expects_response=True).conversation_id
    mine = {"from_agent_id": me, "from_agent_name": None, "to_agent_id": "client-claude-1"}
    for number in range(5):
        where = {"conversation_id": thread} if number % 2 else {}
        say(f"Mine {number}?", **mine, **where, expires_at=1 << 41 if number == 4 else None)
    say("FYI: theirs.", conversation_id=thread)
    say("Yes.", conversation_id=thread, reply_to=_sent("--limit", "2")["messages"][1]["messageId"])
    page = _sent("--limit", "3")
    assert page["view"] == "sent"
    assert _told(page) == [("Mine 4?", "queued"), ("Mine 3?", "answered"), ("Mine 2?", "queued")]
    assert _told(_sent("--before", page["next"])) == [("Mine 1?", "queued"), ("Mine 0?", "queued")]
    assert _sent("--limit", "5")["next"] is None
    assert page["marked"] == []
    shown = run("inbox", "--sent", "--limit", "2")
    assert "you -> client-claude-1\n  chat, stored, awaits an answer, expires 2039-09-" in shown.out
    assert "reply" not in shown.err
    assert _told(_sent("--as", "client-claude-1"))[1][0] == "FYI: theirs."


def _sent(*words: str) -> dict[str, Any]:
    data: dict[str, Any] = run("inbox", "--sent", "--json", *words).json["data"]
    return data


def _told(page: dict[str, Any]) -> list[tuple[str, str]]:
    return [(message["content"], message["state"]) for message in page["messages"]]


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


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_hostile_text_is_shown_as_text(say: Say, text: str) -> None:
    message = say(text, from_agent_name=None, expects_response=True)
    for ran in (run("inbox", "--peek", "--full"), run("conversations", message.conversation_id, "--full")):
        _is_data_only(ran.out)
        restored = _SHOWN.sub(lambda found: chr(int(found[1] or found[2] or found[3], 16)), ran.out)
        for line in text.replace("\r\n", "\n").split("\n"):
            assert f"\n{'    ' if line else ''}{line.rstrip()}" in restored
    assert not set(run("conversations").out) & CONTROLS
    raw = run("conversations", message.conversation_id, "--json")
    assert raw.out.isascii()
    assert raw.json["data"]["messages"][0]["content"] == text


def test_so_are_five_megabytes_of_it(say: Say) -> None:
    say(MEGABYTES, from_agent_name=None)
    full = run("inbox", "--peek", "--full").out
    assert len(full) > len(MEGABYTES)
    _is_data_only(full)
    cut = run("inbox").out
    assert len(cut) < 5000
    _is_data_only(cut)


def _is_data_only(out: str) -> None:
    """One head of ours, what others wrote set in below it, and nothing that a terminal would act on."""
    assert not set(out) & CONTROLS
    ours = [line for line in out.split("\n") if line and not line.startswith("    ")]
    assert [line for line in ours if line.startswith("2")] == ours[:1]
    assert "  client-claude-1 -> " in ours[0]
    assert all(line.startswith("  ") for line in ours[1:])


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
        ("inbox", "--before", "9" * 20),
        ("inbox", "--sent", "--all"),
        ("conversations", "--before", "-1"),
        ("conversations", "--status", "odd"),
        ("conversations", "--acks"),
        ("conversations", "some", "--pending"),
    ):
        assert run(*words).code == 2, words


def test_a_conversation_that_isnt_or_isnt_one(say: Say) -> None:
    for name in ("alpha-1", "alpha-2"):
        say("Hello?", conversation_id=name)
    missing = run("conversations", "zzz")
    assert (missing.code, "no conversation 'zzz'" in missing.err) == (1, True)
    several = run("conversations", "alpha")
    assert several.code == 4
    assert "alpha-1\n  alpha-2" in several.err or "alpha-2\n  alpha-1" in several.err


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
    assert [(row[1], *row[3:]) for row in rows] == [
        ("active", "Newer.", "you, client-codex-1"),
        ("pending (1)", "Older?", "you, client-claude-1"),
    ]
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
