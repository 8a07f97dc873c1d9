"""Messages on a terminal: what others wrote stays text."""

from __future__ import annotations

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_bridge.channel.model import (
    Ack,
    AckState,
    ActorType,
    Conversation,
    ConversationStatus,
    Kind,
    Message,
)
from agent_bridge.cli import messages_shown
from agent_bridge.cli.event_stream import Event
from agent_bridge.cli.events_shown import shown_event
from agent_bridge.cli.printing import harmless

MESSAGE = Message(
    seq=1,
    identity="global",
    conversation_id="c1",
    message_id="m1",
    from_agent_id="client-claude-1",
    from_agent_name="claude in harbour",
    to_agent_id="client-agent-bridge-cli-2",
    kind=Kind.CHAT,
    content="Is the harbour north?",
    created_at=1_790_000_000_000,
    expects_response=True,
)
FORGED = "hello\n2026-01-01 00:00:00  root -> you\n  chat, stored\x1b[2J\u202e"


def but(**changes: object) -> Message:
    return dataclasses.replace(MESSAGE, **changes)  # type: ignore[arg-type]


def test_a_message_with_all_that_a_person_needs() -> None:
    shown = messages_shown.shown_message(MESSAGE)
    for part in (
        "claude in harbour (client-claude-1) -> client-agent-bridge-cli-2",
        "chat, stored, awaits an answer",
        "message m1",
        "conversation c1",
        "    Is the harbour north?",
    ):
        assert part in shown


@pytest.mark.parametrize(
    ("message", "said"),
    [
        (but(to_agent_id=None), "-> everybody"),
        (but(attempt_count=2), "attempt 2"),
        (but(reply_to="m0"), "in reply to m0"),
        (but(state=AckState.ANSWERED), "chat, answered"),
        (but(state=AckState.FAILED), "chat, failed"),
        (but(state=AckState.DISPLAYED), "displayed, awaits an answer"),
        (but(expires_at=1), "expired "),
        (but(expires_at=1 << 60), f"expires {1 << 60} ms"),
        (but(from_agent_name=None), "  client-claude-1 ->"),
    ],
)
def test_what_else_is_said(message: Message, said: str) -> None:
    assert said in messages_shown.shown_message(message, now=1_790_000_000_000)


def test_only_the_reader_is_called_you() -> None:
    mine = but(from_agent_id="me", to_agent_id="You", from_agent_name="root@box")
    assert "  you -> 'You'\n" in messages_shown.shown_message(mine, me="me")
    theirs = but(from_agent_id="you", from_agent_name=None, to_agent_id="me")
    assert "  'you' -> you\n" in messages_shown.shown_message(theirs, me="me")


@given(st.text())
def test_no_line_of_a_text_begins_where_ours_begin(content: str) -> None:
    for shown in (
        messages_shown.shown_message(but(content=content, from_agent_name=content or None, reply_to=content)),
        messages_shown.shown_line(but(content=content, from_agent_name=content, to_agent_id=content)),
    ):
        lines = harmless(shown).split("\n")
        heads = [line for line in lines if line and not line.startswith("  ")]
        assert heads == lines[:1]
        own = [line for line in lines[1:] if line and not line.startswith("    ")]
        assert len(own) <= 4


def test_a_forged_head_is_indented_and_escapes_are_shown() -> None:
    shown = harmless(messages_shown.shown_message(but(content=FORGED, from_agent_name=FORGED)))
    assert "\x1b" not in shown
    assert "\u202e" not in shown
    assert "\n    2026-01-01 00:00:00  root -> you\n" in shown
    assert shown.split("\n")[0].startswith("2026-")  # ours, of 2026-09-21


def test_a_long_text_is_cut_and_the_rest_counted() -> None:
    text = "x" * 5000
    shown = messages_shown.indented(text)
    assert "… and 3000 characters more: `--full` shows all." in shown
    assert messages_shown.indented(text, full=True) == "    " + text
    many = "\n".join(str(number) for number in range(100))
    assert "    39\n  … and " in messages_shown.indented(many)
    assert "    99" in messages_shown.indented(many, full=True)


def test_an_ack_on_one_line() -> None:
    ack = Ack(
        seq=2,
        identity="global",
        conversation_id="c1",
        message_id="m1",
        state=AckState.FAILED,
        actor_id="registry",
        actor_type=ActorType.REGISTRY,
        timestamp=1_790_000_000_000,
        detail="expired\nwithout a reply",
    )
    assert messages_shown.shown_ack(ack).endswith("failed  m1  by registry: expired without a reply")


@pytest.mark.parametrize(
    ("status", "archived", "said"),
    [
        (ConversationStatus.PENDING, False, "pending (3)"),
        (ConversationStatus.ANSWERED, True, "answered, archived"),
    ],
)
def test_the_list_of_conversations(status: ConversationStatus, archived: bool, said: str) -> None:
    conversation = Conversation(
        identity="global",
        conversation_id="c1",
        status=status,
        last_message=MESSAGE,
        pending_count=3,
        pending_message_ids=("m1",),
        message_count=4,
        last_ack_state=None,
        participants=("a", "b"),
        updated_at=1_790_000_000_000,
        archived=archived,
    )
    ((row),) = messages_shown.conversation_table((conversation,)).rows
    assert row[0] == "c1"
    assert row[1] == said
    assert row[3] == MESSAGE.content
    assert row[4] == "a, b"
    ((seen_by_b),) = messages_shown.conversation_table((conversation,), "b").rows
    assert seen_by_b[4] == "you, a"


@pytest.mark.parametrize(
    ("kind", "data", "said"),
    [
        (
            "channel.message",
            MESSAGE.as_wire(),
            "claude in harbour -> client-agent-bridge-cli-2  chat, awaits",
        ),
        ("channel.message", {"content": 7}, "channel.message"),
        ("agent.registered", {"agentId": "a1", "name": "Claude"}, "Claude a1 is there"),
        ("agent.deregistered", {"agentId": "a1"}, "a1 has left"),
        ("agent.removed", {"agentId": "a1"}, "no sign of life and was taken out"),
        ("channel.conversation.revived", {"conversationId": "c1"}, "conversation c1 is no longer hidden"),
        ("task.update", {"agentName": "A", "taskId": "t1", "state": "working"}, "A: task t1 working"),
        ("new.thing", {"x": "\x1b[2J"}, "new.thing"),
    ],
)
def test_events_in_a_stream(kind: str, data: dict[str, object], said: str) -> None:
    frame = {"type": kind, "timestamp": "2026-09-21T13:33:20.000Z", "data": data}
    shown = shown_event(Event(kind, data, 1, frame))
    assert said in shown
    assert shown.startswith("2026-09-2")
    assert "\x1b" not in harmless(shown)
