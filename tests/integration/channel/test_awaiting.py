"""What awaits an agent, and whose answer it awaits, by conversation; on both databases."""

from __future__ import annotations

import pytest
import sqlalchemy as sa

from agent_bridge.channel.model import AckState
from agent_bridge.channel.storage import awaiting
from integration.channel.records import START, Records


def names(records: Records, agent: str, side: awaiting.Side, *, with_hidden: bool = False) -> list[str]:
    found = records.store.awaiting("global", agent, side, with_hidden=with_hidden)
    return [one.conversation_id for one in found]


def test_what_is_open_by_conversation_the_newest_first(each_records: Records) -> None:
    first = each_records.send("1", conversation_id="a", expects_response=True, message_id="1").message
    each_records.send("2", conversation_id="b", message_id="2")
    each_records.send("3", conversation_id="a", message_id="3")
    each_records.send("4", conversation_id="c", to_agent_id=None, message_id="4")
    each_records.send("5", conversation_id="a", to_agent_id="cid", message_id="5")
    each_records.send("6", conversation_id="d", identity="other", message_id="6")
    found = each_records.store.awaiting("global", "bob", "open")
    assert [(one.conversation_id, one.message_ids) for one in found] == [
        ("c", ("4",)),
        ("a", ("3", "1")),
        ("b", ("2",)),
    ]
    assert names(each_records, "ann", "open") == []
    each_records.ack(first, AckState.ANSWERED)
    each_records.suppress("bob", "b")
    assert [one.message_ids for one in each_records.store.awaiting("global", "bob", "open")] == [
        ("4",),
        ("3",),
    ]
    assert names(each_records, "bob", "open", with_hidden=True) == ["c", "a", "b"]
    assert each_records.store.awaiting("global", "b\0b", "open") == []


def test_own_questions_that_await_an_answer(each_records: Records) -> None:
    asked = each_records.send("1", conversation_id="a", expects_response=True).message
    each_records.send("2", conversation_id="b")
    each_records.send("3", conversation_id="c", expects_response=True, from_agent_id="cid")
    assert names(each_records, "ann", "asked") == ["a"]
    assert names(each_records, "bob", "asked") == []
    each_records.send("4", from_agent_id="bob", to_agent_id="ann", reply_to=asked.message_id)
    assert names(each_records, "ann", "asked") == []


def test_what_came_too_late_is_apart(each_records: Records) -> None:
    each_records.send("1", conversation_id="a", expects_response=True, expires_at=START + 1_000)
    assert (names(each_records, "bob", "open"), names(each_records, "bob", "expired")) == (["a"], [])
    each_records.clock.go_on(2_000)
    assert (names(each_records, "bob", "open"), names(each_records, "bob", "expired")) == ([], ["a"])


def test_who_takes_part(each_records: Records) -> None:
    each_records.send("1", conversation_id="a")
    each_records.send("2", conversation_id="b", to_agent_id=None)
    assert each_records.store.agents_in("global", "a") == (("ann", "bob"), False)
    assert each_records.store.agents_in("global", "b") == (("ann",), True)
    assert each_records.store.agents_in("other", "a") == ((), False)
    assert each_records.store.agents_in("global", "a\0") == ((), False)


@pytest.mark.parametrize("side", ["open", "expired", "asked"])
def test_no_query_walks_through_a_table(records: Records, side: awaiting.Side) -> None:
    asked = {"identity": "global", "agent_id": "bob", "now": 5, "seen_up_to": 5}
    with records.store._database.reading() as connection:
        for query in awaiting._QUERIES[side]:
            statement = query.order_by(sa.text("messages.seq DESC")).limit(10)
            state = statement.compile(dialect=connection.dialect).construct_expanded_state(asked)
            rows = connection.exec_driver_sql(
                f"EXPLAIN QUERY PLAN {state.statement}", state.positional_parameters
            )
            steps = [row[3] for row in rows]
            assert steps
            assert not [step for step in steps if step.startswith("SCAN")]
