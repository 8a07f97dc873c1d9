"""The document's schemas against the values that they describe."""

from __future__ import annotations

import re
from typing import Any

import pytest

from agent_bridge.channel.directory import AgentRow
from agent_bridge.channel.model import (
    Ack,
    AckState,
    ActorType,
    Conversation,
    ConversationStatus,
    Kind,
    Message,
)
from agent_bridge.registry import openapi, openapi_schemas
from agent_bridge.registry.openapi_schemas import schemas

_BARE = Message(
    seq=1,
    identity="global",
    conversation_id="c",
    message_id="m",
    from_agent_id="a",
    kind=Kind.CHAT,
    content="x",
    created_at=1,
    expects_response=False,
)
_FULL = Message(
    seq=1,
    identity="global",
    conversation_id="c",
    message_id="m",
    from_agent_id="a",
    kind=Kind.CHAT,
    content="x",
    created_at=1,
    expects_response=True,
    to_agent_id="b",
    reply_to="r",
    from_agent_name="A",
    task_id="t",
    meta={"n": 1},
    expires_at=2,
)


def _ack(detail: str | None) -> dict[str, Any]:
    return Ack(
        seq=1,
        identity="global",
        conversation_id="c",
        message_id="m",
        state=AckState.ANSWERED,
        actor_id="b",
        actor_type=ActorType.CLIENT,
        timestamp=1,
        detail=detail,
    ).as_wire()


def _conversation(last: AckState | None) -> dict[str, Any]:
    return Conversation(
        identity="global",
        conversation_id="c",
        status=ConversationStatus.ACTIVE,
        last_message=_BARE,
        pending_count=0,
        pending_message_ids=(),
        message_count=1,
        last_ack_state=last,
        participants=("a",),
        updated_at=1,
    ).as_wire()


_ROW = AgentRow(agent_id="a", name="A", project_path="/p")
_FULL_ROW = AgentRow(agent_id="a", name="A", project_path="/p", client_name="codex", pid=1, host="here")


@pytest.mark.parametrize(
    ("name", "least", "most"),
    [
        ("Message", _BARE.as_wire(), _FULL.as_wire()),
        ("StoredMessage", _BARE.as_wire() | {"deduplicated": True}, _FULL.as_wire() | {"deduplicated": True}),
        ("Ack", _ack(None), _ack("why")),
        ("Conversation", _conversation(None), _conversation(AckState.ANSWERED)),
        ("AgentRow", _ROW.as_wire(), _FULL_ROW.as_wire()),
    ],
)
def test_what_is_answered_is_what_the_schema_says(
    name: str, least: dict[str, Any], most: dict[str, Any]
) -> None:
    schema = schemas()[name]
    assert set(schema["required"]) == set(least)
    assert set(schema["properties"]) == set(most)


def test_every_reference_leads_somewhere() -> None:
    document = openapi.document()
    references = set(re.findall(r"'\$ref': '(#[^']+)'", str(document)))
    assert len(references) > 20
    for reference in references:
        found: Any = document
        for part in reference.removeprefix("#/").split("/"):
            found = found[part]
        assert found


def test_absent_and_null_are_the_same_for_what_may_be_left_out() -> None:
    draft = openapi_schemas.schemas()["Draft"]["properties"]
    assert draft["taskId"]["type"] == ["string", "null"]
    assert draft["content"]["type"] == "string"
