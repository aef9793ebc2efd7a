"""Group commit at the engine, without any door: 32 producers with one in flight, and one."""

import asyncio
import time
from pathlib import Path
from typing import NoReturn

import uvloop

from bench.framework import Bench, Row, new_folder, rate, times
from ibrik_api.resources.topic import TopicSpec
from ibrik_broker.partitions.engine import Engine, EngineConfig
from ibrik_broker.partitions.messages import Message
from ibrik_broker.partitions.topic import Topic
from ibrik_log.errors import StorageFailed
from ibrik_log.files import RealDisk
from ibrik_log.record import Record
from ibrik_log.volume import Volume

PRODUCERS = 32
BAR = 8.0
TOPIC_ID = "00000000-0000-4000-8000-000000000001"
MESSAGE = Message(Record(None, b"x" * 100))


def measure(bench: Bench) -> list[Row]:
    with new_folder() as name:
        one, many = uvloop.run(_run(bench, Path(name, "data")))
    return [
        Row(
            f"group commit at the engine: {PRODUCERS} producers, one in flight",
            rate(many),
            f"one producer {rate(one)}",
            times(many / one),
            values={"rate": many, "one_rate": one},
        ).judged(f"≥ {BAR:.0f}x", many >= BAR * one)
    ]


async def _run(bench: Bench, data: Path) -> tuple[float, float]:
    disk = RealDisk()
    volume = Volume.open(disk, data)
    volume.create_topic(TOPIC_ID, "engine", created_ms=_now_ms(), config_hash="", partitions=1)
    engine = Engine(disk, volume, EngineConfig(), clock_ms=_now_ms, on_failure=_fail)
    engine.start()
    topic = await engine.open_topic(TOPIC_ID, "engine", TopicSpec())
    rounds = [
        (
            await _rate(engine, topic, 1, bench.seconds),
            await _rate(engine, topic, PRODUCERS, bench.seconds),
        )
        for _ in range(bench.rounds)
    ]
    await engine.close()
    volume.close()
    return bench.median(each[0] for each in rounds), bench.median(each[1] for each in rounds)


async def _rate(engine: Engine, topic: Topic, producers: int, seconds: float) -> float:
    end = time.perf_counter() + seconds
    counts = [0] * producers

    async def produce(index: int) -> None:
        while time.perf_counter() < end:
            await engine.publish(topic, [MESSAGE])
            counts[index] += 1

    async with asyncio.TaskGroup() as group:
        for index in range(producers):
            group.create_task(produce(index))
    return sum(counts) / seconds


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


def _fail(error: StorageFailed) -> NoReturn:
    raise error
