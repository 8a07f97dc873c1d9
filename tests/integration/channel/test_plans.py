"""Every query on the way of a person or a message finds its rows by an index, with statistics and without."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from agent_bridge.channel.model import AckState, ConversationStatus
from agent_bridge.channel.storage import batch, broadcasts, inbox, listing, reads, replay, sweeps
from agent_bridge.channel.storage.answers import ConversationQuery
from agent_bridge.channel.storage.place import Place
from agent_bridge.channel.writes import Send
from integration.channel.records import START, Records, acknowledge, draft

AGENT = {"identity": "global", "agent_id": "bob"}
INBOX = AGENT | {"now": 5, "seen_up_to": 5, "cursor": 5, "rows": 26}
SINCE = {"identity": "global", "since": 5, "rows": 100}
THESE = {"identity": "global", "ids": ["a", "b", "c"]}


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with enough rows of every kind for statistics to mean something."""
    file = tmp_path_factory.mktemp("plans") / "channel.sqlite"
    with Records(Place.file(file)) as records:
        for number in range(4):
            writes = [
                Send(
                    draft(
                        "x",
                        identity="global" if one % 4 else "other",
                        from_agent_id=f"ann{one % 7}",
                        to_agent_id=None if one % 20 == 0 else f"bob{one % 13}",
                        conversation_id=f"c{(number * 400 + one) // 5}",
                        message_id=f"m{number * 400 + one}",
                        expects_response=one % 3 == 0,
                        expires_at=START + 60_000 if one % 6 == 0 else None,
                    )
                )
                for one in range(400)
            ]
            sent = records.together(writes)
            acks = [
                acknowledge(outcome.message, AckState.ANSWERED, "bob1")  # type: ignore[union-attr]
                for outcome in sent
                if outcome.message.seq % 10  # type: ignore[union-attr]
            ]
            records.together(acks)
        for number in range(30):
            records.suppress("bob", f"c{number * 5}")
    return file


@pytest.fixture(scope="module", params=["without statistics", "with statistics"])
def connection(request: pytest.FixtureRequest, filled: Path) -> Iterator[sa.Connection]:
    """A connection to it."""
    engine = sa.create_engine(f"sqlite:///{filled}", poolclass=sa.NullPool)
    with engine.begin() as preparing:
        preparing.exec_driver_sql("ANALYZE")
        if request.param == "without statistics":
            preparing.exec_driver_sql("DELETE FROM sqlite_stat1")
    with engine.connect() as reading:
        yield reading


def plan(connection: sa.Connection, statement: sa.Select[Any] | sa.Delete, values: Mapping[str, Any]) -> str:
    """How SQLite goes about it, a line each."""
    state = statement.compile(dialect=connection.dialect).construct_expanded_state(values)
    rows = connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {state.statement}", state.positional_parameters)
    return "\n".join(row.detail for row in rows.all())


def a_page(**conditions: object) -> tuple[Any, dict[str, Any]]:
    given: dict[str, Any] = {"identity": "global", "agent_id": "bob", **conditions}
    query = ConversationQuery(**given)
    statement, values = listing.page_statement(query, now=5)
    return statement, values | {"rows": 51}


OPEN = "messages_open (identity=? AND to_agent_id=?"
BROADCAST = "messages_broadcast (identity=? AND to_agent_id=?"
LIST = "conversations_by_identity (identity=? AND archived=?"
BY_STATUS = "conversations_by_status (identity=? AND archived=? AND status=?"

CASES: dict[str, tuple[Any, Mapping[str, Any], str]] = {
    "inbox": (inbox.PAGES["open", False][0], INBOX, OPEN + " AND seq>?)"),
    "inbox, newest first": (
        inbox.PAGES["open", True][0],
        INBOX,
        OPEN + " AND seq<?)",
    ),
    "inbox, broadcasts": (inbox.PAGES["open", False][1], INBOX, BROADCAST + " AND seq>?)"),
    "inbox, newest broadcasts": (inbox.PAGES["open", True][1], INBOX, BROADCAST + " AND seq>? AND seq<?)"),
    "inbox, expired": (inbox.PAGES["expired", False][0], INBOX, "messages_with_deadline"),
    "inbox, all": (inbox.PAGES["all", False][1], INBOX, "messages_closed (identity=? AND to_agent_id=?"),
    "inbox, count": (inbox.COUNTS[0], INBOX, OPEN + ")"),
    "inbox, count of broadcasts": (inbox.COUNTS[1], INBOX, BROADCAST + " AND seq>?)"),
    "first unseen": (broadcasts._FIRST_UNSEEN, INBOX, BROADCAST + " AND seq>?)"),
    "message": (reads.MESSAGE, {"identity": "global", "message_id": "m"}, "messages_by_id"),
    "thread": (
        reads.THREAD,
        {"identity": "global", "conversation_id": "c1", "before": 9, "rows": 9},
        "messages_by_thread (identity=? AND conversation_id=? AND seq<?)",
    ),
    "acks of a thread": (
        reads.THREAD_ACKS,
        {"identity": "global", "message_ids": ["a", "b"]},
        "acks_by_message (identity=? AND message_id=?)",
    ),
    "replay, messages": (replay.QUERIES[True][0], SINCE, "messages_by_identity (identity=? AND seq>?)"),
    "replay, acks": (replay.QUERIES[True][1], SINCE, "acks_by_identity (identity=? AND seq>?)"),
    "replay of all, messages": (replay.QUERIES[False][0], SINCE, "INTEGER PRIMARY KEY (rowid>?)"),
    "replay of all, acks": (replay.QUERIES[False][1], SINCE, "INTEGER PRIMARY KEY (rowid>?)"),
    "list": (*a_page(), LIST + ")"),
    "list, next page": (*a_page(before=99), LIST + " AND last_seq<?)"),
    "list, pending": (*a_page(pending=True), BY_STATUS + ")"),
    "list, failed": (
        *a_page(status=ConversationStatus.FAILED, before=99),
        BY_STATUS + " AND last_seq<?)",
    ),
    "pending ids": (
        listing._OF_ONE,
        {"identity": "global", "conversation_id": "c"},
        "messages_pending (identity=? AND conversation_id=? AND open=? AND expects_response=?)",
    ),
    "pending ids of a page": (listing._OF_ALL, THESE, "messages_pending"),
    "expired": (listing._EXPIRED, THESE | {"now": 5}, "messages_pending"),
    "last ack that counted": (
        sweeps._COUNTED,
        {"in_identity": "global", "conversation_id": "c"},
        "acks_counted (identity=? AND conversation_id=?)",
    ),
    "list, active": (
        *a_page(status=ConversationStatus.ACTIVE),
        BY_STATUS + ")",
    ),
    "messages of old conversations": (
        sweeps._ALL_OF_THESE,
        {"in_identity": "global", "ids": ["a", "b"]},
        "messages_by_thread (identity=? AND conversation_id=?)",
    ),
    "oldest messages of one": (
        sweeps._OLDEST_OF_ONE,
        {"in_identity": "global", "conversation_id": "a", "rows": 9},
        "messages_by_thread (identity=? AND conversation_id=?)",
    ),
    "deleting acks": (
        sweeps._DELETE_ACKS,
        {"in_identity": "global", "ids": ["a", "b"]},
        "acks_by_message (identity=? AND message_id=?)",
    ),
    "deleting receipts": (sweeps._DELETE_RECEIPTS, {"ids": [1, 2]}, "receipts_by_seq (seq=?)"),
    "list of an agent": (
        *a_page(participant="bob"),
        "participants_by_agent (identity=? AND agent_id=? AND archived=?)",
    ),
    "list of all identities": (*a_page(identity=None), "conversations_by_seq"),
    "expiry": (sweeps.DUE, {"now": 5, "rows": 9}, "messages_due (due>? AND due<?)"),
    "archive": (sweeps.FINISHED, {"oldest": 5, "rows": 9}, "conversations_finished (touched<?)"),
    "retention": (sweeps.OLD, {"oldest": 5, "rows": 9}, "conversations_by_age (touched<?)"),
    "messages of a batch": (batch._MESSAGES.statement, THESE, "messages_by_id (identity=? AND message_id=?)"),
    "conversations of a batch": (batch._CONVERSATIONS.statement, THESE, "(identity=? AND conversation_id=?)"),
    "suppressions of a batch": (batch._HIDDEN.statement, THESE, "(identity=? AND conversation_id=?)"),
    "open messages of a batch": (batch._OPEN_COUNTS.statement, THESE, OPEN + ")"),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_an_index_finds_the_rows(connection: sa.Connection, case: str) -> None:
    statement, values, expected = CASES[case]

    found = plan(connection, statement, values)

    assert expected in found
    steps = [line for line in found.splitlines() if line.startswith("SCAN")]
    # A list of everything is a walk along an index until the page is full.
    assert all(
        "USING INDEX conversations_by_seq" in step or "CONSTANT ROW" in step or "anon" in step
        for step in steps
    ), found
    assert "TEMP B-TREE FOR ORDER BY" not in found, found
