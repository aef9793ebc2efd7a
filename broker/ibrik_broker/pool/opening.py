"""At the start: become one of a pool, or make sure that there is none that this one breaks into."""

import time

from ibrik_api.errors import Refusal
from ibrik_broker.metadata.brokers import BrokerRow, BrokerRows
from ibrik_broker.metadata.database import Database
from ibrik_broker.metadata.keys import pool_key
from ibrik_broker.pool.pool import Pool
from ibrik_broker.settings import Settings
from ibrik_log.volume import Volume


async def open_pool(settings: Settings, volume: Volume, database: Database) -> Pool | None:
    """None for a broker that is alone. Raises Refusal `invalid-request`."""
    rows, host = BrokerRows(database), settings.pool.advertise_host
    if host is None:
        await _refuse_pool_of_others(rows, volume)
        return None
    me = BrokerRow(
        id=volume.volume_id,
        name=settings.broker_name,
        host=host,
        http_port=0,
        admin_port=0,
        size_bytes=0,
        started_ms=0,
        updated_ms=0,
    )
    pool = Pool(rows, me, await pool_key(database), lambda: time.time_ns() // 1_000_000)
    await pool.refresh()
    return pool


async def _refuse_pool_of_others(rows: BrokerRows, volume: Volume) -> None:
    """Alone, a broker takes every topic of the database for its own, also those of others."""
    others = [row.name for row in await rows.all() if row.id != volume.volume_id]
    if others:
        raise Refusal(
            "invalid-request",
            f"The metadata database is that of a pool ({', '.join(others)}), and this broker does "
            "not say that it is one of them. Set pool.advertise_host (IBRIK_POOL__ADVERTISE_HOST) "
            "to the name at which the others reach it, or give it a database of its own.",
        )
