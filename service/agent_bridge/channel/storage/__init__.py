"""Messages and acks on disk: one schema for SQLite and PostgreSQL, one writer with group commit."""
