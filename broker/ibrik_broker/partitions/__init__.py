"""The partition engine: input buffers, the log writer, deduplication, tail cache, wake-ups."""
