"""Looks at what the brokers of a pool serve, and compares it with the resources there are.

Differences go into the queue. What brokers serve and nobody declares any more is detached, after
two full lists in which it was absent. The key is that of the pool.
"""

import random
from collections.abc import Iterator

import structlog

from ibrik_api.kubernetes import DETACH_ABSENT
from ibrik_api.observed import ObservedResource
from ibrik_api.timestamps import format_timestamp
from ibrik_operator import events, metrics
from ibrik_operator.conditions.reasons import Reason
from ibrik_operator.credentials import fault_of
from ibrik_operator.decisions.absence import APART_S, Absences, allowed_of
from ibrik_operator.decisions.counters import is_news
from ibrik_operator.decisions.dependents import ARCHIVE, CREDENTIALS, OBSERVATION
from ibrik_operator.decisions.placing import resources_of_pool
from ibrik_operator.decisions.references import secret_keys_of
from ibrik_operator.desired.document import detaching
from ibrik_operator.documents import is_true
from ibrik_operator.events import News
from ibrik_operator.keys import Document, Key
from ibrik_operator.observations import PoolObservation
from ibrik_operator.reconcile.context import Context

log = structlog.get_logger(__name__)

COUNTS_APART_MS, COUNTS_PER_S = 30_000, 5
SOON_S = 5.0
"""While credentials are on their way to the brokers, or a pod does not answer."""


async def reconcile(context: Context, key: Key) -> float | None:
    assert key.kind == OBSERVATION
    pool = Key("BrokerPool", key.namespace, key.name)
    if context.world.get(pool) is None:
        context.observations.forget(pool)
        context.absences.pop(pool, None)
        return None
    seen = await context.brokers.observe(pool)
    before = context.observations.of(pool)
    observation = context.observations.note(pool, seen, context.now_ms())
    if _facts(before) != _facts(observation):
        context.enqueue(pool)
        context.enqueue(Key(ARCHIVE, key.namespace, key.name))  # A topic may have come to a broker.
    for resource in _with_other_credentials(context, pool, observation):
        context.enqueue(resource)
    if not observation.is_whole:
        metrics.resyncs.labels("failed").inc()
        return SOON_S
    different = list(_different(context, pool, observation))
    for resource in different:
        context.enqueue(resource)
    _enqueue_counts(context, pool, observation)
    metrics.resyncs.labels("different" if different else "steady").inc()
    is_absent = await _detach_absent(context, pool, observation)
    if context.credentials.of(pool) is not None:
        context.enqueue(Key(CREDENTIALS, key.namespace, key.name))
    return _next_s(context, pool, observation, is_absent=is_absent)


def _different(context: Context, pool: Key, observation: PoolObservation) -> Iterator[Key]:
    """Resources of this pool that are not served as they are."""
    for resource in resources_of_pool(pool, context.world):
        seen = observation.served.get(Key.of(resource))
        if seen is None or _is_other(seen, resource):
            yield Key.of(resource)


def _enqueue_counts(context: Context, pool: Key, observation: PoolObservation) -> None:
    """Those whose counts have moved; not too often, and one after the other."""
    now_ms = context.now_ms()
    if observation.counted_ms is not None and now_ms - observation.counted_ms < COUNTS_APART_MS:
        return
    observation.counted_ms = now_ms
    moved = 0
    for resource in resources_of_pool(pool, context.world):
        seen = observation.served.get(Key.of(resource))
        if seen is not None and is_news(resource, seen.status):
            context.enqueue(Key.of(resource), moved / COUNTS_PER_S)
            moved += 1


def _with_other_credentials(
    context: Context, pool: Key, observation: PoolObservation
) -> Iterator[Key]:
    """Resources whose status says of their secrets what is not so any more."""
    known = context.credentials.of(pool)
    for resource in resources_of_pool(pool, context.world):
        namespace = resource["metadata"]["namespace"]
        references = [(namespace, *one) for one in secret_keys_of(resource)]
        if not references:
            continue
        are_fine = fault_of(references, known, observation.answers()) is None
        type_ = "CredentialsValid" if resource["kind"] == "Channel" else "DestinationResolved"
        if are_fine != is_true(resource, type_):
            yield Key.of(resource)


def _is_other(seen: ObservedResource, resource: Document) -> bool:
    metadata = resource["metadata"]
    return (
        seen.is_detached
        or seen.uid != metadata.get("uid")
        or seen.generation != metadata.get("generation", 0)
    )


async def _detach_absent(context: Context, pool: Key, observation: PoolObservation) -> bool:
    """Whether something is absent, so that a second look is needed soon."""
    served = [one for one in observation.served.values() if not one.is_detached]
    absences = context.absences.setdefault(pool, Absences())
    candidates = [one for one in served if not _is_there(context, one)]
    if candidates:  # The world may be wrong, so the API server is asked for everything.
        await context.refresh()
        candidates = [one for one in candidates if not _is_there(context, one)]
    metrics.orphans.labels(pool.namespace, pool.name).set(len(candidates))
    was_stopped = absences.is_stopped
    document = context.world.get(pool) or {"metadata": {}}
    to_detach = absences.judge(
        served, candidates, context.now_ms() / 1000, allowed=allowed_of(document)
    )
    metrics.detach_stopped.labels(pool.namespace, pool.name).set(int(absences.is_stopped))
    if absences.is_stopped and not was_stopped:
        await _tell(context, pool, _stopped(pool, len(candidates), len(served)))
    now = format_timestamp(context.now_ms())
    for one in to_detach:
        key = Key(one.kind, one.namespace, one.name)
        await context.brokers.apply(pool, detaching(one, now=now))
        context.observations.note_gone(pool, key)
        await _tell(context, pool, News(Reason.DETACHED, f"{key} is gone; its data stays"))
    return len(candidates) > len(to_detach)


def _stopped(pool: Key, absent: int, served: int) -> News:
    return News(
        Reason.DETACH_STOPPED,
        f"{absent} of {served} resources that the brokers serve are not declared any more; all are "
        "served on. Declare them again, or, if they are to go: kubectl -n "
        f"{pool.namespace} annotate brokerpools.ibrik.dev {pool.name} {DETACH_ABSENT}={absent}",
        is_warning=True,
    )


async def _tell(context: Context, pool: Key, news: News) -> None:
    log.warning("absence", pool=str(pool), reason=news.reason, about=news.message)
    document = context.world.get(pool)
    if document is not None:
        await events.publish(context.kube, document, [news])


def _is_there(context: Context, seen: ObservedResource) -> bool:
    """Another one of the same name will be applied over it, which adopts what is there."""
    return context.world.get(Key(seen.kind, seen.namespace, seen.name)) is not None


def _facts(observation: PoolObservation) -> list[object]:
    """What the status of the pool says of its brokers, without what changes with every message."""
    facts: list[object] = []
    for seen in observation.brokers:
        if seen.observed is None:
            facts.append((seen.pod, None))
            continue
        broker = seen.observed.broker
        used = (broker.capacity_bytes - broker.free_bytes) * 10 // max(broker.capacity_bytes, 1)
        facts.append(
            (
                seen.pod,
                broker.id,
                broker.version,
                broker.is_metadata_ready,
                broker.is_storage_low,
                broker.capacity_bytes,
                used,
                sorted(broker.topics),
            )
        )
    return facts


def _next_s(context: Context, pool: Key, observation: PoolObservation, *, is_absent: bool) -> float:
    if is_absent:
        return APART_S + 1
    known = context.credentials.of(pool)
    for broker in observation.answers():
        for file, digest in (known.digests if known is not None else {}).items():
            if not digest.startswith(broker.credentials.get(file) or "-"):
                return SOON_S
    return context.settings.resync_ms / 1000 * (0.9 + random.random() / 5)  # noqa: S311
