"""Reads logs back as raw batches over HTTP, decoded by aiokafka: no code of ours but the doors."""

from collections.abc import AsyncIterator

import aiohttp
from aiokafka.record.memory_records import MemoryRecords

from tests.crash.ledger import LogName, parse_value

READ_BYTES = 4 * 2**20

ScannedRecord = tuple[int, tuple[int, int] | None]


async def ends(session: aiohttp.ClientSession, topic: str) -> dict[int, int]:
    """The high watermark of each partition."""
    async with session.get(f"/v1/topics/{topic}/partitions") as answer:
        answer.raise_for_status()
        listed = await answer.json()
    return {each["partition"]: each["latest"] for each in listed["partitions"]}


async def scan(
    session: aiohttp.ClientSession, log: LogName, from_offset: int, end: int
) -> AsyncIterator[list[ScannedRecord]]:
    """All records in [from_offset, end), a request's worth at a time."""
    path = f"/v1/topics/{log.topic}/partitions/{log.partition}/messages"
    while from_offset < end:
        async with session.get(
            path,
            params={"offset": from_offset, "max_bytes": READ_BYTES},
            headers={"Accept": "application/vnd.ibrik.batch"},
        ) as answer:
            answer.raise_for_status()
            body = await answer.read()
        records = [record for record in decode(body) if record[0] >= from_offset]
        if not records:
            return  # The checker names what is missing.
        from_offset = records[-1][0] + 1
        yield records


def decode(body: bytes) -> list[ScannedRecord]:
    batches = MemoryRecords(body)
    records: list[ScannedRecord] = []
    while batches.has_next():
        batch = batches.next_batch()
        assert batch.validate_crc(), "a batch with a wrong CRC was served"
        records += [(record.offset, parse_value(record.value)) for record in batch]
    return records
