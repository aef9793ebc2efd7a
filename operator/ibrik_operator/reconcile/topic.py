"""Topic: the brokers of its pool serve it, and the status says how."""

from typing import Any

from ibrik_api.kubernetes import DEFAULT_POOL, HTTP_PORT, object_name
from ibrik_operator.conditions.archive import archive_verdicts
from ibrik_operator.conditions.condition import Verdict
from ibrik_operator.conditions.serving import Serving
from ibrik_operator.conditions.topic import TopicFacts, topic_verdicts
from ibrik_operator.decisions.archiving import is_archived
from ibrik_operator.decisions.rivals import rival
from ibrik_operator.documents import is_ready
from ibrik_operator.keys import Document, Key
from ibrik_operator.naming import pool_of_topic, topic_name
from ibrik_operator.reconcile import lifecycle
from ibrik_operator.reconcile.context import Context
from ibrik_operator.reconcile.pool import ensure_default_pool
from ibrik_operator.reconcile.serving import retry_if_needed, serve


async def reconcile(context: Context, key: Key) -> float | None:
    topic = context.world.get(key)
    if topic is None:
        return None
    pool = pool_of_topic(topic)
    older = rival(
        topic, context.world, lambda one: context.observations.serves(pool, one) is not None
    )
    if topic["metadata"].get("deletionTimestamp") is not None:
        # A Topic that never had the name has nothing to delete at the brokers.
        return await lifecycle.delete(context, topic, None if older is not None else pool)
    if await lifecycle.is_held(context, topic):
        return None
    if await lifecycle.has_finalizers_changed(context, topic):
        return None
    is_default_missing = pool.name == DEFAULT_POOL and context.world.get(pool) is None
    if is_default_missing and await ensure_default_pool(context, pool):
        return None  # The pool is news that leads here again.
    serving = Serving()
    if older is None and context.world.get(pool) is not None:
        serving = await serve(context, pool, topic, confirmed_by="ConfigApplied")
    facts = TopicFacts(
        pool=pool,
        is_pool_there=context.world.get(pool) is not None,
        is_pool_ready=is_ready(context.world.get(pool)),
        topic_name=topic_name(topic),
        rival=older,
        serving=serving,
    )
    fields = _fields(context, topic, serving)
    verdicts = [*topic_verdicts(facts), *_archive_verdicts(context, topic, fields, older)]
    await context.write_status(topic, fields, verdicts)
    retry_if_needed(serving)
    return None


def _archive_verdicts(
    context: Context, topic: Document, fields: dict[str, Any], older: Key | None
) -> list[Verdict]:
    """Nothing for what is not archived: no condition speaks of what nobody wishes."""
    if older is not None or not is_archived(topic):
        return []
    key = Key.of(topic)
    scheduling = context.archives.of(pool_of_topic(topic)).scheduling.get(key)
    before = (topic.get("status") or {}).get("conditions") or []
    return archive_verdicts(key.namespace, scheduling, fields["archive"], before)


def _fields(context: Context, topic: Document, serving: Serving) -> dict[str, Any]:
    """Counts and addresses; those of before while the brokers say nothing."""
    before = topic.get("status") or {}
    seen = serving.status or before
    key, name = Key.of(topic), topic_name(topic)
    base = f"http://{object_name(pool_of_topic(topic).name)}.{key.namespace}.svc:{HTTP_PORT}"
    endpoints = {
        "publish": f"{base}/v1/topics/{name}/messages",
        "fetch": f"{base}/v1/topics/{name}/partitions/0/messages",
        "stream": f"{base}/v1/topics/{name}/stream",
    }
    return {
        "topicId": seen.get("topicId"),
        "messages": seen.get("messages"),
        "bytes": seen.get("bytes"),
        "subscriptions": sum(1 for _ in context.world.naming(key)),
        "archive": seen.get("archive"),
        "endpoints": endpoints if serving.is_known else before.get("endpoints"),
    }
