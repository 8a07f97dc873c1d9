"""Registrations, agent messages and task updates as they come in."""

from __future__ import annotations

from typing import Any

import pytest

from agent_bridge.channel.directory import EntryType
from agent_bridge.channel.errors import InvalidError
from agent_bridge.registry import wire_agents

_ROW: dict[str, Any] = {"agentId": "a", "name": "Ana", "projectPath": "/home/ana/p"}


def test_a_client_session() -> None:
    row = wire_agents.registration(
        _ROW
        | {
            "entryType": "client",
            "clientInfo": {"clientName": "claude-code", "clientVersion": "2"},
            "url": "",
            "port": 0,
            "pid": 7,
            "host": "here",
            "card": {"skills": []},
            "registeredAt": "ignored",
        },
        "work",
    )
    assert (row.entry_type, row.client_name, row.client_version) == (EntryType.CLIENT, "claude-code", "2")
    assert (row.identity, row.pid, row.host, row.url) == ("work", 7, "here", "")


def test_a_row_that_says_no_more_is_an_agent() -> None:
    row = wire_agents.registration(_ROW, None)
    assert (row.entry_type, row.identity, row.client_name) == (EntryType.AGENT, "global", None)


@pytest.mark.parametrize("missing", sorted(_ROW))
def test_what_must_be_there_is_named(missing: str) -> None:
    with pytest.raises(InvalidError) as refused:
        wire_agents.registration({name: value for name, value in _ROW.items() if name != missing}, None)
    assert refused.value.title == "agentId, name and projectPath are required"
    assert missing in refused.value.detail


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("agentId", "a\tb"),
        ("name", ""),
        ("name", "\x07"),
        ("projectPath", "/p\n"),
        ("entryType", "robot"),
        ("identity", "*"),
        ("url", "ftp://localhost/"),
        ("url", "http://"),
        ("url", "http://a b"),
        ("wsUrl", "http://localhost"),
        ("port", 65_536),
        ("port", "5001"),
        ("card", []),
        ("clientInfo", "claude"),
        ("pid", -1),
        ("pid", 2**31),
        ("host", "\u202e"),
    ],
)
def test_a_row_is_refused_by_name(field: str, value: object) -> None:
    with pytest.raises(InvalidError) as refused:
        wire_agents.registration(_ROW | {field: value}, None)
    assert field in refused.value.sentence()


def test_an_agent_message_gets_what_it_left_out() -> None:
    data = wire_agents.agent_message({"fromAgentId": "a", "type": "notification"}, 5, to_agent_id="b")
    assert data == {"fromAgentId": "a", "toAgentId": "b", "type": "notification", "timestamp": 5}


@pytest.mark.parametrize(
    "bad",
    [
        {"fromAgentId": "a", "type": "shout", "toAgentId": "b"},
        {"fromAgentId": "a", "type": "notification"},
        {"type": "notification", "toAgentId": "b"},
        {"fromAgentId": "a", "type": "notification", "toAgentId": "b", "payload": 2**70},
    ],
)
def test_agent_messages_that_cannot_be_used(bad: dict[str, Any]) -> None:
    with pytest.raises(InvalidError):
        wire_agents.agent_message(bad, 5)


def test_a_task_update_has_what_is_known_of_it_and_no_more() -> None:
    data = wire_agents.task_update(
        {"agentId": "a", "taskId": "t", "state": "working", "payload": [1], "forged": True, "timestamp": 3}, 5
    )
    assert data == {"agentId": "a", "taskId": "t", "state": "working", "payload": [1], "timestamp": 3}


def test_a_task_update_needs_its_state() -> None:
    with pytest.raises(InvalidError, match="state"):
        wire_agents.task_update({"agentId": "a", "taskId": "t"}, 5)
