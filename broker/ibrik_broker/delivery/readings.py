"""What delivery says at a scrape: integers that it keeps anyway.

At most LABELLED_FLOWS subscriptions and channels have series of their own; the rest are summed up
as `other`, so that a scrape stays small whatever is registered.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator

from ibrik_api.resources.channel import Circuit
from ibrik_broker.delivery.dispatcher import Dispatcher
from ibrik_broker.delivery.flow import Flow
from ibrik_broker.delivery.guard import Guard
from ibrik_broker.delivery.outlet import Outlet
from ibrik_broker.telemetry import metrics
from ibrik_broker.telemetry.metrics import MetricSpec, Reading

LABELLED_FLOWS = 2_000
OTHER = "other"

_FLOW_VALUES: tuple[tuple[MetricSpec, Callable[[Flow], int]], ...] = (
    (metrics.SUBSCRIPTION_BACKLOG, lambda flow: flow.backlog),
    (metrics.SUBSCRIPTION_IN_FLIGHT, lambda flow: flow.in_flight_count),
    (metrics.SUBSCRIPTION_RETRYING, lambda flow: flow.retrying_count),
    (metrics.DELIVERED, lambda flow: flow.counters.delivered),
    (metrics.FAILED_ATTEMPTS, lambda flow: flow.counters.failed),
    (metrics.RETRIED_ATTEMPTS, lambda flow: flow.counters.retried),
    (metrics.DEAD_LETTERED, lambda flow: flow.counters.dead_lettered),
    (metrics.LOST_MESSAGES, lambda flow: flow.counters.lost),
    (metrics.FILTERED_MESSAGES, lambda flow: flow.counters.filtered),
    (metrics.FILTER_ERRORS, lambda flow: flow.filter_errors),
    (metrics.GAP_MESSAGES, lambda flow: flow.counters.gaps),
)


def delivery_readings(
    dispatcher: Dispatcher, guard: Guard, *, now_ms: int, now_ticks: int
) -> Iterator[Reading]:
    yield Reading(metrics.DELIVERY_COMMITS, (), dispatcher.ledger.commit_count)
    for reason, count in guard.denials.items():
        yield Reading(metrics.EGRESS_DENIED, (reason,), count)
    for topic, histogram in dispatcher.latencies.items():
        yield Reading(metrics.APPEND_TO_DELIVERY, (topic,), histogram)
    yield from _flows(dispatcher.flows(), now_ms)
    yield from _outlets(dispatcher.outlets(), now_ticks)


def _flows(flows: Iterable[Flow], now_ms: int) -> Iterator[Reading]:
    others: Counter[MetricSpec] = Counter()
    lasting = (flow for flow in flows if flow.plan.ends is None)  # replays come and go
    for number, flow in enumerate(lasting):
        labels = (flow.plan.topic, flow.plan.name)
        for spec, value_of in _FLOW_VALUES:
            if number < LABELLED_FLOWS:
                yield Reading(spec, labels, value_of(flow))
            else:
                others[spec] += value_of(flow)
        oldest_ms = flow.oldest_ms if number < LABELLED_FLOWS else None
        if oldest_ms is not None:
            age_seconds = max(0, now_ms - oldest_ms) / 1_000
            yield Reading(metrics.SUBSCRIPTION_OLDEST, labels, age_seconds)
    for spec, total in others.items():
        yield Reading(spec, (OTHER, OTHER), total)


def _outlets(outlets: Iterable[Outlet], now_ticks: int) -> Iterator[Reading]:
    others: Counter[str] = Counter()
    for number, outlet in enumerate(outlets):
        counters = outlet.counters
        if number >= LABELLED_FLOWS:
            others["delivered"] += counters.delivered
            others["failed"] += counters.failed
            continue
        name = outlet.wish.name
        yield Reading(metrics.CHANNEL_ATTEMPTS, (name, "delivered"), counters.delivered)
        yield Reading(metrics.CHANNEL_ATTEMPTS, (name, "failed"), counters.failed)
        yield Reading(metrics.CHANNEL_IN_FLIGHT, (name,), outlet.in_flight)
        is_open = outlet.circuit(now_ticks) is not Circuit.CLOSED
        yield Reading(metrics.CHANNEL_OPEN, (name,), int(is_open))
    for result, total in others.items():
        yield Reading(metrics.CHANNEL_ATTEMPTS, (OTHER, result), total)
