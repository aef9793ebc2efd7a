"""Who got a message: every subscription of its topic, how far it is, each attempt that failed."""

from aiohttp import web

from ibrik_api.registering import AttemptView, DeliveryList, DeliveryView
from ibrik_api.timestamps import format_timestamp
from ibrik_broker.delivery.dispatcher import Dispatcher
from ibrik_broker.delivery.flow import Flow
from ibrik_broker.delivery.tracking import find
from ibrik_broker.http import parameters as p
from ibrik_broker.http.crud import json_answer
from ibrik_broker.http.door import Door
from ibrik_broker.http.operations import JSON, Answer, Body, Operation
from ibrik_broker.http.read import parse_offset, read_one
from ibrik_broker.metadata.attempts import AttemptHistory
from ibrik_broker.metadata.deliveries import AttemptRow
from ibrik_log.record import StoredRecord


class Tracking:
    def __init__(self, door: Door, dispatcher: Dispatcher, history: AttemptHistory) -> None:
        self._door = door
        self._dispatcher = dispatcher
        self._history = history

    async def deliveries(self, request: web.Request) -> web.Response:
        """How far each subscription of the topic is with one message."""
        topic, partition = self._door.partition(request)
        record = await read_one(partition, parse_offset(request.match_info["offset"]))
        flows = self._dispatcher.flows_of(topic.name)
        views = [await self._view(flow, partition.index, record) for flow in flows]
        views.sort(key=lambda view: view.subscription)
        return json_answer(DeliveryList(topic.name, partition.index, record.offset, views))

    async def _view(self, flow: Flow, partition: int, record: StoredRecord) -> DeliveryView:
        attempts = await self._history.by_message(flow.id, partition, record.offset)
        found = find(flow, partition, record, attempts)
        wish = self._dispatcher.wish(flow.id)
        next_ms = None if found.next_ticks is None else flow.wall_ms(found.next_ticks)
        return DeliveryView(
            subscription=flow.plan.name,
            mode=wish.mode.value,
            channel=wish.channel_id,
            state=found.state,
            next=None if next_ms is None else format_timestamp(next_ms),
            attempts=[attempt_view(row, flow.plan.name) for row in attempts],
        )


def attempt_view(row: AttemptRow, subscription: str | None) -> AttemptView:
    return AttemptView(
        id=row.id or 0,
        flow=row.flow_id,
        subscription=subscription,
        partition=row.partition,
        offset=row.offset,
        attempt=row.attempt,
        at=format_timestamp(row.at_ms),
        duration_ms=row.duration_ms,
        status=row.status,
        error=row.error,
        detail=row.detail,
        next=None if row.next_ms is None else format_timestamp(row.next_ms),
    )


def tracking_operations(
    door: Door, dispatcher: Dispatcher, history: AttemptHistory
) -> list[Operation]:
    tracking = Tracking(door, dispatcher, history)
    return [
        Operation(
            "listDeliveries",
            "GET",
            "/v1/topics/{topic}/partitions/{partition}/messages/{offset}/deliveries",
            "read",
            "Who got a message: each subscription of the topic, and its failed attempts.",
            tracking.deliveries,
            (Answer(200, "How far each one is.", (Body(JSON, DeliveryList),)),),
            (
                *p.TOPIC_CODES,
                "unknown-partition",
                "invalid-offset",
                "offset-below-start",
                "offset-above-end",
                "corrupt-range",
                "metadata-unavailable",
            ),
            parameters=(p.TOPIC, p.PARTITION, p.OFFSET),
        )
    ]
