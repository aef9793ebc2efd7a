"""A table of the archive job in the hands of others. Not in `make test`: Maven fetches Spark."""
