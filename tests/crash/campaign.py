"""Lives and deaths of one broker on one folder: load, SIGKILL, restart, retry, check.

One seed decides when each life ends, how many messages are in flight and which lives end before
the broker was ready. The moment of death is counted in acknowledgements, plus a few milliseconds:
so a slow machine is killed in the same states as a fast one.
"""

import asyncio
import contextlib
import random
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import aiohttp

from tests.crash import reading
from tests.crash.checker import Checker, Findings
from tests.crash.http_load import (
    BatchProducer,
    HttpProducer,
    SequencedProducer,
    SingleProducer,
    UnexpectedAnswer,
)
from tests.crash.ledger import Ledger, LogName, parts_of
from tests.crash.rolling import Roller
from tests.crash.tcp_load import TcpProducer
from tests.support.broker import Broker, launch, running_broker

# Small segments, so that they roll; `written` is answered before the flush and survives SIGKILL.
# A window of an hour: retries come after any number of lives, however slow the machine is.
TOPICS: dict[str, dict[str, Any]] = {
    "clicks": {
        "partitions": 3,
        "durability": "written",
        "segment": {"bytes": "4Mi"},
        "deduplicationWindow": "1h",
    },
    "orders": {
        "partitions": 2,
        "durability": "flushed",
        "segment": {"bytes": "1Mi"},
        "deduplicationWindow": "1h",
    },
}
LIFE_TIMEOUT_S = 60.0
REQUEST_TIMEOUT_S = 30.0
# One death in this many comes while the broker starts or recovers, and one while it is asked again.
EARLY_DEATH_IN = 8
EARLY_DEATH_MS = 1_500
RETRIED_DEATH_MS = 40
LOADED_DEATH_MS = 30
# Of those that die under load, one in this many was asked to stop, and was on its way to.
STOPPING_DEATH_IN = 6
STOPPING_DEATH_MS = 300


class Campaign:
    def __init__(self, folder: Path, seed: int, runs: int, minimum_acknowledged: int) -> None:
        self.ledger = Ledger()
        self.kills = 0
        self._folder = folder
        self._rng = random.Random(seed)
        self._runs = runs
        self._minimum_acknowledged = minimum_acknowledged
        # What a life under load publishes on average: with those that die early, a little more than
        # is asked for in all.
        self._per_life = minimum_acknowledged * 3 // (2 * max(runs, 1)) + 1
        self._checker = Checker(self.ledger)
        self._logs = [
            LogName(topic, partition)
            for topic, spec in TOPICS.items()
            for partition in range(spec["partitions"])
        ]
        for log in self._logs:
            self.ledger.log_number(log)
        self.roller = Roller(list(TOPICS), random.Random(seed + 1))
        self._tcp = [TcpProducer(self.ledger, log) for log in self._logs]
        self._tcp += [TcpProducer(self.ledger, self._logs[0])]
        self._http: list[HttpProducer] = [
            *(SingleProducer(self.ledger, topic) for topic in TOPICS),
            BatchProducer(self.ledger, "orders", 2, size=50),
            BatchProducer(self.ledger, "clicks", 3, size=20),
            *(SequencedProducer(self.ledger, log, size=40) for log in self._logs[:3]),
        ]

    @property
    def findings(self) -> Findings:
        return self._checker.findings

    async def run(self, on_run: Callable[[int], None]) -> Findings:
        """All runs, and more if too little was acknowledged; ends at the first finding."""
        await self._prepare()
        while self.kills < self._runs or (
            self.ledger.acknowledged < self._minimum_acknowledged and self.kills < 2 * self._runs
        ):
            death = self._rng.randrange(EARLY_DEATH_IN)
            if death == 0:
                await self._die_early()
            elif death == 1:
                await self._die_while_retried()
            elif not await self._live_and_die():
                return self.findings
            self.kills += 1
            on_run(self.kills)
        return await self._check_all()

    async def _prepare(self) -> None:
        with running_broker(self._folder) as broker:
            async with _session(broker) as session:
                for topic, spec in TOPICS.items():
                    await _create_topic(session, topic, spec)
                for producer in self._http:
                    await producer.prepare(session)
            broker.terminate()

    async def _die_early(self) -> None:
        process = launch(self._folder)
        await asyncio.sleep(self._rng.uniform(0, EARLY_DEATH_MS / 1000))
        process.kill()
        process.communicate()

    async def _die_while_retried(self) -> None:
        """A retry whose outcome is unknown too: it is retried again in the next life."""
        with running_broker(self._folder) as broker:
            async with _session(broker) as session:
                moment = self._rng.uniform(0, RETRIED_DEATH_MS / 1000)
                asyncio.get_running_loop().call_later(moment, broker.kill)
                with contextlib.suppress(aiohttp.ClientError, OSError):
                    for producer in self._http:
                        await producer.settle(session)
            broker.kill()

    async def _live_and_die(self) -> bool:
        """Look back at the lives before, then publish until death; False ends the campaign."""
        with running_broker(self._folder) as broker:
            async with _session(broker) as session:
                await self._look_back(session)
                await self.roller.look_back(broker.admin_url, self.findings)
                if not self.findings.are_none:
                    return False
                await self._die_under_load(broker, session)
        return True

    async def _look_back(self, session: aiohttp.ClientSession) -> None:
        """Repeat what was not answered, then read what is new since the last look."""
        for producer in self._http:
            await producer.settle(session)
        await self._scan_on(session, self._checker)
        recent = self.ledger.take_recent()
        self._checker.judge(message for message in recent if not self._is_hidden(message))
        self.ledger.recent += filter(self._is_hidden, recent)

    def _is_hidden(self, message: tuple[int, int]) -> bool:
        """Whether it was acknowledged when written, and its flush, which shows it, is to come."""
        log_number, offset = parts_of(self.ledger.place(*message))
        log = self._logs[log_number]
        is_late = TOPICS[log.topic]["durability"] == "written"
        return is_late and offset >= self._checker.next_offset(log_number)

    async def _die_under_load(self, broker: Broker, session: aiohttp.ClientSession) -> None:
        target = self.ledger.acknowledged + self._rng.randrange(2 * self._per_life)
        reached = asyncio.Event()

        def on_progress() -> None:
            if self.ledger.acknowledged >= target:
                reached.set()

        async with asyncio.TaskGroup() as load:
            for tcp in self._tcp:
                window = self._rng.choice((1, 8, 64, 256))
                load.create_task(tcp.run(broker.tcp_address, window, on_progress))
            for http in self._http:
                load.create_task(http.run(session, on_progress))
            load.create_task(self.roller.run(broker.admin_url))
            try:
                await asyncio.wait_for(reached.wait(), LIFE_TIMEOUT_S)
                if self._rng.randrange(STOPPING_DEATH_IN) == 0:
                    broker.process.terminate()
                    await asyncio.sleep(self._rng.uniform(0, STOPPING_DEATH_MS / 1000))
                else:
                    await asyncio.sleep(self._rng.uniform(0, LOADED_DEATH_MS / 1000))
            finally:
                broker.kill()

    async def _check_all(self) -> Findings:
        """Read everything from the first offset, by a checker that trusts no earlier one."""
        checker = Checker(self.ledger)
        with running_broker(self._folder) as broker:
            async with _session(broker) as session:
                await self._look_back(session)
            # A clean stop flushes what was only written, so that all can be seen.
            broker.terminate()
        with running_broker(self._folder) as broker:
            async with _session(broker) as session:
                await self._scan_on(session, checker)
            broker.terminate()
        checker.judge_all()
        return checker.findings

    async def _scan_on(self, session: aiohttp.ClientSession, checker: Checker) -> None:
        for topic in TOPICS:
            ends = await reading.ends(session, topic)
            for partition, end in sorted(ends.items()):
                log = LogName(topic, partition)
                number = self.ledger.log_number(log)
                async for records in reading.scan(session, log, checker.next_offset(number), end):
                    checker.scan(number, records)


async def _create_topic(session: aiohttp.ClientSession, name: str, spec: dict[str, Any]) -> None:
    resource = {
        "apiVersion": "ibrik.dev/v1beta1",
        "kind": "Topic",
        "metadata": {"name": name},
        "spec": spec,
    }
    async with session.post("/v1/topics", json=resource) as answer:
        if answer.status not in (200, 201):
            raise UnexpectedAnswer(f"create {name}: {answer.status} {await answer.text()}")


@contextlib.asynccontextmanager
async def _session(broker: Broker) -> AsyncIterator[aiohttp.ClientSession]:
    timeout = aiohttp.ClientTimeout(total=REQUEST_TIMEOUT_S)
    async with aiohttp.ClientSession(broker.http_url, timeout=timeout) as session:
        yield session
