"""GET /v1/subscriptions/{subscription}/stream: leases as server-sent events.

Each event is a message with its lease; the reader acknowledges with POST …:ack. A stream hands out
at most as many unsettled messages as it was asked for: a slow reader is not buffered for. When the
reader goes, what it has not settled is given back at once. Events have no id: the place of a reader
is the subscription's cursor, and `Last-Event-ID` means nothing here.
"""

import asyncio
import logging
from collections.abc import Iterator, Sequence
from itertools import count

from aiohttp import web

from ibrik_api.errors import Refusal
from ibrik_api.resources.subscription import MAX_IN_FLIGHT
from ibrik_broker.delivery.leases import LeaseRef, Leases
from ibrik_broker.delivery.message import Delivery
from ibrik_broker.http.leases import Consuming, leased_views
from ibrik_broker.http.presence import gone, is_gone
from ibrik_broker.http.read import parse_count
from ibrik_broker.http.stream import HEADERS, HEARTBEAT, gap_event, goodbye_event
from ibrik_broker.metadata.deliveries import GapRow
from ibrik_broker.telemetry.metrics import HTTP_LEASE_STREAMS, Reading

WRITE_COUNT = 100
WRITE_BYTES = 256 * 1024
"""Leased before the reader has to take them."""
LOOK_SECONDS = 1.0
"""How often a stream without room looks whether deadlines passed; a settled lease wakes it."""
MAX_CONSUMER_CHARACTERS = 253

logger = logging.getLogger("ibrik.http")


class LeaseStreams:
    """All open streams of subscriptions."""

    def __init__(self, heartbeat_ms: int) -> None:
        self._heartbeat_s = heartbeat_ms / 1_000
        self._full: dict[str, set[asyncio.Event]] = {}
        """By subscription: the streams that wait until something is settled."""
        self._open_count = 0
        self._goodbye_count = 0
        self._numbers = count(1)

    def readings(self) -> Iterator[Reading]:
        yield Reading(HTTP_LEASE_STREAMS, (), self._open_count)

    def on_settled(self, subscription_id: str) -> None:
        """Leases of a subscription were settled: its streams may have room again."""
        for event in self._full.get(subscription_id, ()):
            event.set()

    async def handle(self, consuming: Consuming, request: web.Request) -> web.StreamResponse:
        leases = consuming.dispatcher.leases(consuming.subscription_id(request))
        query = request.rel_url.query
        limit = parse_count(query.get("max"), "max", leases.wish.max_in_flight, MAX_IN_FLIGHT)
        settles = parse_ack(query.get("ack", "explicit")) == "auto"
        consumer = parse_consumer(query.get("consumer")) or f"stream-{next(self._numbers)}"
        response = web.StreamResponse(headers=HEADERS | {"Ibrik-Topic": leases.flow.plan.topic})
        leases.enter(consumer)
        self._open_count += 1
        line = Line(consuming, request, response, leases, consumer)
        try:
            await response.prepare(request)
            await self._follow(line, limit, settles=settles)
        except ConnectionError:
            pass  # the reader went away
        except Refusal as refusal:
            await self._say_goodbye(response, line.change() or refusal.code)
        except Exception:
            logger.exception("stream failed", extra={"subscription": leases.wish.name})
            await self._say_goodbye(response, "internal")
        finally:
            self._open_count -= 1
            leases.leave()
            leases.release(line.held)
        return response

    async def _follow(self, line: "Line", limit: int, *, settles: bool) -> None:
        await line.response.write(HEARTBEAT)  # the reader is let in, even when nothing comes
        while (change := line.change()) is None:
            room = limit - line.count_held()
            if room > 0:
                has_news = await line.forward(min(room, WRITE_COUNT), self._heartbeat_s, settles)
            else:
                has_news = await self._wait_for_room(line)
            if not has_news:
                await line.response.write(HEARTBEAT)
        await self._say_goodbye(line.response, change)

    async def _wait_for_room(self, line: "Line") -> bool:
        """False when a heartbeat is due."""
        waiting = self._full.setdefault(line.subscription_id, set())
        settled = asyncio.Event()
        held_count = len(line.held)
        waiting.add(settled)
        try:
            until_s = asyncio.get_running_loop().time() + self._heartbeat_s
            while (left_s := until_s - asyncio.get_running_loop().time()) > 0:
                wait = _wait_until(settled, min(left_s, LOOK_SECONDS))
                await line.consuming.presence.wait(line.request, wait)
                if settled.is_set() or line.count_held() < held_count:
                    return True
            return False
        finally:
            waiting.discard(settled)
            if not waiting:
                self._full.pop(line.subscription_id, None)

    async def _say_goodbye(self, response: web.StreamResponse, reason: str) -> None:
        """The last event. Each reader has another time to come back, so not all come at once."""
        self._goodbye_count += 1
        try:
            await response.write(goodbye_event(self._goodbye_count, reason))
            await response.write_eof()
        except ConnectionError:
            pass  # gone before it heard it


class Line:
    """One reader: what it was given and has not settled."""

    def __init__(
        self,
        consuming: Consuming,
        request: web.Request,
        response: web.StreamResponse,
        leases: Leases,
        consumer: str,
    ) -> None:
        self.consuming = consuming
        self.request = request
        self.response = response
        self.subscription_id = leases.wish.id
        self.held: list[Delivery] = []
        self._leases = leases
        self._consumer = consumer
        self._last_gap = last_of(leases.flow.gaps)

    def change(self) -> str | None:
        """Why the subscription is not served any more by what the stream speaks to; else None."""
        try:
            current = self.consuming.dispatcher.leases(self.subscription_id)
        except Refusal as refusal:
            return refusal.code
        return None if current is self._leases else "subscription-changed"

    def count_held(self) -> int:
        """Messages that are not settled; forgets the others (the flow knows which)."""
        is_current = self._leases.flow.is_current
        self.held = [delivery for delivery in self.held if is_current(delivery)]
        return len(self.held)

    async def forward(self, max_count: int, wait_s: float, settles: bool) -> bool:
        """Write the next messages; False when none come in time."""
        leasing = self._leases.lease(
            consumer=self._consumer, max_count=max_count, max_bytes=WRITE_BYTES, wait_s=wait_s
        )
        deliveries = await self.consuming.presence.wait(self.request, leasing)
        self.held += deliveries
        await self._tell_gaps()
        if not deliveries:
            return False
        if is_gone(self.request):
            raise gone()
        views = leased_views(self.consuming.tokens, self._leases, deliveries)
        if settles:  # before it is written: what breaks from here on is lost, never doubled
            await self._leases.ack([_ref(delivery) for delivery in deliveries])
        await self.response.write(b"data: " + b"\n\ndata: ".join(views) + b"\n\n")
        return True

    async def _tell_gaps(self) -> None:
        for gap in gaps_after(self._leases.flow.gaps, self._last_gap):
            event = gap_event(gap.partition, gap.from_offset, gap.to_offset, gap.reason)
            await self.response.write(event + b"\n")
        self._last_gap = last_of(self._leases.flow.gaps)


def gaps_after(gaps: Sequence[GapRow], last: GapRow | None) -> list[GapRow]:
    """The gaps noticed after `last`, the oldest first."""
    found: list[GapRow] = []
    for gap in reversed(gaps):
        if gap is last:
            break
        found.append(gap)
    return found[::-1]


def last_of(gaps: Sequence[GapRow]) -> GapRow | None:
    return gaps[-1] if gaps else None


def parse_ack(text: str) -> str:
    if text not in ("explicit", "auto"):
        raise Refusal("invalid-request", f"ack={text[:40]!r}: write explicit or auto.")
    return text


def parse_consumer(text: str | None) -> str | None:
    if text is not None and not 1 <= len(text) <= MAX_CONSUMER_CHARACTERS:
        raise Refusal("invalid-request", f"consumer has 1 to {MAX_CONSUMER_CHARACTERS} characters.")
    return text


def _ref(delivery: Delivery) -> LeaseRef:
    return LeaseRef(delivery.partition, delivery.offset, delivery.attempt, delivery.epoch)


async def _wait_until(event: asyncio.Event, timeout_s: float) -> None:
    try:
        async with asyncio.timeout(timeout_s):
            await event.wait()
    except TimeoutError:
        pass
