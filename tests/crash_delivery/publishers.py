"""Publishers of keyed messages with ids: one batch in flight each, repeated until answered."""

import asyncio
import base64
import json
import random
from collections.abc import Callable
from dataclasses import dataclass, field

import aiohttp

from tests.crash_delivery.diary import Place
from tests.crash_delivery.stage import COLOURS, KEYS
from tests.crash_delivery.values import value_of

BATCH_MAX = 6
PAUSE_S = 0.03
"""Between two batches: a delivery costs more than a message, and each has several."""
REFUSED_PAUSE_S = 0.05


class UnexpectedAnswer(Exception):
    """The broker refused what it has to accept; the run is of no use."""


@dataclass(slots=True)
class Published:
    """What was acknowledged: the place of each message, by topic and name."""

    places: dict[tuple[str, str], Place] = field(default_factory=dict)
    moved: list[str] = field(default_factory=list)
    """Messages that two answers gave different places: no log is needed to know."""

    def acknowledge(self, topic: str, name: str, place: Place) -> None:
        known = self.places.setdefault((topic, name), place)
        if known != place:
            self.moved.append(f"{topic}: {name} was acknowledged at {known}, then at {place}")


class Publisher:
    def __init__(self, number: int, topic: str, rng: random.Random, published: Published) -> None:
        self._number = number
        self._topic = topic
        self._rng = rng
        self._published = published
        self._sequence = 0
        self._unanswered: list[str] = []
        self._body = b""

    async def run(self, session: aiohttp.ClientSession, on_progress: Callable[[], None]) -> None:
        """Publish until the broker is gone; what it left unanswered comes first."""
        try:
            while True:
                if not self._unanswered:
                    self._build()
                await self._send(session)
                on_progress()
                await asyncio.sleep(self._rng.uniform(0, 2 * PAUSE_S))
        except (aiohttp.ClientError, OSError):
            return

    async def settle(self, session: aiohttp.ClientSession) -> None:
        """Repeat what was not answered."""
        if self._unanswered:
            await self._send(session)

    def _build(self) -> None:
        lines = []
        for _ in range(self._rng.randint(1, BATCH_MAX)):
            name = f"{self._number}:{self._sequence}"
            self._sequence += 1
            self._unanswered.append(name)
            message = {
                "id": name,
                "key": f"key-{self._rng.randrange(KEYS)}",
                "headers": {"colour": self._rng.choice(COLOURS)},
                "value_base64": base64.b64encode(value_of(name)).decode(),
            }
            lines.append(json.dumps(message).encode())
        self._body = b"\n".join(lines)

    async def _send(self, session: aiohttp.ClientSession) -> None:
        path = f"/v1/topics/{self._topic}/batch"
        headers = {"Content-Type": "application/x-ndjson"}
        while True:
            async with session.post(path, data=self._body, headers=headers) as answer:
                text = await answer.text()
            if answer.status not in (429, 503):
                break
            await asyncio.sleep(REFUSED_PAUSE_S)
        if answer.status not in (200, 201):
            raise UnexpectedAnswer(f"{path}: {answer.status} {text}")
        receipts = json.loads(text)["messages"]
        for name, receipt in zip(self._unanswered, receipts, strict=True):
            place = Place(receipt["partition"], receipt["offset"])
            self._published.acknowledge(self._topic, name, place)
        self._unanswered = []
