"""From the spec of a subscription to what the dispatcher is asked for: references and defaults.

Pure: what there is comes in as `Surroundings`. A reference that leads nowhere is a fault and not an
error; whoever asked over HTTP is refused with it, a resource is accepted and waits.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple, Protocol

from ibrik_api.resources.channel import AllowedNamespaces
from ibrik_api.resources.subscription import (
    ChannelReference,
    Mode,
    Start,
    StartFrom,
    SubscriptionSpec,
)
from ibrik_api.resources.subscription_rules import group_type, ordering_of, parse_offsets
from ibrik_api.resources.topic import Delivery, Dispatch, TopicSpec
from ibrik_api.timestamps import parse_timestamp
from ibrik_broker.delivery.filters import Filter
from ibrik_broker.delivery.retry import resolve_policy
from ibrik_broker.delivery.wishes import ChannelWish, StartWish, SubscriptionWish
from ibrik_broker.metadata.resources import ResourceRow
from ibrik_broker.registrations.conditions import Aspect, Fault, Reason

PAUSED, GAP, GONE = "paused", "gap", "gone"
FROM_EARLIEST = StartWish()
_policy = lru_cache(maxsize=1_024)(resolve_policy)


class FoundTopic(NamedTuple):
    name: str
    """At the broker."""
    spec: TopicSpec | None
    """None: it is not served now."""


class FoundChannel(NamedTuple):
    id: str
    allowed_namespaces: AllowedNamespaces


class Surroundings(Protocol):
    def topic(self, row: ResourceRow, reference: str) -> FoundTopic | None: ...
    def channel(self, namespace: str, name: str) -> FoundChannel | None: ...


@dataclass(frozen=True, slots=True)
class Resolution:
    wish: SubscriptionWish
    inline: ChannelWish | None
    """The destination that is written in the subscription itself."""
    faults: Mapping[Aspect, Fault]
    is_queue: bool = False
    """The topic gives each message to one."""


def resolve(
    row: ResourceRow, spec: SubscriptionSpec, message_filter: Filter | None, around: Surroundings
) -> Resolution:
    faults: dict[Aspect, Fault] = {}
    topic = around.topic(row, spec.topic_ref.name)
    topic_spec = topic.spec if topic is not None else None
    delivery = Delivery() if topic_spec is None else topic_spec.delivery
    dispatch = Dispatch.BROADCAST if topic_spec is None else topic_spec.dispatch
    if topic_spec is None:
        faults[Aspect.TOPIC_RESOLVED] = _topic_fault(row, spec.topic_ref.name, topic)
    dead_letter_topic = _dead_letter_topic(row, spec, around, faults)
    channel_id = _channel_id(row, spec, around, faults)
    deadline_ms = spec.ack.deadline_ms
    wish = SubscriptionWish(
        id=row.id,
        name=row.name,
        namespace=row.namespace,
        topic=spec.topic_ref.name if topic is None else topic.name,
        mode=spec.mode,
        type=group_type(spec, dispatch),
        channel_id=channel_id,
        filter=message_filter,
        start=start_wish(spec.start),
        ack_deadline_ms=delivery.ack_deadline_ms if deadline_ms is None else deadline_ms,
        max_in_flight=spec.ack.max_in_flight,
        guarantee=spec.delivery,
        ordering=ordering_of(spec, delivery),
        on_gap=spec.on_gap,
        retry=_policy(spec.retry, delivery.retry_preset),
        dead_letter_topic=dead_letter_topic,
        rate=spec.rate_limit,
        halt=PAUSED if spec.paused else _halt(row),
    )
    return Resolution(wish, inline_wish(row, spec), faults, dispatch is Dispatch.QUEUE)


def inline_wish(row: ResourceRow, spec: SubscriptionSpec) -> ChannelWish | None:
    """A destination of its own stops (410) with the subscription's row, and is resumed with it."""
    if spec.mode is not Mode.PUSH or spec.push is None:
        return None
    return ChannelWish(
        id=row.id,
        name=row.name,
        namespace=row.namespace,
        destination=spec.push,
        halt=GONE if row.halt == GONE else None,
    )


def start_wish(start: Start) -> StartWish:
    """The value was checked with the spec."""
    match start.from_:
        case StartFrom.EARLIEST:
            return FROM_EARLIEST
        case StartFrom.OFFSET:
            return StartWish(origin=start.from_, offsets=tuple(parse_offsets(start.value or "0")))
        case StartFrom.TIMESTAMP:
            return StartWish(origin=start.from_, timestamp_ms=parse_timestamp(start.value or ""))
        case _:
            return StartWish(origin=start.from_)


def channel_key(row: ResourceRow, reference: ChannelReference) -> tuple[str, str]:
    return reference.namespace or row.namespace, reference.name


def _halt(row: ResourceRow) -> str | None:
    return None if row.halt == GONE else row.halt


def _topic_fault(row: ResourceRow, reference: str, topic: FoundTopic | None) -> Fault:
    if topic is None:
        return Fault(
            Reason.TOPIC_NOT_FOUND,
            f"There is no Topic '{reference}' in namespace '{row.namespace}'. Create it: the "
            "subscription begins then.",
            "unknown-topic",
        )
    return Fault(
        Reason.TOPIC_NOT_SERVED,
        f"The topic '{topic.name}' is detached or cannot be opened. Apply it again, or look for it "
        "in the broker's log; the subscription goes on then.",
        "topic-unavailable",
    )


def _dead_letter_topic(
    row: ResourceRow,
    spec: SubscriptionSpec,
    around: Surroundings,
    faults: dict[Aspect, Fault],
) -> str | None:
    reference = spec.dead_letter.topic_ref
    if reference is None:
        return None
    topic = around.topic(row, reference.name)
    if topic is not None:
        return topic.name
    fault = Fault(
        Reason.DEAD_LETTER_TOPIC_NOT_FOUND,
        f"There is no Topic '{reference.name}' in namespace '{row.namespace}' for dead letters. "
        "Create it, or leave deadLetter.topicRef out.",
        "unknown-topic",
    )
    faults.setdefault(Aspect.TOPIC_RESOLVED, fault)
    return reference.name


def _channel_id(
    row: ResourceRow,
    spec: SubscriptionSpec,
    around: Surroundings,
    faults: dict[Aspect, Fault],
) -> str | None:
    if spec.mode is not Mode.PUSH:
        return None
    if spec.channel_ref is None:
        return row.id
    namespace, name = channel_key(row, spec.channel_ref)
    channel = around.channel(namespace, name)
    if channel is None:
        faults[Aspect.DESTINATION_RESOLVED] = Fault(
            Reason.DESTINATION_NOT_FOUND,
            f"There is no Channel '{name}' in namespace '{namespace}'. Create it, or name another "
            "in spec.channelRef.",
            "unknown-channel",
        )
        return None
    is_foreign = namespace != row.namespace
    if is_foreign and channel.allowed_namespaces is not AllowedNamespaces.ALL:
        faults[Aspect.DESTINATION_RESOLVED] = Fault(
            Reason.DESTINATION_NOT_ALLOWED,
            f"The Channel '{name}' of namespace '{namespace}' is not for namespace "
            f"'{row.namespace}'. Set its spec.allowedNamespaces to All, or name a channel of this "
            "namespace.",
        )
        return None
    return channel.id
