"""The admin plane, on a port of its own: desired resources, observed topics, health, metrics.

`/admin/v1` needs a token when one is configured; probes and metrics are open.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
from aiohttp import web
from prometheus_client.exposition import CONTENT_TYPE_LATEST

from ibrik_api.desired import DesiredRequest, DesiredResponse, Outcome
from ibrik_api.errors import Refusal
from ibrik_api.http import TopicList
from ibrik_api.observed import Observed
from ibrik_api.resources.topic import Topic
from ibrik_broker.http.archive import archive_operations
from ibrik_broker.http.bodies import BodyGate, BodyReader
from ibrik_broker.http.crud import json_answer, read_json
from ibrik_broker.http.docs import add_docs
from ibrik_broker.http.door import Door
from ibrik_broker.http.guard import RouteCounters, add_operations
from ibrik_broker.http.observed import Observer
from ibrik_broker.http.openapi import build_document
from ibrik_broker.http.operations import JSON, TEXT, Answer, Body, Operation, Parameter
from ibrik_broker.http.parameters import PAGE
from ibrik_broker.http.patience import Patience
from ibrik_broker.http.tokens import TokenFile, needs_token
from ibrik_broker.http.topics import Topics, topic_answer
from ibrik_broker.partitions.engine import Engine
from ibrik_broker.settings import LimitSettings
from ibrik_broker.telemetry.collector import BrokerCollector, expose
from ibrik_broker.topics.registry import Registry

MAX_DESIRED_BYTES = 8 * 2**20
METRICS = "text/plain"
DESCRIPTION = "What the operator and `ibrik apply` call, probes, and metrics."

Apply = Callable[[Sequence[Mapping[str, Any]]], AsyncIterator[tuple[int, Outcome]]]
"""Makes resources so; each outcome with the place of its resource in the request."""


@dataclass(frozen=True, slots=True)
class AdminPlane:
    app: web.Application
    operations: list[Operation]
    counters: RouteCounters


class Admin:
    def __init__(
        self,
        door: Door,
        registry: Registry,
        apply: Apply,
        *,
        is_ready: Callable[[], bool],
        collector: BrokerCollector,
        observer: Observer,
    ) -> None:
        self._door = door
        self._apply = apply
        self._registry = registry
        self._is_ready = is_ready
        self._collector = collector
        self._observer = observer

    async def apply(self, request: web.Request) -> web.Response:
        """Make the listed resources so; each has its own outcome."""
        return await apply_desired(self._door, request, self._apply)

    async def adopt(self, request: web.Request) -> web.Response:
        """Serve a folder again whose row was lost."""
        return topic_answer(await self._registry.adopt(request.match_info["topic_id"]))

    async def live(self, _request: web.Request) -> web.Response:
        return json_answer({"status": "alive"})

    async def ready(self, _request: web.Request) -> web.Response:
        """Ready to serve. Also with a full disk: reading goes on."""
        if not self._is_ready():
            raise Refusal("not-ready", "The broker is starting or stopping.")
        return json_answer({"status": "ready"})

    async def scrape(self, _request: web.Request) -> web.Response:
        asked = await self._observer.readings()
        body = await asyncio.to_thread(expose, [*self._collector.read(), *asked])
        return web.Response(body=body, headers={"Content-Type": CONTENT_TYPE_LATEST})


async def apply_desired(door: Door, request: web.Request, apply: Apply) -> web.Response:
    """Make the listed resources so; each has its own outcome."""
    document = await read_json(door, request, MAX_DESIRED_BYTES)
    desired = DesiredRequest.parse(document)
    # Encoded one by one: a thousand outcomes are many times as large as their text.
    encoded = [b""] * len(desired.resources)
    async for index, outcome in apply(desired.resources):
        encoded[index] = msgspec.json.encode(outcome.document())
    body = b'{"results":[' + b",".join(encoded) + b"]}"
    return web.Response(body=body, content_type=JSON)


async def _topics(
    registry: Registry, resources: Sequence[Mapping[str, Any]]
) -> AsyncIterator[tuple[int, Outcome]]:
    for index, outcome in enumerate(await registry.apply(resources)):
        yield index, outcome


def build_admin_plane(
    engine: Engine,
    registry: Registry,
    limits: LimitSettings,
    *,
    is_ready: Callable[[], bool],
    collector: BrokerCollector,
    observer: Observer,
    apply: Apply | None = None,
    token_file: Path | None = None,
    pool: Callable[[Door], list[Operation]] | None = None,
) -> AdminPlane:
    """`apply` makes desired resources so, of all kinds; None: of topics alone.

    `pool` makes the operations that brokers of a pool ask of each other; None: this one is alone.
    `token_file` None leaves the door open: only on loopback, which the settings see to.
    """
    gate = BodyGate(limits.in_flight_bytes)
    door = Door(engine, limits, gate, BodyReader(limits), Patience(limits.request_timeout_ms))
    tokens = None if token_file is None else TokenFile(token_file)
    admin = Admin(
        door,
        registry,
        apply or partial(_topics, registry),
        is_ready=is_ready,
        collector=collector,
        observer=observer,
    )
    operations = [
        *_resources(admin, door, registry, tokens),
        _observed(observer, tokens),
        *archive_operations(door, tokens),
        *_open(admin),
    ]
    if pool is not None:
        operations += pool(door)
    counters = RouteCounters()
    app = web.Application()
    add_docs(app, partial(build_document, "Ibrik administration", DESCRIPTION, operations))
    add_operations(app, operations, counters, unknown_route="unknownAdmin")
    return AdminPlane(app, operations, counters)


def _resources(
    admin: Admin, door: Door, registry: Registry, tokens: TokenFile | None
) -> list[Operation]:
    topics = Topics(door, registry)
    topic_id = Parameter("topic_id", "path", "Id of the topic, the name of its folder.")
    return [
        Operation(
            "applyDesired",
            "PUT",
            "/admin/v1/desired",
            "resources",
            "Make these resources so. What is not listed stays untouched.",
            needs_token(admin.apply, tokens),
            (Answer(200, "One outcome per resource, in order.", (Body(JSON, DesiredResponse),)),),
            ("unauthorized", "invalid-json", "invalid-resource", "metadata-unavailable"),
            bodies=(Body(JSON, DesiredRequest),),
            needs_token=True,
        ),
        Operation(
            "observeTopics",
            "GET",
            "/admin/v1/topics",
            "resources",
            "All topics with their state, page by page.",
            needs_token(topics.list_page, tokens),
            (Answer(200, "One page.", (Body(JSON, TopicList),)),),
            ("unauthorized",),
            parameters=PAGE,
            needs_token=True,
        ),
        Operation(
            "adoptTopic",
            "POST",
            "/admin/v1/topics/{topic_id}:adopt",
            "resources",
            "Serve a folder of the volume again whose row in the database is lost.",
            needs_token(admin.adopt, tokens),
            (Answer(200, "It is served.", (Body(JSON, Topic),)),),
            (
                "unauthorized",
                "not-found",
                "topic-exists",
                "topic-unavailable",
                "metadata-unavailable",
                "storage-failed",
            ),
            parameters=(topic_id,),
            needs_token=True,
        ),
    ]


def _observed(observer: Observer, tokens: TokenFile | None) -> Operation:
    return Operation(
        "observe",
        "GET",
        "/admin/v1/observed",
        "resources",
        "What this broker is, and every resource that came over `desired` as it serves it.",
        needs_token(observer.observe, tokens),
        (Answer(200, "All of it, in one answer.", (Body(JSON, Observed),)),),
        ("unauthorized",),
        needs_token=True,
    )


def _open(admin: Admin) -> list[Operation]:
    status = {
        "type": "object",
        "required": ["status"],
        "properties": {"status": {"type": "string"}},
    }
    return [
        Operation(
            "checkHealth",
            "GET",
            "/healthz",
            "probes",
            "Whether the process answers.",
            admin.live,
            (Answer(200, "It does.", (Body(JSON, status),)),),
        ),
        Operation(
            "checkReadiness",
            "GET",
            "/readyz",
            "probes",
            "Whether requests are taken.",
            admin.ready,
            (Answer(200, "They are.", (Body(JSON, status),)),),
            ("not-ready",),
        ),
        Operation(
            "scrapeMetrics",
            "GET",
            "/metrics",
            "probes",
            "Metrics in the text format of Prometheus.",
            admin.scrape,
            (Answer(200, "All metrics.", (Body(METRICS, TEXT),)),),
        ),
    ]
