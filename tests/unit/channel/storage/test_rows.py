"""Rows hold messages and acks as they are."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_bridge.channel.errors import InvalidError
from agent_bridge.channel.model import Ack, AckState, ActorType, ConversationStatus, Draft, Kind, Message
from agent_bridge.channel.storage.rows import (
    ACK_COLUMNS,
    MESSAGE_COLUMNS,
    STATES,
    STATUS_NUMBERS,
    ack_of,
    ack_row,
    detail_of,
    message_of,
    message_row,
    payload_of,
)

# Surrogates too: Python's own texts hold them, no database does.
texts = st.text(st.characters(exclude_categories=()), max_size=30)
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=6,
)


@given(
    content=texts,
    name=st.none() | texts,
    task=st.none() | texts,
    meta=st.none() | st.dictionaries(texts, values, max_size=3),
    kind=st.sampled_from(Kind),
    state=st.sampled_from(AckState),
    flags=st.tuples(st.booleans(), st.booleans()),
)
def test_a_message_comes_back_from_its_row(
    content: str,
    name: str | None,
    task: str | None,
    meta: dict[str, Any] | None,
    kind: Kind,
    state: AckState,
    flags: tuple[bool, bool],
) -> None:
    message = Message(
        seq=7,
        identity="global",
        conversation_id="c",
        message_id="m",
        from_agent_id="ann",
        kind=kind,
        content=content,
        created_at=1,
        expects_response=flags[0],
        requires_ack=flags[1],
        attempt_count=3,
        state=state,
        to_agent_id="bob",
        reply_to="q",
        from_agent_name=name,
        task_id=task,
        meta=meta,
        expires_at=2,
    )
    payload = payload_of(
        Draft(
            identity="global",
            from_agent_id="ann",
            kind=kind,
            content=content,
            from_agent_name=name,
            task_id=task,
            meta=meta,
        )
    )
    row = message_row(message, due=5, is_open=True, payload=payload)

    assert payload.isascii()
    assert "\0" not in payload
    assert set(row) == {column.name for column in MESSAGE_COLUMNS}
    assert message_of([row[column.name] for column in MESSAGE_COLUMNS]) == message


@given(detail=st.none() | texts, state=st.sampled_from(AckState), actor=st.sampled_from(ActorType))
def test_an_ack_comes_back_from_its_row(detail: str | None, state: AckState, actor: ActorType) -> None:
    ack = Ack(
        seq=7,
        identity="global",
        conversation_id="c",
        message_id="m",
        state=state,
        actor_id="bob",
        actor_type=actor,
        timestamp=1,
        detail=detail,
    )
    row = ack_row(ack, counted=True, detail=detail_of(detail))

    assert set(row) == {column.name for column in ACK_COLUMNS}
    assert ack_of([row[column.name] for column in ACK_COLUMNS]) == ack


def deep() -> dict[str, Any]:
    inner: dict[str, Any] = {}
    for _ in range(100_000):
        inner = {"x": inner}
    return inner


@pytest.mark.parametrize(
    "meta", [{"x": float("inf")}, {"x": {1, 2}}, {(1, 2): 3}, deep()], ids=["inf", "set", "key", "deep"]
)
def test_a_meta_that_is_no_json_is_refused(meta: dict[Any, Any]) -> None:
    draft = Draft(identity="global", from_agent_id="ann", kind=Kind.CHAT, content="", meta=meta)

    with pytest.raises(InvalidError, match="meta"):
        payload_of(draft)


def test_numbers_in_columns_stay_what_they_mean() -> None:
    """They are in databases: another order would turn answered messages into failed ones."""
    assert [state.value for state in STATES] == [
        "queued",
        "delivered_to_bridge",
        "displayed_to_client",
        "failed",
        "answered",
    ]
    assert {status.value: number for status, number in STATUS_NUMBERS.items()} == {
        "active": 0,
        "pending": 1,
        "failed": 2,
        "answered": 3,
    }
    plain = Draft(identity="global", from_agent_id="ann", kind=Kind.CHAT, content="x")
    assert json.loads(payload_of(plain)) == {"content": "x"}
    assert ConversationStatus.EXPIRED not in STATUS_NUMBERS
