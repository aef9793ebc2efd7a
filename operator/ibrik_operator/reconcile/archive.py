"""Archive jobs of a pool: each broker and schedule has its object, and stuck ones are made anew.

The key is that of the pool. Objects of the archive are looked at once a minute and not watched:
Spark's operator comes and goes with its definitions.
"""

from dataclasses import replace

from ibrik_api.errors import Refusal
from ibrik_api.kubernetes import claim_name
from ibrik_api.resources.pool import MAX_REPLICAS
from ibrik_operator.archives import Slot
from ibrik_operator.conditions.archive import Scheduling
from ibrik_operator.conditions.condition import Violation
from ibrik_operator.conditions.reasons import Reason
from ibrik_operator.credentials import missing_secret
from ibrik_operator.decisions.archiving import (
    is_archived,
    known_ordinals,
    leftovers,
    not_shareable,
    optimize_slots,
    report_slots,
    topics_of,
    wished_slots,
)
from ibrik_operator.decisions.dependents import ARCHIVE
from ibrik_operator.decisions.finalizers import is_paused
from ibrik_operator.desired.archive import archive_of, slot_name
from ibrik_operator.desired.spec import pool_spec
from ibrik_operator.documents import is_terminating
from ibrik_operator.keys import Document, Key
from ibrik_operator.kube import KubeForbidden
from ibrik_operator.naming import pool_of_topic
from ibrik_operator.reconcile.archive_objects import ArchiveObjects
from ibrik_operator.reconcile.context import Context

EVERY_ORDINAL = frozenset(range(MAX_REPLICAS))


async def reconcile(context: Context, key: Key) -> float | None:
    assert key.kind == ARCHIVE
    pool_key = Key("BrokerPool", key.namespace, key.name)
    pool = context.world.get(pool_key)
    if pool is None or is_terminating(pool):
        context.archives.forget(pool_key)
        return None  # What archives it has an owner, and goes with it; volumes of tables stay.
    if is_paused(pool):
        return None
    topics = [one for one in context.world.all("Topic", key.namespace) if _is_of(one, pool_key)]
    try:
        has_archive = pool_spec(pool).archive is not None
    except Refusal:
        return None  # The pool's own condition says so; what there is goes on.
    try:
        scheduling = await _carry_out(context, pool, pool_key, topics, has_archive=has_archive)
    except KubeForbidden as error:
        forbidden = Violation(Reason.FORBIDDEN, f"archive jobs of {key.name}: {error}")
        scheduling = {Key.of(one): Scheduling(obstacle=forbidden) for one in topics}
    for topic in context.archives.note(pool_key, scheduling):
        context.enqueue(topic)
    return context.settings.resync_ms / 1000 if has_archive or topics else None


async def _carry_out(
    context: Context, pool: Document, key: Key, topics: list[Document], *, has_archive: bool
) -> dict[Key, Scheduling]:
    observation = context.observations.of(key)
    objects = ArchiveObjects(context, pool)
    await objects.read()
    slots: list[Slot] = []
    scheduling: dict[Key, Scheduling] = {}
    if has_archive:
        archiving = wished_slots(key, topics, observation, is_suspended=_is_rolling(pool))
        slots = [
            *archiving,
            *optimize_slots(archive_of(pool), archiving),
            *report_slots(topics, observation, archiving),
        ]
    else:
        scheduling = {Key.of(one): Scheduling(obstacle=_no_target(key)) for one in topics}
    kept = []
    locked_out = await _missing_secret(context, pool) if slots else None
    for slot in slots:
        how = await _slot(context, objects, key, slot, locked_out)
        if how.obstacle is None or how.obstacle.reason != Reason.VOLUME_NOT_SHAREABLE:
            kept.append(slot_name(pool, slot))
        for topic in topics_of(slot, topics, observation):
            known = scheduling.get(topic)
            scheduling[topic] = how if known is None else known.beside(how)
    # Nobody has to be asked when nothing is archived any more.
    sure = known_ordinals(observation) if has_archive and topics else EVERY_ORDINAL
    for one in leftovers(objects.found(), kept, sure):
        await objects.remove(one)
    return _with_unknown(context, key, topics, scheduling)


async def _missing_secret(context: Context, pool: Document) -> Violation | None:
    """Without what opens the target no pod of a job begins, and nothing would say why."""
    secret, namespace = archive_of(pool).target.secret_ref, pool["metadata"]["namespace"]
    if secret is None or await context.kube.get(Key("Secret", namespace, secret.name)):
        return None
    return missing_secret(namespace, secret.name)


async def _slot(
    context: Context, objects: ArchiveObjects, key: Key, slot: Slot, locked_out: Violation | None
) -> Scheduling:
    name = claim_name(key.name, slot.ordinal)
    claim = context.world.get(Key("PersistentVolumeClaim", key.namespace, name))
    obstacle = not_shareable(key, slot.ordinal, claim) or locked_out
    if obstacle is not None:
        return Scheduling(obstacle=obstacle)
    how = await objects.bring_about(slot, context.archives.of(key))
    return replace(how, is_suspended=slot.is_suspended)


def _with_unknown(
    context: Context, pool: Key, topics: list[Document], scheduling: dict[Key, Scheduling]
) -> dict[Key, Scheduling]:
    """Topics of brokers that do not answer are as they were."""
    before = context.archives.of(pool).scheduling
    kept = {Key.of(one): before[Key.of(one)] for one in topics if Key.of(one) in before}
    return {**kept, **scheduling}


def _is_of(topic: Document, pool: Key) -> bool:
    return is_archived(topic) and pool_of_topic(topic) == pool


def _is_rolling(pool: Document) -> bool:
    """Brokers are being replaced: a job would hold a volume, or read beside one that starts."""
    conditions = (pool.get("status") or {}).get("conditions") or []
    return any(
        one["type"] == "UpToDate" and one["status"] == "False" and one["reason"] == Reason.ROLLING
        for one in conditions
    )


def _no_target(pool: Key) -> Violation:
    return Violation(
        Reason.NO_ARCHIVE_TARGET,
        f"BrokerPool '{pool.name}' has no spec.archive, so there is nowhere to write. Set "
        "spec.archive.target there, or archive.enabled to false here.",
        is_stalled=True,
    )
