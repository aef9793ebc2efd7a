"""A restart that finds 100,000 retries due: how soon the first goes out, and that none goes twice.

The retries are written into the database as a broker writes them. Then the broker starts, delivers
for a moment, is killed, starts again, delivers and stops: whatever was sent more often than it was
settled has to have been in flight at the kill, which the database then still shows as claimed.
"""

import asyncio
import json
import sqlite3
import threading
import time
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from bench import delivering
from bench.framework import Bench, NotMeasured, Row, new_folder, unmeasured
from bench.ibrik import broker_with, get_json
from bench.sink import Sink, running_sink
from ibrik_broker.metadata.database import Database
from ibrik_broker.metadata.deliveries import Changes, DeliveryStore, RetryRow
from tests.support.broker import Broker, running_broker

TOPIC = "retries"
NAME = "billing"
VALUE = b"x" * 100
CONCURRENCY = 64
START_BAR_S = 5.0
AGE_MS = 60_000
"""How long ago the first attempts were."""


def measure(bench: Bench) -> list[Row]:
    count = bench.scaled(100_000, 20_000)
    try:
        with running_sink() as sink:
            seen = [_restart(bench, sink, count) for _ in range(bench.rounds)]
    except NotMeasured as missing:
        return [unmeasured(_title(count), f"< {START_BAR_S:.0f} s", str(missing))]
    first_s = bench.median(each.first_s for each in seen)
    open_s = bench.median(each.open_s for each in seen)
    worst = max(seen, key=lambda each: each.repeated - each.in_flight)
    return [
        Row(
            f"{_title(count)}: process start to the first delivery",
            f"{first_s:.2f} s",
            f"doors open after {open_s:.2f} s",
            values={"seconds": first_s, "open_seconds": open_s},
        ).judged(f"< {START_BAR_S:.0f} s", first_s < START_BAR_S),
        Row(
            f"{_title(count)}: sent twice over a SIGKILL and a stop",
            f"{worst.repeated} of {worst.sent:,}",
            f"in flight at the kill {worst.in_flight}",
            values={"repeated": worst.repeated, "in_flight": worst.in_flight, "sent": worst.sent},
        ).judged("≤ those in flight", all(0 <= each.repeated <= each.in_flight for each in seen)),
    ]


def _title(count: int) -> str:
    return f"restart with {count:,} retries due"


@dataclass(frozen=True, slots=True)
class Restart:
    first_s: float
    """From the start of the process to the first delivery at the sink."""
    open_s: float
    """Until the broker says that it takes connections."""
    sent: int
    """What the sink got, before the kill and after it."""
    in_flight: int
    """Claimed when the broker was killed: may have been sent, and is not known to be."""
    repeated: int
    """Sent more often than once."""


def _restart(bench: Bench, sink: Sink, count: int) -> Restart:
    with new_folder() as name:
        folder = Path(name)
        _prepare(folder, sink, count)
        sink.reset()
        begun = time.monotonic()
        with running_broker(folder) as broker:
            open_s = time.monotonic() - begun
            first_s = sink.wait_for(1).first_s - begun
            threading.Event().wait(bench.seconds)
            broker.kill()
        in_flight = _claimed(broker)
        with running_broker(folder) as broker:
            sink.wait_for(sink.look().taken + 1)
            threading.Event().wait(bench.seconds)
            broker.terminate()
        sent, settled = sink.look().taken, count - _retries(broker)
    return Restart(first_s, open_s, sent, in_flight, repeated=sent - settled)


def _prepare(folder: Path, sink: Sink, count: int) -> None:
    """A stopped broker whose subscription has nothing before it but due retries."""
    with broker_with(folder, {TOPIC: {}}) as broker:
        delivering.fill(broker, TOPIC, VALUE, count, batch=5_000)
        channel = {"http": {"url": sink.url()}, "limits": {"concurrency": CONCURRENCY}}
        delivering.create(broker, "Channel", NAME, **channel)
        wish = {"topicRef": {"name": TOPIC}, "channelRef": {"name": NAME}, "mode": "push"}
        delivering.create(broker, "Subscription", NAME, start={"from": "latest"}, **wish)
        subscription = get_json(f"{broker.http_url}/v1/subscriptions/{NAME}")
        assert broker.terminate() == 0, broker.errors.read_text()
    asyncio.run(_park(broker, subscription["status"]["subscriptionId"], count))


async def _park(broker: Broker, flow_id: str, count: int) -> None:
    """Each message of the topic failed once and is due now."""
    cluster_id = (broker.data / "CLUSTER_ID").read_text().strip()
    database = await Database.open(f"sqlite:///{broker.data}/metadata.db", cluster_id)
    now_ms = time.time_ns() // 10**6
    first_ms = now_ms - AGE_MS
    rows = [RetryRow(flow_id, 0, offset, 1, first_ms, now_ms, None) for offset in range(count)]
    try:
        await DeliveryStore(database).commit(Changes(retries=rows))
    finally:
        await database.close()


def _claimed(broker: Broker) -> int:
    """Messages that are handed out and not settled, as the database of a killed broker says."""
    with closing(sqlite3.connect(broker.data / "metadata.db")) as database:
        rows = database.execute("SELECT claimed FROM cursors").fetchall()
    return sum(end - start for (text,) in rows for start, end, *_ in json.loads(text))


def _retries(broker: Broker) -> int:
    with closing(sqlite3.connect(broker.data / "metadata.db")) as database:
        ((count,),) = database.execute("SELECT count(*) FROM retries").fetchall()
    return int(count)
