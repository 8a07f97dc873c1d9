"""The schema as the first step of the migrations makes it. Never changed: later steps change what it made."""

from __future__ import annotations

from typing import Final

STATEMENTS: Final = (
    """
    CREATE TABLE acks (
        seq {row_number} NOT NULL,
        identity TEXT NOT NULL,
        message_id TEXT NOT NULL,
        conversation_id TEXT NOT NULL,
        state SMALLINT NOT NULL,
        actor_id TEXT NOT NULL,
        actor_type TEXT NOT NULL,
        acked_at BIGINT NOT NULL,
        counted SMALLINT NOT NULL,
        detail TEXT,
        PRIMARY KEY (seq)
    )
    """,
    """
    CREATE TABLE broadcast_marks (
        identity TEXT NOT NULL,
        agent_id TEXT NOT NULL,
        seen_up_to BIGINT NOT NULL,
        PRIMARY KEY (identity, agent_id)
    ){without_row_ids}
    """,
    """
    CREATE TABLE conversations (
        identity TEXT NOT NULL,
        conversation_id TEXT NOT NULL,
        message_count INTEGER NOT NULL,
        pending_count INTEGER NOT NULL,
        last_seq BIGINT NOT NULL,
        last_ack_state SMALLINT,
        outcome SMALLINT,
        status SMALLINT NOT NULL,
        updated_at BIGINT NOT NULL,
        touched BIGINT NOT NULL,
        archived SMALLINT NOT NULL,
        PRIMARY KEY (identity, conversation_id)
    )
    """,
    """
    CREATE TABLE messages (
        seq {row_number} NOT NULL,
        identity TEXT NOT NULL,
        message_id TEXT NOT NULL,
        conversation_id TEXT NOT NULL,
        from_agent_id TEXT NOT NULL,
        to_agent_id TEXT,
        reply_to TEXT,
        kind TEXT NOT NULL,
        created_at BIGINT NOT NULL,
        expires_at BIGINT,
        due BIGINT,
        expects_response SMALLINT NOT NULL,
        requires_ack SMALLINT NOT NULL,
        attempt_count INTEGER NOT NULL,
        state SMALLINT NOT NULL,
        open SMALLINT NOT NULL,
        payload TEXT NOT NULL,
        PRIMARY KEY (seq)
    )
    """,
    """
    CREATE TABLE meta (
        name TEXT NOT NULL,
        value TEXT NOT NULL,
        PRIMARY KEY (name)
    )
    """,
    """
    CREATE TABLE participants (
        identity TEXT NOT NULL,
        conversation_id TEXT NOT NULL,
        agent_id TEXT NOT NULL,
        last_seq BIGINT NOT NULL,
        archived SMALLINT NOT NULL,
        PRIMARY KEY (identity, conversation_id, agent_id)
    ){without_row_ids}
    """,
    """
    CREATE TABLE receipts (
        identity TEXT NOT NULL,
        agent_id TEXT NOT NULL,
        seq BIGINT NOT NULL,
        PRIMARY KEY (identity, agent_id, seq)
    ){without_row_ids}
    """,
    """
    CREATE TABLE suppressions (
        identity TEXT NOT NULL,
        conversation_id TEXT NOT NULL,
        agent_id TEXT NOT NULL,
        hidden SMALLINT NOT NULL,
        seq BIGINT NOT NULL,
        PRIMARY KEY (identity, conversation_id, agent_id)
    ){without_row_ids}
    """,
    "CREATE INDEX acks_by_identity ON acks (identity, seq)",
    "CREATE INDEX acks_by_message ON acks (identity, message_id, seq)",
    "CREATE INDEX acks_counted ON acks (identity, conversation_id, seq) WHERE counted = 1",
    "CREATE INDEX conversations_by_age ON conversations (touched)",
    "CREATE INDEX conversations_by_identity ON conversations (identity, archived, last_seq)",
    "CREATE INDEX conversations_by_seq ON conversations (last_seq)",
    """
    CREATE INDEX conversations_by_status ON conversations (identity, archived, status, last_seq)
        WHERE archived = 0
    """,
    "CREATE INDEX conversations_finished ON conversations (touched) WHERE archived = 0 AND status > 1",
    """
    CREATE INDEX messages_broadcast ON messages (identity, to_agent_id, seq, from_agent_id, kind, due)
        WHERE to_agent_id IS NULL
    """,
    "CREATE UNIQUE INDEX messages_by_id ON messages (identity, message_id)",
    "CREATE INDEX messages_by_identity ON messages (identity, seq)",
    "CREATE INDEX messages_by_thread ON messages (identity, conversation_id, seq)",
    "CREATE INDEX messages_closed ON messages (identity, to_agent_id, seq) WHERE open = 0",
    """
    CREATE INDEX messages_due ON messages (due)
        WHERE open = 1 AND due IS NOT NULL AND (expects_response = 1 OR to_agent_id IS NOT NULL)
    """,
    "CREATE INDEX messages_open ON messages (identity, to_agent_id, seq) WHERE open = 1",
    """
    CREATE INDEX messages_pending ON messages (identity, conversation_id, open, expects_response, seq)
        WHERE open = 1 AND expects_response = 1
    """,
    "CREATE INDEX messages_with_deadline ON messages (identity, to_agent_id, seq) WHERE due IS NOT NULL",
    "CREATE INDEX participants_by_agent ON participants (identity, agent_id, archived, last_seq)",
    "CREATE INDEX receipts_by_seq ON receipts (seq)",
    "CREATE INDEX suppressions_by_seq ON suppressions (seq)",
    "CREATE INDEX suppressions_hidden ON suppressions (identity, conversation_id) WHERE hidden = 1",
)
"""What makes the tables and their indexes, in an empty database; see `statements`."""


def statements(dialect: str) -> list[str]:
    """The statements as "sqlite" or "postgresql" takes them."""
    is_sqlite = dialect == "sqlite"
    return [
        statement.format(
            row_number="INTEGER" if is_sqlite else "BIGINT",
            without_row_ids=" WITHOUT ROWID" if is_sqlite else "",
        )
        for statement in STATEMENTS
    ]
