"""The data plane (`/v1`): puts handlers, operations, documents and limits together."""

from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from aiohttp import web

from ibrik_broker.auth.admission import Admission
from ibrik_broker.auth.clients import Clients
from ibrik_broker.auth.gatekeeper import Gatekeeper
from ibrik_broker.auth.publishers import Publishers
from ibrik_broker.http.access import Access
from ibrik_broker.http.bodies import BodyGate, BodyReader
from ibrik_broker.http.catalogue import Delivery, catalogue_operations
from ibrik_broker.http.clients import client_operations
from ibrik_broker.http.docs import add_docs
from ibrik_broker.http.door import Door
from ibrik_broker.http.guard import RouteCounters, add_operations
from ibrik_broker.http.messages import message_operations
from ibrik_broker.http.openapi import build_document
from ibrik_broker.http.operations import Operation
from ibrik_broker.http.patience import Patience
from ibrik_broker.http.publishers import publisher_operations
from ibrik_broker.http.resources import topic_operations
from ibrik_broker.http.stream import Stream
from ibrik_broker.partitions.engine import Engine
from ibrik_broker.settings import LimitSettings
from ibrik_broker.telemetry.metrics import Reading
from ibrik_broker.topics.registry import Registry

if TYPE_CHECKING:
    from ibrik_broker.http.consuming import ConsumerPlane
    from ibrik_broker.http.routing import Routing

HEARTBEAT_MS = 15_000
DESCRIPTION = (
    "Publish messages, read them by offset, follow them live. A refusal is a problem document"
    " (RFC 9457) whose `code` says what to do."
)


@dataclass(frozen=True, slots=True)
class DataPlane:
    """The application, and what the program needs to know of it besides."""

    app: web.Application
    operations: list[Operation]
    stream: Stream
    gate: BodyGate
    counters: RouteCounters
    consumers: "ConsumerPlane | None" = None

    def readings(self) -> Iterator[Reading]:
        yield from self.counters.readings()
        yield from self.stream.readings()
        if self.consumers is not None:
            yield from self.consumers.readings()


def build_data_plane(
    engine: Engine,
    registry: Registry,
    limits: LimitSettings,
    *,
    allocate_producer_id: Callable[[], Awaitable[int]],
    publishers: Publishers,
    clients: Clients,
    gatekeeper: Gatekeeper | None = None,
    access: Access = Access(),  # noqa: B008 - a value
    delivery: Delivery | None = None,
    create_topic: Callable[[str], Awaitable[None]] | None = None,
    make_consumers: "Callable[[Door, int], ConsumerPlane] | None" = None,
    make_routing: "Callable[[Door], Routing] | None" = None,
    heartbeat_ms: int = HEARTBEAT_MS,
) -> DataPlane:
    """`create_topic` makes a topic on first use (`--dev`); None refuses unknown topics.

    `delivery` serves channels, subscriptions and subscribers. `make_consumers` makes what serves
    consumers, of the door and the time of a heartbeat. Without both it serves topics alone.
    `make_routing` brings requests to other brokers of a pool.
    """
    gate = BodyGate(limits.in_flight_bytes)
    patience = Patience(limits.request_timeout_ms)
    admission = Admission(publishers, gatekeeper)
    door = Door(engine, limits, gate, BodyReader(limits), patience, create_topic, admission)
    stream = Stream(door, heartbeat_ms)
    consumers = None if make_consumers is None else make_consumers(door, heartbeat_ms)
    routing = None if make_routing is None else make_routing(door)
    operations = [
        *message_operations(door, stream),
        *topic_operations(door, registry, allocate_producer_id),
        *publisher_operations(door, publishers),
        *client_operations(door, clients),
        *(() if delivery is None else catalogue_operations(door, delivery)),
        *(() if consumers is None else consumers.operations),
    ]
    operations = access.restrict(operations if routing is None else routing.route(operations))
    counters = RouteCounters()
    app = web.Application()
    add_docs(app, partial(build_document, "Ibrik", DESCRIPTION, operations))
    add_operations(app, operations, counters)

    async def say_goodbye(_app: web.Application) -> None:
        stream.close()
        if consumers is not None:
            consumers.close()
        if routing is not None:
            routing.close()

    app.on_shutdown.append(say_goodbye)
    return DataPlane(app, operations, stream, gate, counters, consumers)
