"""How channels and subscriptions look from outside: the row as a resource, with its status."""

from typing import Any

from ibrik_api.resources.channel import Channel, ChannelSpec, ChannelStatus
from ibrik_api.resources.destination import Destination
from ibrik_api.resources.destination_rules import describe_destination, destination_endpoint
from ibrik_api.resources.meta import ObjectMeta
from ibrik_api.resources.subscription import Subscription, SubscriptionSpec, SubscriptionStatus
from ibrik_api.timestamps import format_timestamp
from ibrik_broker.metadata.resources import ResourceRow
from ibrik_broker.metadata.rows import Origin
from ibrik_broker.registrations.conditions import CHANNEL_ASPECTS, SUBSCRIPTION_ASPECTS, Health
from ibrik_broker.registrations.delivering import SeenFlow, SeenOutlet

STOPPED, ELSEWHERE = "stopped", "elsewhere"


def channel_view(
    row: ResourceRow,
    spec: ChannelSpec,
    health: Health,
    *,
    outlet: SeenOutlet | None,
    subscriptions: int,
    now_ms: int,
    now_ticks: int,
) -> Channel:
    """`metadata.resourceVersion` is the revision, which is also the ETag."""
    host, port = destination_endpoint(spec)
    until_ticks = None if outlet is None else outlet.paused_until_ticks(now_ticks)
    status = ChannelStatus(
        channel_id=row.id,
        origin=row.origin.value,
        managed_by=_managed_by("Channel", row),
        observed_generation=row.generation,
        kind=spec.kind,
        destination_host=host,
        destination_port=port,
        circuit=None if outlet is None else outlet.circuit(now_ticks),
        paused_until=(
            None if until_ticks is None else format_timestamp(now_ms + until_ticks - now_ticks)
        ),
        subscriptions=subscriptions,
        conditions=health.conditions(
            CHANNEL_ASPECTS, generation=row.generation, created_ms=row.created_ms
        ),
    )
    return Channel(metadata=_metadata(row), spec=spec, status=status)


def subscription_view(
    row: ResourceRow,
    spec: SubscriptionSpec,
    health: Health,
    *,
    topic: str | None,
    flow: SeenFlow | None,
    is_elsewhere: bool = False,
) -> Subscription:
    """`is_elsewhere`: another broker serves it, and alone knows how it is."""
    conditions = health.conditions(
        SUBSCRIPTION_ASPECTS, generation=row.generation, created_ms=row.created_ms
    )
    stopped = {"state": ELSEWHERE if is_elsewhere else STOPPED}
    status = SubscriptionStatus(
        subscription_id=row.id,
        origin=row.origin.value,
        managed_by=_managed_by("Subscription", row),
        observed_generation=row.generation,
        topic=topic,
        destination=_destination(row, spec),
        conditions=[] if is_elsewhere else conditions,
        **(stopped if flow is None else _progress(flow)),
    )
    return Subscription(metadata=_metadata(row), spec=spec, status=status)


def _progress(flow: SeenFlow) -> dict[str, Any]:
    oldest_ms = flow.oldest_ms
    return {
        "state": flow.state,
        "backlog": flow.backlog,
        "oldest_time": None if oldest_ms is None else format_timestamp(oldest_ms),
        "in_flight": flow.in_flight_count,
        "retrying": flow.retrying_count,
        "dead_lettered": flow.counters.dead_lettered,
    }


def _destination(row: ResourceRow, spec: SubscriptionSpec) -> str | None:
    """`channel/name`, `channel/namespace/name`, or the inline destination; 253 characters of it."""
    reference = spec.channel_ref
    if reference is not None:
        is_foreign = reference.namespace not in (None, row.namespace)
        place = f"{reference.namespace}/" if is_foreign else ""
        return f"channel/{place}{reference.name}"[:253]
    return None if spec.push is None else described(spec.push)


def described(destination: Destination) -> str:
    return describe_destination(destination)[:253]


def _metadata(row: ResourceRow) -> ObjectMeta:
    return ObjectMeta(
        name=row.name,
        namespace=row.namespace,
        uid=row.resource_uid,
        generation=row.generation,
        resource_version=str(row.revision),
        creation_timestamp=format_timestamp(row.created_ms),
    )


def _managed_by(kind: str, row: ResourceRow) -> str | None:
    is_managed = row.origin is Origin.RESOURCE
    return f"{kind} {row.namespace}/{row.name}"[:253] if is_managed else None
