"""The custom resources as pydantic models, one kind per file."""
