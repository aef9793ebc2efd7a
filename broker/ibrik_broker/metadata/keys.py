"""Secret keys that the broker makes for itself, once for each database."""

import secrets
import time

from sqlalchemy import select

from ibrik_broker.metadata.database import Database
from ibrik_broker.metadata.models import KeyTable

LEASE_KEY = "lease"
KEY_BYTES = 32


async def lease_key(database: Database) -> bytes:
    """The key that signs leases: the same for every broker on this database, and after a restart.

    Brokers that start together all offer one; the first that commits wins.
    """
    offer = (
        database.insert(KeyTable)
        .values(
            name=LEASE_KEY,
            value=secrets.token_bytes(KEY_BYTES),
            created_ms=time.time_ns() // 1_000_000,
        )
        .on_conflict_do_nothing()
    )
    async with database.transaction() as connection:
        await connection.execute(offer)
        kept = await connection.execute(select(KeyTable.value).where(KeyTable.name == LEASE_KEY))
        value: bytes = kept.scalar_one()
    return value
