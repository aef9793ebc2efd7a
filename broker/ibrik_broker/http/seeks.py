"""How far a subscription is behind, where it stands, and moving it: lag, offsets, seek.

A position is resolved and checked first (`plan_seek`), so a dry run says exactly what would happen.
The ETag of the offsets is the epoch, which rises with every move.
"""

from collections.abc import Sequence

import msgspec
from aiohttp import hdrs, web

from ibrik_api.consuming import (
    OffsetsRequest,
    PartitionBacklog,
    SeekMove,
    SeekPlace,
    SeekRequest,
    SeekResult,
    SubscriptionLag,
    SubscriptionOffsets,
    SubscriptionPosition,
)
from ibrik_api.errors import Refusal
from ibrik_api.resources.subscription import StartFrom
from ibrik_api.timestamps import format_timestamp, parse_timestamp
from ibrik_broker.delivery.flow import Flow
from ibrik_broker.delivery.seek import SeekPlan, plan_seek
from ibrik_broker.delivery.wishes import StartWish
from ibrik_broker.http.leases import Consuming
from ibrik_broker.http.operations import JSON

_seek_request = msgspec.json.Decoder(SeekRequest)
_offsets_request = msgspec.json.Decoder(OffsetsRequest)
_encoder = msgspec.json.Encoder()

PLACES = ("from", "offset", "offsets", "timestamp")


class SeekHandlers:
    def __init__(self, consuming: Consuming) -> None:
        self._consuming = consuming

    async def lag(self, request: web.Request) -> web.Response:
        flow = self._flow(request)
        oldest_ms = flow.oldest_ms
        return _answer(
            SubscriptionLag(
                subscription=flow.plan.name,
                topic=flow.plan.topic,
                state=flow.state,
                backlog=flow.backlog,
                in_flight=flow.in_flight_count,
                retrying=flow.retrying_count,
                oldest=None if oldest_ms is None else format_timestamp(oldest_ms),
                partitions=[PartitionBacklog(**row._asdict()) for row in flow.lag()],
            )
        )

    async def offsets(self, request: web.Request) -> web.Response:
        """Where it stands. What is told is durable: no crash brings the subscription back."""
        answer = _offsets_answer(self._flow(request))
        await self._consuming.dispatcher.ledger.commit()
        return answer

    async def put_offsets(self, request: web.Request) -> web.Response:
        """Go on at these offsets; refused with 412 when someone moved them since If-Match."""
        flow = self._flow(request)
        check_epoch(flow, request.headers.get(hdrs.IF_MATCH))
        body = await self._consuming.body(request, _offsets_request)
        places = {place.partition: place.offset for place in body.partitions}
        if len(places) < len(body.partitions):
            raise Refusal("invalid-request", "A partition is named more than once.")
        to = StartWish(origin=StartFrom.OFFSET, offsets=tuple(places.values()))
        plan = await plan_seek(flow, to, list(places))
        check_epoch(flow, request.headers.get(hdrs.IF_MATCH))  # it may have been moved meanwhile
        await self._move(flow, plan)
        return _offsets_answer(flow)

    async def seek(self, request: web.Request) -> web.Response:
        """Move the cursor to a place that is named in one of four ways."""
        flow = self._flow(request)
        body = await self._consuming.body(request, _seek_request)
        partitions = None if isinstance(body.partitions, msgspec.UnsetType) else body.partitions
        if partitions is not None and len(set(partitions)) < len(partitions):
            raise Refusal("invalid-request", "A partition is named more than once.")
        plan = await plan_seek(flow, parse_place(body.to), partitions)
        if not body.dry_run:
            await self._move(flow, plan)
        return _answer(
            SeekResult(
                epoch=flow.epoch,
                dry_run=body.dry_run,
                partitions=[SeekMove(*move) for move in plan.partitions],
            )
        )

    async def _move(self, flow: Flow, plan: SeekPlan) -> None:
        await self._consuming.dispatcher.seek(flow.id, plan)
        self._consuming.on_settled(flow.id)  # whatever was leased is not held any more

    def _flow(self, request: web.Request) -> Flow:
        return self._consuming.dispatcher.flow(self._consuming.subscription_id(request))


def parse_place(place: SeekPlace) -> StartWish:
    """Raises Refusal `invalid-request` unless exactly one place is named."""
    values = (place.from_, place.offset, place.offsets, place.timestamp)
    given = [
        (name, value)
        for name, value in zip(PLACES, values, strict=True)
        if not isinstance(value, msgspec.UnsetType)
    ]
    match given:
        case [("from", str(end))]:
            return StartWish(origin=StartFrom(end))
        case [("offset", int(offset))]:
            return StartWish(origin=StartFrom.OFFSET, offsets=(offset,))
        case [("offsets", [_, *_] as offsets)]:
            return _each(offsets)
        case [("timestamp", str(text))]:
            return StartWish(origin=StartFrom.TIMESTAMP, timestamp_ms=_time(text))
        case _:
            raise Refusal("invalid-request", f"to: write exactly one of {', '.join(PLACES)}.")


def _each(offsets: Sequence[int]) -> StartWish:
    return StartWish(origin=StartFrom.OFFSET, offsets=tuple(offsets))


def _time(text: str) -> int:
    try:
        return parse_timestamp(text)
    except ValueError as error:
        raise Refusal("invalid-request", f"to.timestamp: {error}.") from error


def check_epoch(flow: Flow, if_match: str | None) -> None:
    """Raises Refusal `precondition-failed` when If-Match names another epoch."""
    if if_match not in (None, "*", f'"{flow.epoch}"'):
        raise Refusal(
            "precondition-failed",
            f"The offsets of '{flow.plan.name}' were moved: their ETag is \"{flow.epoch}\" now.",
            epoch=flow.epoch,
        )


def _offsets_answer(flow: Flow) -> web.Response:
    response = _answer(
        SubscriptionOffsets(
            subscription=flow.plan.name,
            topic=flow.plan.topic,
            epoch=flow.epoch,
            partitions=[
                SubscriptionPosition(part.index, part.progress.next_offset) for part in flow.parts
            ],
        )
    )
    response.headers[hdrs.ETAG] = f'"{flow.epoch}"'
    return response


def _answer(body: SubscriptionLag | SubscriptionOffsets | SeekResult) -> web.Response:
    return web.Response(body=_encoder.encode(body), content_type=JSON)
