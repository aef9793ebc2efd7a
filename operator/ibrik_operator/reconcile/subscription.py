"""Subscription: the brokers of its topic's pool deliver it; the status says how far they are."""

from typing import Any

from ibrik_operator.conditions.condition import Violation
from ibrik_operator.conditions.serving import Serving
from ibrik_operator.conditions.subscription import SubscriptionFacts, subscription_verdicts
from ibrik_operator.credentials import fault_of
from ibrik_operator.decisions.placing import is_allowed
from ibrik_operator.decisions.references import secret_keys_of
from ibrik_operator.documents import is_ready
from ibrik_operator.keys import Document, Key
from ibrik_operator.naming import channel_of, pool_of_topic, topic_of
from ibrik_operator.reconcile import lifecycle
from ibrik_operator.reconcile.context import Context
from ibrik_operator.reconcile.serving import retry_if_needed, serve, was_confirmed

DATA_PLANE_READY = "DataPlaneReady"
FIELDS = (
    "subscriptionId", "topic", "destination", "backlog", "oldestTime", "inFlight", "retrying",
    "deadLettered", "state",
)  # fmt: skip


async def reconcile(context: Context, key: Key) -> float | None:
    subscription = context.world.get(key)
    if subscription is None:
        return None
    topic = context.world.get(topic_of(subscription))
    pool = None if topic is None else pool_of_topic(topic)
    if subscription["metadata"].get("deletionTimestamp") is not None:
        return await lifecycle.delete(context, subscription, pool or _served_by(context, key))
    if await lifecycle.is_held(context, subscription):
        return None
    if await lifecycle.has_finalizers_changed(context, subscription):
        return None
    channel_key = channel_of(subscription)
    channel = None if channel_key is None else context.world.get(channel_key)
    is_channel_allowed = channel is not None and is_allowed(channel, key.namespace)
    confirmed = was_confirmed(subscription, DATA_PLANE_READY)
    serving = Serving(is_known=confirmed, is_confirmed=confirmed)
    if pool is not None and is_ready(topic) and (channel_key is None or is_channel_allowed):
        serving = await serve(context, pool, subscription, confirmed_by=DATA_PLANE_READY)
    facts = SubscriptionFacts(
        topic=topic_of(subscription),
        is_topic_there=topic is not None,
        is_topic_ready=is_ready(topic),
        channel=channel_key,
        is_channel_there=channel is not None,
        is_channel_allowed=is_channel_allowed,
        namespace=key.namespace,
        credentials=_credentials(context, subscription, pool),
        serving=serving,
    )
    await context.write_status(
        subscription, _fields(subscription, serving), subscription_verdicts(facts)
    )
    retry_if_needed(serving)
    return None


def _served_by(context: Context, key: Key) -> Key | None:
    """The pool that has it, although its topic is gone."""
    observed = context.observations
    return next((pool for pool in observed.pools() if key in observed.of(pool).served), None)


def _credentials(context: Context, subscription: Document, pool: Key | None) -> Violation | None:
    """Of a destination that is written inline; a Channel answers for its own."""
    namespace = subscription["metadata"]["namespace"]
    references = [(namespace, *one) for one in secret_keys_of(subscription)]
    if pool is None or not references:
        return None
    known = context.credentials.of(pool)
    if known is None or not known.references.issuperset(references):
        context.enqueue(Key("Credentials", pool.namespace, pool.name))
    return fault_of(references, known, context.observations.of(pool).answers())


def _fields(subscription: Document, serving: Serving) -> dict[str, Any]:
    """As the brokers observe it; that of before while they say nothing."""
    seen = serving.status or subscription.get("status") or {}
    fields = {name: seen.get(name) for name in FIELDS}
    channel = channel_of(subscription)
    if channel is not None:
        fields["destination"] = f"channel/{channel.name}"
    return fields
