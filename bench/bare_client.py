"""`python -m bench.bare_client URL CONCURRENCY COUNT`: the broker's HTTP client without a broker.

Sends COUNT messages with the headers that a delivery has, CONCURRENCY at a time, and prints how
many a second were answered.
"""

import asyncio
import sys
import time

import aiohttp
import uvloop

from ibrik_broker.delivery.senders.headers import fixed_headers, push_headers
from ibrik_broker.delivery.senders.parcel import Parcel
from ibrik_log.record import StoredRecord

BODY = b"x" * 1024
NOW_MS = 1_795_773_600_000


def headers() -> dict[str, str]:
    record = StoredRecord(1_234_567, NOW_MS, None, BODY, [])
    parcel = Parcel("push", "b7e6", 0, record, subscription="push", channel="push")
    return dict(push_headers(fixed_headers({}, None), parcel, NOW_MS, None))


async def send(url: str, concurrency: int, count: int) -> float:
    """Messages a second."""
    wanted, numbers = headers(), iter(range(count))
    connector = aiohttp.TCPConnector(limit=0)
    async with aiohttp.ClientSession(
        connector=connector, cookie_jar=aiohttp.DummyCookieJar()
    ) as session:

        async def work() -> None:
            for _ in numbers:
                async with session.post(url, data=BODY, headers=wanted) as response:
                    await response.read()
                    assert response.status == 204, response.status

        begun = time.perf_counter()
        async with asyncio.TaskGroup() as workers:
            for _ in range(concurrency):
                workers.create_task(work())
        return count / (time.perf_counter() - begun)


def main() -> None:
    url, concurrency, count = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        print(runner.run(send(url, concurrency, count)))


if __name__ == "__main__":
    main()
