"""The broker's memory of everything that is not a message: SQLAlchemy on SQLite or Postgres."""
