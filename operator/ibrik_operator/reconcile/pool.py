"""BrokerPool: its objects are as wished, its pods replaced one at a time, its state is told.

What Kubernetes does not accept becomes a condition, and everything else goes on.
"""

from collections.abc import Sequence
from typing import Any

import structlog

from ibrik_api.errors import Refusal
from ibrik_api.kubernetes import POOL_LABEL, object_name, pod_name, pod_selector, selector_text
from ibrik_api.resources.pool import BrokerPool, BrokerPoolSpec
from ibrik_api.resources.pool_rules import check_pool
from ibrik_operator import faults
from ibrik_operator.conditions.condition import Violation
from ibrik_operator.conditions.pool import PoolFacts, pool_verdicts
from ibrik_operator.conditions.reasons import Reason
from ibrik_operator.decisions.dependents import OBSERVATION
from ibrik_operator.decisions.growth import growing
from ibrik_operator.decisions.pool_counts import pool_counts
from ibrik_operator.decisions.rolling import roll
from ibrik_operator.decisions.scaling import scale
from ibrik_operator.desired.broker_set import Defaults, pod_hash, stateful_set
from ibrik_operator.desired.default_pool import default_pool
from ibrik_operator.desired.spec import pool_spec
from ibrik_operator.documents import is_ready, is_terminating
from ibrik_operator.keys import Document, Key
from ibrik_operator.kube import KubeExists, KubeForbidden
from ibrik_operator.observations import PoolObservation
from ibrik_operator.reconcile import lifecycle
from ibrik_operator.reconcile.context import Context
from ibrik_operator.reconcile.database import database_digest
from ibrik_operator.reconcile.pool_objects import PoolObjects

log = structlog.get_logger(__name__)


async def reconcile(context: Context, key: Key) -> float | None:
    pool = context.world.get(key)
    if pool is None or is_terminating(pool):
        return None  # Its objects have an owner, and go with it.
    if await lifecycle.is_held(context, pool):
        return None
    again_s = context.settings.resync_ms / 1000
    refused = _refusal(pool)
    if refused is not None:
        observation = context.observations.of(key)
        facts = PoolFacts(key, 0, (), observation, accepted=refused)
        await context.write_status(pool, _fields(pool, (), facts), pool_verdicts(facts))
        return again_s
    await _carry_out(context, key, pool, pool_spec(pool))
    return again_s


async def ensure_default_pool(context: Context, key: Key) -> bool:
    """Make the pool that everybody may name without making it; False when it cannot be made.

    Once it is there it is the user's: nothing of it is ever written again.
    """
    try:
        await context.kube.create(default_pool(key, context.settings.default_pool()))
    except KubeExists:
        return True  # It came meanwhile.
    except KubeForbidden as error:  # Such as in a namespace that is being deleted.
        log.info("default_pool_not_made", namespace=key.namespace, reason=str(error))
        return False
    faults.reach("pool-default-made")
    return True


async def _carry_out(context: Context, key: Key, pool: Document, spec: BrokerPoolSpec) -> None:
    pods, claims = _pods(context, key), _claims(context, key)
    known = context.world.get(Key("StatefulSet", key.namespace, object_name(key.name)))
    current = None if known is None else int(known["spec"]["replicas"])
    is_shrinking = current is not None and spec.replicas < current
    observation = await _observed(context, key, pods, is_shrinking=is_shrinking)
    replicas, scaled = scale(key, spec.replicas, current, observation, claims)

    objects = PoolObjects(context, pool)
    await objects.apply_all()
    await objects.label_claims(claims, replicas)
    defaults = Defaults(context.settings.broker_image, context.settings.image_pull_secrets)
    grown = await objects.grow(claims, spec.storage.size)
    database = await database_digest(context, pool, known)
    await objects.apply_set(
        stateful_set(pool, replicas, defaults, database), known, keeps_claims=grown is not None
    )

    next_pod = roll(pods, replicas, pod_hash(pool, defaults, database), observation, database)
    if next_pod.pod is not None and objects.is_set_settled:
        metadata = next_pod.pod["metadata"]
        await context.kube.delete(Key("Pod", key.namespace, metadata["name"]), uid=metadata["uid"])
        faults.reach("pool-pod-deleted")
    facts = PoolFacts(
        key,
        replicas,
        pods,
        observation,
        accepted=objects.template_fault,
        applied=objects.fault,
        scaled=scaled,
        grown=grown or growing(claims),
        rolled=next_pod.waits,
    )
    await context.write_status(pool, _fields(pool, pods, facts), pool_verdicts(facts))
    faults.reach("pool-status-written")


def _refusal(pool: Document) -> Violation | None:
    """What an older definition let through, or no definition can forbid."""
    try:
        parsed = BrokerPool.parse({name: pool[name] for name in pool if name != "status"})
    except Refusal as error:
        return Violation(Reason.SPEC_REFUSED, str(error), is_stalled=True)
    for finding in check_pool(parsed):
        sentence = f"{finding['pointer']}: {finding['detail']}"
        return Violation(Reason.SPEC_REFUSED, sentence, is_stalled=True)
    return None


async def _observed(
    context: Context, pool: Key, pods: Sequence[Document], *, is_shrinking: bool
) -> PoolObservation:
    """What is known; anew where a broker came since, or where a wrong answer would cost topics."""
    known = context.observations.of(pool)
    answered = {seen.uid for seen in known.brokers if seen.observed is not None}
    ready = {pod["metadata"]["uid"] for pod in pods if is_ready(pod)}
    if ready <= answered and not is_shrinking:
        return known
    seen = await context.brokers.observe(pool)
    context.enqueue(Key(OBSERVATION, pool.namespace, pool.name))
    return context.observations.note(pool, seen, context.now_ms())


def _pods(context: Context, pool: Key) -> list[Document]:
    """Those of the set: a copy made for debugging has the labels, but no such name."""
    return _members(context, "Pod", pool, pod_name(pool.name, 0)[:-1])


def _claims(context: Context, pool: Key) -> list[Document]:
    """Also those of brokers that were scaled away: they come back with their volume."""
    return _members(context, "PersistentVolumeClaim", pool, f"data-{pod_name(pool.name, 0)[:-1]}")


def _members(context: Context, kind: str, pool: Key, beginning: str) -> list[Document]:
    found = []
    for document in context.world.all(kind, pool.namespace):
        metadata = document["metadata"]
        number = metadata["name"].removeprefix(beginning)
        is_member = metadata["name"].startswith(beginning) and number.isdecimal()
        if is_member and (metadata.get("labels") or {}).get(POOL_LABEL) == pool.name:
            found.append(document)
    return found


def _fields(pool: Document, pods: Sequence[Document], facts: PoolFacts) -> dict[str, Any]:
    ready = sum(1 for pod in pods if is_ready(pod) and not is_terminating(pod))
    before = pool.get("status") or {}
    return {
        "replicas": len(pods),
        "readyReplicas": ready,
        "ready": f"{ready}/{facts.replicas}",
        "selector": selector_text(pod_selector(facts.pool.name)),
        **pool_counts(before, list(facts.observation.answers())),
    }
