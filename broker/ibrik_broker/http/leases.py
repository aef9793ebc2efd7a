"""Leasing messages of a subscription, and settling the leases: lease, ack, nack, extend.

Decides nothing about deliveries: `Leases` does. Here bodies become leases and leases become text.
What a client would have got is given back when it goes before it has its answer.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TypeVar

import msgspec
from aiohttp import web

from ibrik_api.consuming import (
    AckRequest,
    AckResult,
    ExtendRequest,
    ExtendResult,
    LeaseRequest,
    NackRequest,
    NackResult,
    StaleLease,
)
from ibrik_api.durations import DAY_MS, HOUR_MS, SECOND_MS, format_duration, parse_duration
from ibrik_api.errors import Refusal
from ibrik_api.names import check_name
from ibrik_api.timestamps import format_timestamp
from ibrik_broker.delivery.dispatcher import Dispatcher
from ibrik_broker.delivery.leases import LeaseRef, Leases
from ibrik_broker.delivery.message import Delivery
from ibrik_broker.delivery.tokens import Tokens
from ibrik_broker.http.bodies import read_at_once
from ibrik_broker.http.door import Door
from ibrik_broker.http.operations import JSON
from ibrik_broker.http.presence import Presence, is_gone
from ibrik_broker.http.times import parse_wait
from ibrik_broker.http.views import message_view

MAX_BODY_BYTES = 2**20
"""Fits MAX_LEASES tokens."""
MAX_DELAY_MS = 7 * DAY_MS
MAX_EXTENSION_MS = 12 * HOUR_MS
ECHO_CHARACTERS = 100
"""Of a lease in an answer: a real one is shorter."""

BodyT = TypeVar("BodyT", bound=msgspec.Struct)

_lease_request = msgspec.json.Decoder(LeaseRequest)
_ack_request = msgspec.json.Decoder(AckRequest)
_nack_request = msgspec.json.Decoder(NackRequest)
_extend_request = msgspec.json.Decoder(ExtendRequest)
_encoder = msgspec.json.Encoder()

STALE_DETAILS = {
    "lease-expired": "The deadline passed, or someone moved the cursor: it is not yours any more.",
}


@dataclass(frozen=True, slots=True)
class Consuming:
    """What all handlers of consumers share."""

    door: Door
    dispatcher: Dispatcher
    find: Callable[[str], str]
    """The id of the subscription of this name. Raises Refusal `unknown-subscription`."""
    tokens: Tokens
    presence: Presence
    on_settled: Callable[[str], None]
    """Called with the id of a subscription when leases of it were settled."""

    def subscription_id(self, request: web.Request) -> str:
        return self.find(check_name(request.match_info["subscription"]))

    async def body(
        self, request: web.Request, decoder: msgspec.json.Decoder[BodyT], empty: bytes = b""
    ) -> BodyT:
        """The body by its decoder; `empty` stands for one that was left out."""
        claim = self.door.gate.claim()
        try:
            content = read_at_once(request, claim)
            if content is None:
                content = await self.door.bodies.read(request, MAX_BODY_BYTES, claim)
            return decoder.decode(content or empty)
        except msgspec.ValidationError as error:
            raise Refusal("invalid-request", f"The body is not as documented: {error}.") from error
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            raise Refusal("invalid-json", f"The body is no JSON: {error}.") from error
        finally:
            claim.release()


class LeaseHandlers:
    def __init__(self, consuming: Consuming) -> None:
        self._consuming = consuming

    async def lease(self, request: web.Request) -> web.StreamResponse:
        """Hand messages out; 204 when there are none in time."""
        consuming = self._consuming
        leases = consuming.dispatcher.leases(consuming.subscription_id(request))
        wish = await consuming.body(request, _lease_request, b"{}")
        wait_ms = parse_wait(wish.wait, consuming.door.limits.wait_ms)
        leasing = leases.lease(
            consumer=wish.consumer,
            max_count=wish.max,
            max_bytes=wish.max_bytes,
            wait_s=wait_ms / 1_000,
        )
        try:
            deliveries = await consuming.presence.wait(request, leasing)
        except ConnectionError:
            deliveries = []  # it is gone, or sends no more and hears that there is nothing
        if not deliveries:
            return web.Response(status=204)
        is_given = False
        try:
            body = lease_list(consuming.tokens, leases, deliveries)
            response = web.Response(body=body, content_type=JSON)
            is_given = await _give(request, response)
        finally:
            if not is_given:
                leases.release(deliveries)
        return response if response.prepared else web.Response(status=204)

    async def ack(self, request: web.Request) -> web.Response:
        """Settle leases, in any order and as often as one likes."""
        subscription_id = self._consuming.subscription_id(request)
        leases = self._consuming.dispatcher.leases(subscription_id)
        body = await self._consuming.body(request, _ack_request)
        given = self._read(subscription_id, body.leases)
        stale = given.stale(await leases.ack(given.refs))
        self._consuming.on_settled(subscription_id)
        return _answer(AckResult(acked=given.count - len(stale), stale=stale))

    async def nack(self, request: web.Request) -> web.Response:
        """Give messages back that could not be done with."""
        subscription_id = self._consuming.subscription_id(request)
        leases = self._consuming.dispatcher.leases(subscription_id)
        body = await self._consuming.body(request, _nack_request)
        delay_ms = parse_time_span(body.delay, "delay", 0, MAX_DELAY_MS)
        given = self._read(subscription_id, body.leases)
        codes = await leases.nack(given.refs, delay_ms=delay_ms, reason=body.reason)
        stale = given.stale(codes)
        self._consuming.on_settled(subscription_id)
        return _answer(NackResult(nacked=given.count - len(stale), stale=stale))

    async def extend(self, request: web.Request) -> web.Response:
        """Begin the deadlines anew."""
        subscription_id = self._consuming.subscription_id(request)
        leases = self._consuming.dispatcher.leases(subscription_id)
        body = await self._consuming.body(request, _extend_request)
        deadline_ms = parse_time_span(body.deadline, "deadline", SECOND_MS, MAX_EXTENSION_MS)
        given = self._read(subscription_id, body.leases)
        stale = given.stale(await leases.extend(given.refs, deadline_ms=deadline_ms))
        return _answer(
            ExtendResult(
                extended=given.count - len(stale),
                deadline_ms=deadline_ms or leases.wish.ack_deadline_ms,
                stale=stale,
            )
        )

    def _read(self, subscription_id: str, tokens: Sequence[str]) -> "GivenLeases":
        return GivenLeases(self._consuming.tokens, subscription_id, tokens)


class GivenLeases:
    """Leases as a client sent them: those that can be read, and why the others cannot."""

    def __init__(self, tokens: Tokens, subscription_id: str, given: Sequence[str]) -> None:
        self.count = len(given)
        self.refs: list[LeaseRef] = []
        self._given = given
        self._indexes: list[int] = []
        self._forged: list[StaleLease] = []
        for index, token in enumerate(given):
            try:
                self.refs.append(tokens.read(subscription_id, token))
                self._indexes.append(index)
            except Refusal as refusal:
                self._forged.append(
                    StaleLease(index, token[:ECHO_CHARACTERS], refusal.code, refusal.detail)
                )

    def stale(self, codes: Iterable[str | None]) -> list[StaleLease]:
        """Those that did not count; `codes` are what the leases that could be read came to."""
        expired = [
            StaleLease(index, self._given[index], code, STALE_DETAILS[code])
            for index, code in zip(self._indexes, codes, strict=True)
            if code is not None
        ]
        return sorted(expired + self._forged, key=lambda lease: lease.index)


def lease_list(tokens: Tokens, leases: Leases, deliveries: Sequence[Delivery]) -> bytes:
    """`LeaseList` of `ibrik_api.consuming`."""
    topic_name = leases.flow.plan.topic
    head = f'{{"topic":"{topic_name}","deadline_ms":{leases.wish.ack_deadline_ms},"messages":['
    views = leased_views(tokens, leases, deliveries)
    return head.encode() + b",".join(views) + b"]}"


def leased_views(tokens: Tokens, leases: Leases, deliveries: Sequence[Delivery]) -> list[bytes]:
    """`LeasedMessage` of `ibrik_api.consuming`, one for each delivery."""
    topic = leases.flow.topic
    if topic is None:
        raise Refusal("unknown-topic", f"The topic '{leases.flow.plan.topic}' is gone.")
    subscription_id = leases.wish.id
    views, until_ticks, deadline = [], -1, ""
    for delivery in deliveries:
        if delivery.until_ticks != until_ticks:  # nearly always that of the one before
            until_ticks = delivery.until_ticks
            deadline = format_timestamp(leases.deadline_ms(delivery))
        partition, attempt = delivery.partition, delivery.attempt
        ref = LeaseRef(partition, delivery.record.offset, attempt, delivery.epoch)
        token = tokens.sign(subscription_id, ref)
        more = f',"lease":"{token}","attempt":{attempt},"deadline":"{deadline}"'
        views.append(message_view(topic, partition, delivery.record, more.encode()))
    return views


def parse_time_span(text: str | None, name: str, least_ms: int, most_ms: int) -> int | None:
    """Milliseconds of a duration in a body; None when it is left out."""
    if text is None:
        return None
    try:
        span_ms = parse_duration(text)
    except ValueError as error:
        raise Refusal("invalid-request", f"{name}: {error}.") from error
    if not least_ms <= span_ms <= most_ms:
        least, most = format_duration(least_ms), format_duration(most_ms)
        raise Refusal("invalid-request", f"{name}={text[:40]}: write {least} to {most}.")
    return span_ms


async def _give(request: web.Request, response: web.Response) -> bool:
    """Write the answer here, not behind the handler; whether somebody is there to read it."""
    if is_gone(request):
        return False
    try:
        await response.prepare(request)
        await response.write_eof()
    except ConnectionError:
        return False
    return not is_gone(request)


def _answer(result: AckResult | NackResult | ExtendResult) -> web.Response:
    return web.Response(body=_encoder.encode(result), content_type=JSON)
