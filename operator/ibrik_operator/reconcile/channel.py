"""Channel: stored at every pool that has a Subscription naming it, with credentials that work."""

from typing import Any

from ibrik_operator.conditions.channel import ChannelFacts, channel_verdicts
from ibrik_operator.conditions.condition import Violation
from ibrik_operator.conditions.serving import Serving
from ibrik_operator.credentials import fault_of
from ibrik_operator.decisions.placing import pools_of_channel
from ibrik_operator.decisions.references import secret_keys_of
from ibrik_operator.keys import Document, Key
from ibrik_operator.reconcile import lifecycle
from ibrik_operator.reconcile.context import Context
from ibrik_operator.reconcile.serving import retry_if_needed, serve

FIELDS = ("channelId", "kind", "destinationHost", "destinationPort", "circuit", "pausedUntil")


async def reconcile(context: Context, key: Key) -> float | None:
    channel = context.world.get(key)
    if channel is None or channel["metadata"].get("deletionTimestamp") is not None:
        return None
    if await lifecycle.is_held(context, channel):
        return None
    wanted = pools_of_channel(channel, context.world)
    # Where it is served although nobody may name it any more, the pool has to learn of that.
    served = [
        pool
        for pool in context.observations.pools()
        if pool not in wanted and context.observations.serves(pool, channel) is not None
    ]
    servings = [
        await serve(context, pool, channel, confirmed_by="MetadataStored")
        for pool in [*wanted, *served]
    ]
    own = tuple(servings[: len(wanted)])
    facts = ChannelFacts(key, _credentials(context, channel, wanted), own)
    await context.write_status(channel, _fields(context, channel, own), channel_verdicts(facts))
    retry_if_needed(*servings)
    return None


def _credentials(context: Context, channel: Document, pools: list[Key]) -> Violation | None:
    """The first fault at any pool."""
    namespace = channel["metadata"]["namespace"]
    references = [(namespace, *one) for one in secret_keys_of(channel)]
    if not references:
        return None
    for pool in pools:
        known = context.credentials.of(pool)
        if known is None or not known.references.issuperset(references):
            context.enqueue(Key("Credentials", pool.namespace, pool.name))
        fault = fault_of(references, known, context.observations.of(pool).answers())
        if fault is not None:
            return fault
    return None


def _fields(context: Context, channel: Document, servings: tuple[Serving, ...]) -> dict[str, Any]:
    """As the first pool observes it; that of before while none says anything."""
    before = channel.get("status") or {}
    seen = next((one.status for one in servings if one.status), before)
    named = sum(1 for _ in context.world.naming(Key.of(channel)))
    return {**{name: seen.get(name) for name in FIELDS}, "subscriptions": named}
