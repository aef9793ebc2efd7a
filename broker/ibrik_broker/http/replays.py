"""Replays over HTTP: begin one, look at it, cancel it, see which attempts failed.

Decides nothing about deliveries: `Replays` does. Here bodies become wishes, and jobs become views.
"""

from collections.abc import Iterator, Mapping
from typing import TypeVar

import msgspec
from aiohttp import hdrs, web

from ibrik_api.errors import Refusal
from ibrik_api.names import check_name
from ibrik_api.recovering import (
    AnyPlace,
    ReplayDryRun,
    ReplayList,
    ReplayPlace,
    ReplayRange,
    ReplayRequest,
    ReplayTarget,
    ReplayView,
)
from ibrik_api.registering import AttemptList, AttemptView
from ibrik_api.resources.subscription import StartFrom
from ibrik_api.timestamps import format_timestamp, parse_timestamp
from ibrik_broker.delivery.filters import compile_filter
from ibrik_broker.delivery.replay_job import Job
from ibrik_broker.delivery.replay_plan import Place, Range, parse_message_id
from ibrik_broker.delivery.replays import Replays, ReplayWish
from ibrik_broker.delivery.wishes import StartWish
from ibrik_broker.http import parameters as p
from ibrik_broker.http.crud import (
    PLAIN_NEXT,
    json_answer,
    page_answer,
    parse_page,
    read_body,
)
from ibrik_broker.http.door import Door
from ibrik_broker.http.operations import JSON, Answer, Body, Operation, Parameter
from ibrik_broker.metadata.deliveries import AttemptRow

ValueT = TypeVar("ValueT")

PATH = "/v1/replays"
TAG = "recover"
REPLAY = Parameter(
    "replay",
    "path",
    "Id of the replay.",
    {"type": "string", "minLength": 1, "maxLength": 64},
    example="5f0c3a52-9d0e-4b52-8c1c-6f1f0a1d2e3f",
)
CREATE_CODES = (
    *p.TOPIC_CODES,
    "unknown-channel",
    "unknown-partition",
    "invalid-json",
    "invalid-filter",
    "invalid-offset",
    "offset-below-start",
    "offset-above-end",
    "too-many-replays",
    "metadata-unavailable",
)


class ReplayHandlers:
    def __init__(self, door: Door, replays: Replays) -> None:
        self._door = door
        self._replays = replays

    async def create(self, request: web.Request) -> web.Response:
        """Begin a replay; with `dry_run` only say what it would send."""
        body = await read_body(self._door, request, ReplayRequest)
        plan = await self._replays.plan(_wish(body))
        if body.dry_run:
            return json_answer(ReplayDryRun(plan.topic, plan.total, list(_ranges(plan.ranges))))
        job = await self._replays.create(plan)
        answer = json_answer(await self._view(job), status=202)
        answer.headers[hdrs.LOCATION] = f"{PATH}/{job.id}"
        return answer

    async def list_page(self, request: web.Request) -> web.Response:
        """The newest first."""
        page = parse_page(request)
        jobs = ((_key(job), job) for job in self._replays.all())
        found = [(key, job) for key, job in jobs if not page.after or key < page.after]
        views = [(key, _view(job)) for key, job in found[: page.limit]]
        return page_answer(page, views, next_name=PLAIN_NEXT)

    async def read(self, request: web.Request) -> web.Response:
        return json_answer(await self._view(self._job(request)))

    async def cancel(self, request: web.Request) -> web.Response:
        """Send nothing more. One that has ended stays as it is."""
        return json_answer(await self._view(await self._replays.cancel(self._job(request).id)))

    async def attempts(self, request: web.Request) -> web.Response:
        """Attempts that failed, the newest first."""
        page = parse_page(request)
        before_id = _number(page.after)
        rows = await self._replays.attempts(self._job(request).id, page.limit, before_id)
        found = [(str(row.id), _attempt(row)) for row in rows]
        return page_answer(page, found, next_name=PLAIN_NEXT)

    def _job(self, request: web.Request) -> Job:
        return self._replays.get(request.match_info["replay"])

    async def _view(self, job: Job) -> ReplayView:
        view = _view(job)
        view.partitions = list(_ranges(job.ranges, await self._replays.positions(job)))
        return view


def _wish(body: ReplayRequest) -> ReplayWish:
    source, target = body.source, body.target
    channel, topic = _given(target.channel), _given(target.topic)
    if (channel is None) == (topic is None):
        raise Refusal("invalid-request", "target: write exactly one of channel and topic.")
    text = _given(source.filter)
    return ReplayWish(
        topic=check_name(source.topic),
        start=_place(source.from_, "from"),
        end=None if isinstance(source.to, msgspec.UnsetType) else _place(source.to, "to"),
        partitions=_given(source.partitions),
        filter=None if text is None else compile_filter(text),
        channel=None if channel is None else check_name(channel, what="channel"),
        target_topic=None if topic is None else check_name(topic),
        rate=body.rate,
    )


def _given(value: ValueT | msgspec.UnsetType) -> ValueT | None:
    return None if isinstance(value, msgspec.UnsetType) else value


def _place(place: AnyPlace, field: str) -> Place:
    """Raises Refusal `invalid-request` unless exactly one place is named."""
    if not isinstance(place, ReplayPlace):
        return StartWish(origin=StartFrom(place))
    given = [
        (name, value)
        for name in ReplayPlace.__struct_fields__
        if not isinstance(value := getattr(place, name), msgspec.UnsetType)
    ]
    match given:
        case [("offset", int(offset))]:
            return StartWish(origin=StartFrom.OFFSET, offsets=(offset,))
        case [("offsets", list(offsets))]:
            return StartWish(origin=StartFrom.OFFSET, offsets=tuple(offsets))
        case [("timestamp", str(text))]:
            return StartWish(origin=StartFrom.TIMESTAMP, timestamp_ms=_time(text, field))
        case [("id", str(text))]:
            return parse_message_id(text)
        case _:
            names = ", ".join(ReplayPlace.__struct_fields__)
            raise Refusal("invalid-request", f"{field}: write exactly one of {names}.")


def _time(text: str, field: str) -> int:
    try:
        return parse_timestamp(text)
    except ValueError as error:
        raise Refusal("invalid-request", f"{field}.timestamp: {error}.") from error


def _key(job: Job) -> str:
    """Sorts as the list does, the other way round."""
    return f"{job.row.created_ms:015d}-{job.id}"


def _number(after: str) -> int | None:
    """The row that a page token stands for."""
    if not after:
        return None
    if after.isascii() and after.isdigit() and len(after) <= 18:
        return int(after)
    raise Refusal("invalid-request", "page_token is none that this list answered with.")


def _view(job: Job) -> ReplayView:
    row, wish, counts = job.row, job.row.wish, job.counts
    target = ReplayTarget(topic=wish["target_topic"])
    if wish["channel"] is not None:
        target = ReplayTarget(channel=wish["channel"])
    return ReplayView(
        id=job.id,
        state=job.state.value,
        topic=row.topic,
        target=target,
        filter=wish["filter"],
        rate=wish["rate"],
        total=job.total,
        delivered=counts.delivered,
        failed=counts.failed,
        filtered=counts.filtered,
        missing=counts.missing,
        remaining=job.remaining,
        detail=row.detail,
        started=format_timestamp(row.created_ms),
        ended=None if job.is_running else format_timestamp(row.updated_ms),
    )


def _ranges(
    ranges: list[Range], positions: Mapping[int, int] | None = None
) -> Iterator[ReplayRange]:
    for found in ranges:
        view = ReplayRange(found.partition, found.start, found.end, found.message_count)
        if positions is not None:
            view.next_offset = positions.get(found.partition, found.start)
        yield view


def _attempt(row: AttemptRow) -> AttemptView:
    return AttemptView(
        id=row.id or 0,
        flow=row.flow_id,
        subscription=None,
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


# --- the table of operations ----------------------------------------------------------------------


def replay_operations(door: Door, replays: Replays) -> list[Operation]:
    handlers = ReplayHandlers(door, replays)
    return [_create(handlers), *_look(handlers), _cancel(handlers)]


def _create(handlers: ReplayHandlers) -> Operation:
    example = {
        "source": {"topic": "orders", "from": {"timestamp": "2026-11-27T10:00:00Z"}},
        "target": {"channel": "billing"},
        "rate": 100,
    }
    return Operation(
        "createReplay",
        "POST",
        PATH,
        TAG,
        "Send a part of a topic once more, to one channel or topic.",
        handlers.create,
        (
            Answer(
                202,
                "It began.",
                (Body(JSON, ReplayView),),
                {"Location": "Path of the replay."},
            ),
            Answer(200, "dry_run: what it would send.", (Body(JSON, ReplayDryRun),)),
        ),
        CREATE_CODES,
        "The range is fixed when it begins: what is published meanwhile is no part of it. Cursors"
        " of subscriptions stay where they are. A message that fails all its attempts is counted"
        " and is no dead letter.",
        bodies=(Body(JSON, ReplayRequest, example=example),),
        is_registration=True,
    )


def _look(handlers: ReplayHandlers) -> list[Operation]:
    return [
        Operation(
            "listReplays",
            "GET",
            PATH,
            TAG,
            "Replays that run, and those that ended within a week; the newest first.",
            handlers.list_page,
            (Answer(200, "One page.", (Body(JSON, ReplayList),)),),
            parameters=p.PAGE,
        ),
        Operation(
            "readReplay",
            "GET",
            PATH + "/{replay}",
            TAG,
            "How far a replay is.",
            handlers.read,
            (Answer(200, "In total, and of each partition.", (Body(JSON, ReplayView),)),),
            ("unknown-replay", "metadata-unavailable"),
            parameters=(REPLAY,),
        ),
        Operation(
            "listReplayAttempts",
            "GET",
            PATH + "/{replay}/attempts",
            TAG,
            "Attempts of a replay that failed, the newest first, page by page.",
            handlers.attempts,
            (Answer(200, "One page.", (Body(JSON, AttemptList),)),),
            ("unknown-replay", "metadata-unavailable"),
            parameters=(REPLAY, *p.PAGE),
        ),
    ]


def _cancel(handlers: ReplayHandlers) -> Operation:
    return Operation(
        "cancelReplay",
        "DELETE",
        PATH + "/{replay}",
        TAG,
        "Cancel a replay: nothing more is sent, what is on its way ends.",
        handlers.cancel,
        (Answer(200, "It is cancelled, or had ended before.", (Body(JSON, ReplayView),)),),
        ("unknown-replay", "metadata-unavailable"),
        parameters=(REPLAY,),
        is_registration=True,
    )
