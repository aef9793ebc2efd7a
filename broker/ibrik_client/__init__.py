"""The asyncio client: publish, read, follow, administer."""
