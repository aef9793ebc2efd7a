"""Channels over HTTP: what they have beside other resources.

Filters, the plain view, a test message, and how deliveries went. Secrets are references in a
resource, so that none can appear here.
"""

import base64
import uuid
from enum import StrEnum
from typing import Any

from aiohttp import web

from ibrik_api.errors import Refusal
from ibrik_api.registering import AttemptView, ChannelStats, PlainChannel, ProbeResult
from ibrik_api.resources.channel import Channel
from ibrik_api.resources.destination import KINDS, Destination
from ibrik_api.timestamps import format_timestamp
from ibrik_broker.delivery.answers import Answer
from ibrik_broker.delivery.dispatcher import Dispatcher
from ibrik_broker.delivery.guard import Guard
from ibrik_broker.delivery.senders.parcel import Parcel
from ibrik_broker.http.collections import CollectionHandlers, Keep, key_of
from ibrik_broker.http.crud import (
    PLAIN_NEXT,
    json_answer,
    page_answer,
    parse_choice,
    parse_page,
    resource_answer,
    unchanged,
)
from ibrik_broker.http.door import Door
from ibrik_broker.http.times import parse_time
from ibrik_broker.http.tracking import attempt_view
from ibrik_broker.metadata.attempts import AttemptHistory
from ibrik_broker.metadata.deliveries import AttemptRow
from ibrik_broker.registrations.catalogue import Catalogue
from ibrik_log.record import StoredRecord

TEST_TYPE = "ibrik.test"
TEST_VALUE = b'{"message":"This is a test of the channel. There is nothing to do."}'
SHOWN_BODY_BYTES = 1_024


class View(StrEnum):
    FULL = "full"
    PLAIN = "plain"


class ChannelHandlers(CollectionHandlers[Channel]):
    def __init__(
        self,
        door: Door,
        catalogue: Catalogue,
        guard: Guard,
        dispatcher: Dispatcher,
        history: AttemptHistory,
    ) -> None:
        super().__init__(door, catalogue.channels, Channel.parse, guard)
        self._catalogue = catalogue
        self._dispatcher = dispatcher
        self._history = history

    def keep(self, request: web.Request) -> Keep:
        query = request.query
        kind, host, prefix = query.get("kind"), query.get("host"), query.get("name_prefix", "")
        if kind is not None and kind not in KINDS:
            raise Refusal(
                "invalid-request", f"kind={kind[:40]!r}: write one of {', '.join(KINDS)}."
            )
        return self._catalogue.channels.matching(kind=kind, host=host, name_prefix=prefix)

    def destination(self, resource: Channel) -> Destination:
        return resource.spec

    async def list_page(self, request: web.Request) -> web.Response:
        if not is_plain(request):
            return await super().list_page(request)
        page = parse_page(request)
        found = self._collection.page(
            after=page.after,
            limit=page.limit,
            namespace=request.query.get("namespace"),
            keep=self.keep(request),
        )
        rows = [(key_of(channel), _plain(channel)) for channel in found]
        return page_answer(page, rows, next_name=PLAIN_NEXT)

    async def read(self, request: web.Request) -> web.Response:
        if not is_plain(request):
            return await super().read(request)
        channel = self._described(request)
        revision = channel.metadata.resource_version
        return unchanged(request, revision) or resource_answer(_plain(channel), revision)

    async def delete(self, request: web.Request) -> web.Response:
        """Refused while subscriptions deliver there."""
        name, namespace = self.place(request)
        if_match = self.precondition(request, name, namespace)
        await self._catalogue.channels.delete(name, if_match=if_match, namespace=namespace)
        return web.Response(status=204)

    async def test(self, request: web.Request) -> web.Response:
        """One message through the very sender that deliveries use, whatever the circuit says."""
        channel = self._described(request)
        sender = self._dispatcher.sender(_id_of(channel))
        answer = await sender.send(probe(channel.metadata.name))
        return json_answer(probe_result(answer))

    async def attempts(self, request: web.Request) -> web.Response:
        """Attempts that failed, the newest first."""
        page = parse_page(request)
        query = request.query
        since = query.get("since")
        rows = await self._history.by_channel(
            _id_of(self._described(request)),
            page.limit,
            before_id=parse_place(page.after),
            status=parse_status(query.get("status")),
            error=query.get("error"),
            since_ms=None if since is None else parse_time(since),
        )
        found = [(str(row.id), self._attempt(row)) for row in rows]
        return page_answer(page, found, next_name=PLAIN_NEXT)

    async def stats(self, request: web.Request) -> web.Response:
        """How deliveries went since the broker started."""
        channel = self._described(request)
        status = channel.status
        assert status is not None
        outlet = self._dispatcher.outlet(_id_of(channel))
        counters = outlet.counters
        count = counters.delivered + counters.failed
        last_ms = counters.last_ms
        return json_answer(
            ChannelStats(
                channel=channel.metadata.name,
                delivered=counters.delivered,
                failed=counters.failed,
                in_flight=outlet.in_flight,
                circuit=status.circuit or "",
                paused_until=status.paused_until,
                last_status=counters.last_status,
                last_error=counters.last_error,
                last=None if last_ms is None else format_timestamp(last_ms),
                latency_ms=round(counters.duration_ms_sum / count, 3) if count else None,
            )
        )

    def _described(self, request: web.Request) -> Channel:
        name, namespace = self.place(request)
        return self._catalogue.channels.describe(name, namespace=namespace)

    def _attempt(self, row: AttemptRow) -> AttemptView:
        names = self._catalogue.subscriptions.names_of([row.flow_id])
        return attempt_view(row, names[0] if names else None)


def is_plain(request: web.Request) -> bool:
    return parse_choice(request, "view", View) is View.PLAIN


def parse_status(text: str | None) -> int | None:
    if text is None:
        return None
    if text.isascii() and text.isdigit() and len(text) == 3:
        return int(text)
    raise Refusal("invalid-request", f"status={text[:40]!r}: write a status of HTTP, as 503.")


def parse_place(after: str) -> int | None:
    """The row that a page token stands for."""
    if not after:
        return None
    if after.isascii() and after.isdigit() and len(after) <= 18:
        return int(after)
    raise Refusal("invalid-request", "page_token is none that this list answered with.")


def probe(channel: str) -> Parcel:
    """A message that lies in no topic; each has an id of its own, so that none is a repeat."""
    own_id = str(uuid.uuid4())
    attributes = {
        "ce_specversion": "1.0",
        "ce_id": own_id,
        "ce_source": f"/channels/{channel}",
        "ce_type": TEST_TYPE,
        "content-type": "application/json",
    }
    headers: Any = [(name, text.encode()) for name, text in attributes.items()]
    record = StoredRecord(0, 0, None, TEST_VALUE, headers)
    return Parcel(topic=TEST_TYPE, topic_id=own_id, partition=0, record=record, channel=channel)


def probe_result(answer: Answer) -> ProbeResult:
    result = ProbeResult(
        delivered=answer.error is None,
        status=answer.status,
        error=answer.error,
        detail=answer.detail,
        latency_ms=answer.duration_ms,
    )
    shown = answer.body[:SHOWN_BODY_BYTES]
    try:
        text = shown.decode()
    except UnicodeDecodeError:
        result.body_base64 = base64.b64encode(shown).decode("ascii")
    else:
        if text:
            result.body = text
    return result


def _id_of(channel: Channel) -> str:
    assert channel.status is not None
    assert channel.status.channel_id is not None
    return channel.status.channel_id


def _plain(channel: Channel) -> PlainChannel:
    status = channel.status
    assert status is not None
    return PlainChannel(
        _id_of(channel),
        channel.metadata.name,
        status.destination_host or "",
        status.destination_port,
    )
