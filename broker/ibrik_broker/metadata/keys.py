"""Secret keys that the broker makes for itself, once for each database."""

import secrets
import time

from sqlalchemy import select

from ibrik_broker.metadata.database import Database
from ibrik_broker.metadata.models import KeyTable

LEASE_KEY, POOL_KEY = "lease", "pool"
KEY_BYTES = 32


async def lease_key(database: Database) -> bytes:
    """The key that signs leases: the same for all brokers on this database, after a restart too."""
    return await _key(database, LEASE_KEY)


async def pool_key(database: Database) -> bytes:
    """The key by which the brokers of a pool know each other."""
    return await _key(database, POOL_KEY)


async def _key(database: Database, name: str) -> bytes:
    """Brokers that start together all offer one; the first that commits wins."""
    offer = (
        database.insert(KeyTable)
        .values(
            name=name,
            value=secrets.token_bytes(KEY_BYTES),
            created_ms=time.time_ns() // 1_000_000,
        )
        .on_conflict_do_nothing()
    )
    async with database.transaction() as connection:
        await connection.execute(offer)
        kept = await connection.execute(select(KeyTable.value).where(KeyTable.name == name))
        value: bytes = kept.scalar_one()
    return value
