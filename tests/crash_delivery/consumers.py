"""Consumers of the shared pull subscriptions: they acknowledge, give back, and sometimes forget.

What they decide depends on the message and its attempt. Some acknowledge late, perhaps in the next
life of the broker, when the lease may still be good or not.
"""

import asyncio
import time
from itertools import count
from typing import Any
from zlib import crc32

import aiohttp

from tests.crash_delivery.diary import Begun, Ended, Event, Place, Settled
from tests.crash_delivery.publishers import UnexpectedAnswer
from tests.crash_delivery.values import decode_name

FIRST_NUMBER = 1 << 40
"""Sinks count their attempts from 0."""
LEASES_MAX = 20
WAIT = "200ms"
RETRY_PAUSE_S = 0.05

TAKEN, FAILED = 200, 500


class Leased:
    """The diary of all consumers."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.numbers = count(FIRST_NUMBER)

    def begin(self, subscription: str, message: Any) -> int:
        number = next(self.numbers)
        self.events.append(
            Begun(
                number,
                time.time_ns() // 1_000_000,
                subscription,
                Place(message["partition"], message["offset"]),
                message["attempt"],
                decode_name(message),
            )
        )
        return number

    def end(self, numbers: list[int], status: int) -> list[int]:
        """Note what a consumer is about to say; where in the diary that stands."""
        first = len(self.events)
        self.events += [Ended(number, status) for number in numbers]
        return list(range(first, len(self.events)))

    def take_back(self, position: int) -> None:
        """The broker says that it did not count."""
        self.events[position] = Ended(self.events[position].number, None)


class Consumer:
    def __init__(self, name: str, subscription: str, leased: Leased) -> None:
        self._name = name
        self._subscription = subscription
        self._path = f"/v1/subscriptions/{subscription}"
        self._leased = leased
        self._late: list[tuple[int, str]] = []
        self.is_healthy = False

    async def run(self, session: aiohttp.ClientSession) -> None:
        """Lease and settle until the broker is gone."""
        try:
            while True:
                late, self._late = self._late, []
                await self._ack(session, late)
                await self._work(session)
        except (aiohttp.ClientError, OSError):
            return

    async def _work(self, session: aiohttp.ClientSession) -> None:
        wish = {"max": LEASES_MAX, "wait": WAIT, "consumer": self._name}
        given = await self._post(session, "lease", wish)
        acks: list[tuple[int, str]] = []
        nacks: list[tuple[int, str]] = []
        for message in given.get("messages", []):
            lease = self._leased.begin(self._subscription, message), message["lease"]
            match self._decide(message):
                case "ack":
                    acks.append(lease)
                case "nack":
                    nacks.append(lease)
                case "late":
                    self._late.append(lease)
        await self._ack(session, acks)
        await self._nack(session, nacks)

    def _decide(self, message: Any) -> str:
        if self.is_healthy:
            return "ack"
        what = f"{self._subscription} {message['partition']} {message['offset']}"
        number = (crc32(what.encode()) + 7 * message["attempt"]) % 20
        if number < 3:
            return "nack"
        if number == 3:
            return "forget"
        return "late" if number < 6 else "ack"

    async def _ack(self, session: aiohttp.ClientSession, leases: list[tuple[int, str]]) -> None:
        if not leases:
            return
        numbers = [number for number, _ in leases]
        positions = self._leased.end(numbers, TAKEN)
        answer = await self._post(session, "ack", {"leases": [lease for _, lease in leases]})
        stale = {each["index"] for each in answer["stale"]}
        for index, (number, position) in enumerate(zip(numbers, positions, strict=True)):
            if index in stale:
                self._leased.take_back(position)
            else:
                self._leased.events.append(Settled(number))

    async def _nack(self, session: aiohttp.ClientSession, leases: list[tuple[int, str]]) -> None:
        if leases:
            self._leased.end([number for number, _ in leases], FAILED)
            wish = {"leases": [lease for _, lease in leases], "reason": "not today"}
            await self._post(session, "nack", wish)

    async def _post(self, session: aiohttp.ClientSession, verb: str, body: Any) -> Any:
        while True:
            async with session.post(f"{self._path}:{verb}", json=body) as answer:
                text = await answer.text()
                if answer.status in (200, 204):
                    return await answer.json() if answer.status == 200 else {}
            if answer.status != 503:
                raise UnexpectedAnswer(f"{self._path}:{verb}: {answer.status} {text}")
            await asyncio.sleep(RETRY_PAUSE_S)
