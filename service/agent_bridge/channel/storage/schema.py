"""The tables, the same for SQLite and PostgreSQL.

Every key begins with the identity, so the same id in two identities is two things. `seq` is one counter over
messages, acks and suppressions, kept in `meta`. Columns named `due` and `touched` are steady time, those that
end in `_at` the wall's. Flags are 0 or 1. The queries that partial indexes serve repeat their conditions
literally: see the `IS_…` clauses here, which both use. As long as there are no statistics SQLite takes that
index of which it can use the most columns: so a partial one has one more than a full one that would do.
"""

from __future__ import annotations

import uuid

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite

from agent_bridge.channel.clock import Moment
from agent_bridge.channel.storage import first_schema

METADATA = sa.MetaData()

# Tables that are little more than their key have no row ids (`sqlite_with_rowid=False`): one tree fewer.
# A plain INTEGER PRIMARY KEY is SQLite's row id, so its rows lie in the order of seq.
_SEQ = sa.BigInteger().with_variant(sa.Integer(), "sqlite")

META = sa.Table(
    "meta",
    METADATA,
    sa.Column("name", sa.Text, primary_key=True),
    sa.Column("value", sa.Text, nullable=False),
)

MESSAGES = sa.Table(
    "messages",
    METADATA,
    sa.Column("seq", _SEQ, primary_key=True, autoincrement=False),
    sa.Column("identity", sa.Text, nullable=False),
    sa.Column("message_id", sa.Text, nullable=False),
    sa.Column("conversation_id", sa.Text, nullable=False),
    sa.Column("from_agent_id", sa.Text, nullable=False),
    sa.Column("to_agent_id", sa.Text),
    sa.Column("reply_to", sa.Text),
    sa.Column("kind", sa.Text, nullable=False),
    sa.Column("created_at", sa.BigInteger, nullable=False),
    sa.Column("expires_at", sa.BigInteger),
    sa.Column("due", sa.BigInteger),
    sa.Column("expects_response", sa.SmallInteger, nullable=False),
    sa.Column("requires_ack", sa.SmallInteger, nullable=False),
    sa.Column("attempt_count", sa.Integer, nullable=False),
    sa.Column("state", sa.SmallInteger, nullable=False),  # the rank of an AckState
    sa.Column("open", sa.SmallInteger, nullable=False),
    sa.Column("payload", sa.Text, nullable=False),  # JSON, ASCII only
)

ACKS = sa.Table(
    "acks",
    METADATA,
    sa.Column("seq", _SEQ, primary_key=True, autoincrement=False),
    sa.Column("identity", sa.Text, nullable=False),
    sa.Column("message_id", sa.Text, nullable=False),
    sa.Column("conversation_id", sa.Text, nullable=False),
    sa.Column("state", sa.SmallInteger, nullable=False),
    sa.Column("actor_id", sa.Text, nullable=False),
    sa.Column("actor_type", sa.Text, nullable=False),
    sa.Column("acked_at", sa.BigInteger, nullable=False),
    sa.Column("counted", sa.SmallInteger, nullable=False),  # whether it raised its message's state
    sa.Column("detail", sa.Text),  # JSON, ASCII only
)

CONVERSATIONS = sa.Table(
    "conversations",
    METADATA,
    sa.Column("identity", sa.Text, primary_key=True),
    sa.Column("conversation_id", sa.Text, primary_key=True),
    sa.Column("message_count", sa.Integer, nullable=False),
    sa.Column("pending_count", sa.Integer, nullable=False),
    sa.Column("last_seq", sa.BigInteger, nullable=False),  # of its newest message
    sa.Column("last_ack_state", sa.SmallInteger),
    sa.Column("outcome", sa.SmallInteger),
    sa.Column("status", sa.SmallInteger, nullable=False),  # see STATUS_NUMBERS in rows
    sa.Column("updated_at", sa.BigInteger, nullable=False),
    sa.Column("touched", sa.BigInteger, nullable=False),
    sa.Column("archived", sa.SmallInteger, nullable=False),
)

PARTICIPANTS = sa.Table(
    "participants",
    METADATA,
    sa.Column("identity", sa.Text, primary_key=True),
    sa.Column("conversation_id", sa.Text, primary_key=True),
    sa.Column("agent_id", sa.Text, primary_key=True),
    sa.Column("last_seq", sa.BigInteger, nullable=False),  # both as in the conversation, for paging
    sa.Column("archived", sa.SmallInteger, nullable=False),
    sqlite_with_rowid=False,
)

# A revived one stays with `hidden` 0: whoever was away learns of both by its seq.
SUPPRESSIONS = sa.Table(
    "suppressions",
    METADATA,
    sa.Column("identity", sa.Text, primary_key=True),
    sa.Column("conversation_id", sa.Text, primary_key=True),
    sa.Column("agent_id", sa.Text, primary_key=True),
    sa.Column("hidden", sa.SmallInteger, nullable=False),
    sa.Column("seq", sa.BigInteger, nullable=False),
    sqlite_with_rowid=False,
)

# Which broadcasts an agent has seen: all up to `seen_up_to`, and beyond it those with a receipt.
BROADCAST_MARKS = sa.Table(
    "broadcast_marks",
    METADATA,
    sa.Column("identity", sa.Text, primary_key=True),
    sa.Column("agent_id", sa.Text, primary_key=True),
    sa.Column("seen_up_to", sa.BigInteger, nullable=False),
    sqlite_with_rowid=False,
)

RECEIPTS = sa.Table(
    "receipts",
    METADATA,
    sa.Column("identity", sa.Text, primary_key=True),
    sa.Column("agent_id", sa.Text, primary_key=True),
    sa.Column("seq", sa.BigInteger, primary_key=True),  # the message's
    sqlite_with_rowid=False,
)

_m, _c = MESSAGES.c, CONVERSATIONS.c

IS_OPEN = sa.text("messages.open = 1")
IS_CLOSED = sa.text("messages.open = 0")
IS_PENDING = sa.text("messages.open = 1 AND messages.expects_response = 1")
IS_DUE = sa.text(
    "messages.open = 1 AND messages.due IS NOT NULL"
    " AND (messages.expects_response = 1 OR messages.to_agent_id IS NOT NULL)"
)
HAS_DEADLINE = sa.text("messages.due IS NOT NULL")
IS_BROADCAST = sa.text("messages.to_agent_id IS NULL")
IS_LISTED = sa.text("conversations.archived = 0")
IS_FINISHED = sa.text("conversations.archived = 0 AND conversations.status > 1")
HAS_COUNTED = sa.text("acks.counted = 1")
IS_HIDDEN = sa.text("suppressions.hidden = 1")


def _index(name: str, *columns: sa.Column[object], where: sa.TextClause | None = None) -> None:
    """An index, partial where `where` is given; its condition may not name the table."""
    condition = None if where is None else sa.text(where.text.replace(f"{columns[0].table}.", ""))
    sa.Index(name, *columns, sqlite_where=condition, postgresql_where=condition)


sa.Index("messages_by_id", _m.identity, _m.message_id, unique=True)
_index("messages_by_thread", _m.identity, _m.conversation_id, _m.seq)
_index("messages_by_identity", _m.identity, _m.seq)
_index("messages_open", _m.identity, _m.to_agent_id, _m.seq, where=IS_OPEN)
_index("messages_closed", _m.identity, _m.to_agent_id, _m.seq, where=IS_CLOSED)
_index(
    "messages_pending",
    _m.identity,
    _m.conversation_id,
    _m.open,
    _m.expects_response,
    _m.seq,
    where=IS_PENDING,
)
_index("messages_due", _m.due, where=IS_DUE)
_index("messages_with_deadline", _m.identity, _m.to_agent_id, _m.seq, where=HAS_DEADLINE)
_index(
    "messages_broadcast",
    _m.identity,
    _m.to_agent_id,
    _m.seq,
    _m.from_agent_id,  # from here on so that an index entry is all that has to be read
    _m.kind,
    _m.due,
    where=IS_BROADCAST,
)
_index("acks_by_message", ACKS.c.identity, ACKS.c.message_id, ACKS.c.seq)
_index("acks_by_identity", ACKS.c.identity, ACKS.c.seq)
_index("acks_counted", ACKS.c.identity, ACKS.c.conversation_id, ACKS.c.seq, where=HAS_COUNTED)
_index("conversations_by_identity", _c.identity, _c.archived, _c.last_seq)
_index("conversations_by_seq", _c.last_seq)
_index("conversations_by_status", _c.identity, _c.archived, _c.status, _c.last_seq, where=IS_LISTED)
_index("conversations_finished", _c.touched, where=IS_FINISHED)
_index("conversations_by_age", _c.touched)
_index(
    "participants_by_agent",
    PARTICIPANTS.c.identity,
    PARTICIPANTS.c.agent_id,
    PARTICIPANTS.c.archived,
    PARTICIPANTS.c.last_seq,
)
_index("suppressions_hidden", SUPPRESSIONS.c.identity, SUPPRESSIONS.c.conversation_id, where=IS_HIDDEN)
_index("suppressions_by_seq", SUPPRESSIONS.c.seq)
_index("receipts_by_seq", RECEIPTS.c.seq)


def written_moment(moment: Moment) -> str:
    """A moment as `meta` has it under `moment`."""
    return f"{moment.wall} {moment.steady}"


def read_moment(text: str) -> Moment:
    """The moment in it; 0, 0 stands for none."""
    wall, steady = text.split()
    return Moment(int(wall), int(steady))


def insert_missing(table: sa.Table) -> dict[str, sa.Insert]:
    """An INSERT that passes over rows whose key is there, by dialect."""
    return {
        "sqlite": sqlite.insert(table).on_conflict_do_nothing(),
        "postgresql": postgresql.insert(table).on_conflict_do_nothing(),
    }


def create(connection: sa.Connection) -> None:
    """Make the first schema in an empty database, and its epoch."""
    for statement in first_schema.statements(connection.dialect.name):
        connection.exec_driver_sql(statement)
    connection.execute(
        sa.insert(META),
        [
            {"name": "epoch", "value": uuid.uuid4().hex},
            {"name": "last_seq", "value": "0"},
            {"name": "moment", "value": written_moment(Moment(0, 0))},
        ],
    )


def renew_epoch(connection: sa.Connection) -> str:
    """Give the database another epoch, which is returned: no cursor that was given out holds any more."""
    epoch = uuid.uuid4().hex
    connection.execute(sa.update(META).where(META.c.name == "epoch").values(value=epoch))
    return epoch


MIGRATIONS = (create,)
"""The steps that `migrations.migrate` carries out, oldest first; a released one is never changed."""
