"""The metadata store: all that is not a message, in SQLite or Postgres. Alone in speaking SQL."""
