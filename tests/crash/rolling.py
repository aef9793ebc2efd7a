"""Rolls topics while others publish, and remembers how far the broker said they are sealed."""

import asyncio
import contextlib
import random

import aiohttp

from tests.crash.checker import Findings
from tests.crash.ledger import LogName

PAUSE_MS = 40


class Roller:
    """What was answered as sealed is sealed in every later life."""

    def __init__(self, topics: list[str], rng: random.Random) -> None:
        self.rolls = 0
        self._topics = topics
        self._rng = rng
        self._sealed: dict[LogName, int] = {}

    async def run(self, admin_url: str) -> None:
        """Until the broker is gone."""
        with contextlib.suppress(aiohttp.ClientError, OSError):
            async with aiohttp.ClientSession(admin_url) as session:
                while True:
                    await self._roll(session, self._rng.choice(self._topics))
                    await asyncio.sleep(self._rng.uniform(0, PAUSE_MS / 1000))

    async def _roll(self, session: aiohttp.ClientSession, topic: str) -> None:
        async with session.post(f"/admin/v1/topics/{topic}:roll") as answer:
            if answer.status != 200:
                return  # it is stopping
            self.rolls += 1
            for place in (await answer.json())["partitions"]:
                self._sealed[LogName(topic, place["partition"])] = place["sealedUpTo"]

    async def look_back(self, admin_url: str, findings: Findings) -> None:
        """Compare with what this life of the broker finds sealed."""
        async with aiohttp.ClientSession(admin_url) as session:
            for topic in self._topics:
                async with session.get(f"/admin/v1/topics/{topic}/archive") as answer:
                    places = (await answer.json())["partitions"]
                for place in places:
                    log = LogName(topic, place["partition"])
                    told, found = self._sealed.get(log, 0), place["sealedUpTo"]
                    if found < told:
                        findings.note(
                            "lost", f"{topic}/{log.partition} was sealed up to {told}, now {found}"
                        )
