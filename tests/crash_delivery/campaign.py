"""Lives and deaths of one broker that delivers: load, SIGKILL, restart, and a last life to drain.

One seed decides what is published, how consumers and sinks behave, and when each life ends. The
moment of death is counted in acknowledged messages, plus a few milliseconds: so a slow machine is
killed in the same states as a fast one.
"""

import asyncio
import contextlib
import random
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import aiohttp

from tests.crash_delivery import door
from tests.crash_delivery.checker import (
    Cursors,
    DeadLetter,
    Findings,
    Stored,
    by_place,
    check_parts,
    check_published,
)
from tests.crash_delivery.consumers import Consumer, Leased
from tests.crash_delivery.diary import Place, read
from tests.crash_delivery.publishers import Published, Publisher
from tests.crash_delivery.sinks import Sinks
from tests.crash_delivery.stage import PARTS, TOPICS
from tests.support.broker import Broker, launch, running_broker

PER_LIFE = 80
"""Messages published in a life on average: what can be delivered several times meanwhile."""
LIFE_TIMEOUT_S = 60.0
DRAIN_TIMEOUT_S = 120.0
# One death in this many comes while the broker starts, and one while it stops.
EARLY_DEATH_IN = 8
STOPPING_DEATH_IN = 8
EARLY_DEATH_SHARE = 1.2
"""Of the time that the last start took."""
STOPPING_DEATH_MS = 300
LOADED_DEATH_MS = 250
CURSORS_EVERY_S = 0.1
RESUME_EVERY_S = 0.3
DRAINED_EVERY_S = 0.1
PUBLISHERS = ("orders", "orders", "events", "jobs")
CONSUMERS = ("workers", "workers", "clerks", "clerks")


class Campaign:
    def __init__(self, folder: Path, database_url: str | None, seed: int, runs: int) -> None:
        self.findings = Findings()
        self.published = Published()
        self.kills = 0
        self.delivered = 0
        self.dead_letters = 0
        self._folder = folder
        self._env = {} if database_url is None else {"IBRIK_METADATA__URL": database_url}
        self._runs = runs
        self._rng = random.Random(seed)
        self._start_s = 1.0
        self._left: dict[str, int] = {}
        self._logs: dict[str, dict[Place, Stored]] = {}
        self._dead: dict[str, dict[Place, DeadLetter]] = {}
        self._cursors = Cursors(self.findings)
        self._leased = Leased()
        self._publishers = [
            Publisher(number, topic, random.Random(self._rng.randrange(2**32)), self.published)
            for number, topic in enumerate(PUBLISHERS)
        ]
        self._consumers = [
            Consumer(f"consumer-{number}", name, self._leased)
            for number, name in enumerate(CONSUMERS)
        ]

    @property
    def acknowledged(self) -> int:
        return len(self.published.places)

    async def run(self, sinks: Sinks, on_kill: Callable[[int], None]) -> None:
        """All lives but the judgement, which comes when the sinks have closed their diary."""
        async with self._life() as (_, session):
            await door.set_stage(session, sinks.url)
        while self.kills < self._runs:
            if self._rng.randrange(EARLY_DEATH_IN) == 0:
                await self._die_early()
            else:
                await self._live_and_die()
            self.kills += 1
            on_kill(self.kills)
        await self._drain(sinks)

    def judge(self, diary: Path) -> Findings:
        for name, count in self._left.items():
            self.findings.sentences.append(f"{name}: {count:,} messages were left at the end")
        events = [*read(diary), *self._leased.events]
        check_published(self.published.places, self._logs, self.findings)
        for sentence in self.published.moved:
            self.findings.note("below_once", sentence)
        self.delivered = check_parts(PARTS, self._logs, self._dead, events, self.findings)
        return self.findings

    async def _die_early(self) -> None:
        process = launch(self._folder, **self._env)
        await asyncio.sleep(self._rng.uniform(0, EARLY_DEATH_SHARE * self._start_s))
        process.kill()
        process.communicate()

    async def _live_and_die(self) -> None:
        target = self.acknowledged + self._rng.randrange(2 * PER_LIFE)
        reached = asyncio.Event()

        def on_progress() -> None:
            if self.acknowledged >= target:
                reached.set()

        async with self._life() as (broker, session), asyncio.TaskGroup() as load:
            for publisher in self._publishers:
                load.create_task(publisher.run(session, on_progress))
            self._accompany(load, session)
            try:
                await asyncio.wait_for(reached.wait(), LIFE_TIMEOUT_S)
                if self._rng.randrange(STOPPING_DEATH_IN) == 0:
                    broker.process.terminate()
                    await asyncio.sleep(self._rng.uniform(0, STOPPING_DEATH_MS / 1_000))
                else:
                    await asyncio.sleep(self._rng.uniform(0, LOADED_DEATH_MS / 1_000))
            finally:
                broker.kill()

    async def _drain(self, sinks: Sinks) -> None:
        """The last life: every receiver is healthy, and everything has to arrive."""
        async with aiohttp.ClientSession() as session, session.put(f"{sinks.url}/healthy"):
            pass
        for consumer in self._consumers:
            consumer.is_healthy = True
        async with self._life() as (broker, session), asyncio.TaskGroup() as load:
            for publisher in self._publishers:
                await publisher.settle(session)
            self._accompany(load, session)
            try:
                self._left = await self._wait_until_drained(session)
                await self._read_all(session)
            finally:
                broker.kill()

    @contextlib.asynccontextmanager
    async def _life(self) -> AsyncIterator[tuple[Broker, aiohttp.ClientSession]]:
        started = time.monotonic()
        with running_broker(self._folder, **self._env) as broker:
            self._start_s = time.monotonic() - started
            async with door.open_session(broker) as session:
                yield broker, session

    def _accompany(self, load: asyncio.TaskGroup, session: aiohttp.ClientSession) -> None:
        """What goes on in each life until the broker is gone."""
        for consumer in self._consumers:
            load.create_task(consumer.run(session))
        load.create_task(self._until_gone(CURSORS_EVERY_S, lambda: self._look(session)))
        load.create_task(
            self._until_gone(RESUME_EVERY_S, lambda: door.resume_channel(session, "gone"))
        )

    async def _until_gone(self, every_s: float, work: Callable[[], Awaitable[None]]) -> None:
        try:
            while True:
                await work()
                await asyncio.sleep(every_s)
        except (aiohttp.ClientError, OSError):
            return

    async def _look(self, session: aiohttp.ClientSession) -> None:
        for part in PARTS:
            for partition, offset in (await door.cursors(session, part)).items():
                self._cursors.take(part.name, partition, offset, self.kills)

    async def _wait_until_drained(self, session: aiohttp.ClientSession) -> dict[str, int]:
        """What is left of each subscription when nothing is, or when the time is over."""
        deadline = time.monotonic() + DRAIN_TIMEOUT_S
        while True:
            counts = {part.name: await door.unsettled(session, part) for part in PARTS}
            left = {name: count for name, count in counts.items() if count}
            if not left or time.monotonic() > deadline:
                return left
            await asyncio.sleep(DRAINED_EVERY_S)

    async def _read_all(self, session: aiohttp.ClientSession) -> None:
        for topic in TOPICS:
            self._logs[topic] = await door.read_log(session, topic)
        for part in PARTS:
            letters = await door.read_dead_letters(session, part)
            self._dead[part.name] = by_place(part, letters, self.findings)
            self.dead_letters += len(self._dead[part.name])
