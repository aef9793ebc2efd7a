"""What all kinds share: paused, finalizers, deletion. True means that nothing else is to do."""

from ibrik_api.desired import ApplyResult
from ibrik_operator import faults
from ibrik_operator.brokers import BrokersUnavailable
from ibrik_operator.conditions.condition import Verdict, Violation, summary
from ibrik_operator.conditions.reasons import Reason
from ibrik_operator.decisions.finalizers import (
    finalizers_of,
    has_finalizer,
    is_paused,
    is_released_unasked,
    wished,
    without_ours,
)
from ibrik_operator.desired.document import document
from ibrik_operator.keys import Document, Key
from ibrik_operator.kube import KubeForbidden
from ibrik_operator.reconcile.context import Context

HELD_BACK = (
    "the annotation ibrik.dev/paused keeps the data from being deleted. Remove it to delete the "
    "data, or set ibrik.dev/force-delete to true to keep the data and let the resource go."
)


async def is_held(context: Context, resource: Document) -> bool:
    """Whether the annotation keeps the operator from changing anything; the status says so."""
    if not is_paused(resource):
        return False
    before = (resource.get("status") or {}).get("conditions") or []
    # What was said of the generation that is in force stays so, and is said of that one only.
    kept = [one for one in before if one["type"] != "Reconciling"]
    message = "remove the annotation ibrik.dev/paused to let the operator follow the spec"
    held = Verdict("Reconciling", "False", Reason.PAUSED, message)
    await context.write_status(resource, _kept_fields(resource), [held], kept=kept)
    return True


async def has_finalizers_changed(context: Context, resource: Document) -> bool:
    """Ours is there where deleting deletes data; a change comes back as an event."""
    wish = wished(resource)
    if wish == finalizers_of(resource):
        return False
    await context.kube.set_finalizers(resource, wish)
    faults.reach("finalizer-added")
    return True


async def delete(context: Context, resource: Document, pool: Key | None) -> float | None:
    """Carry a deletion out at the brokers, then let the resource go."""
    if not has_finalizer(resource):
        return None
    pool_document = None if pool is None else context.world.get(pool)
    terminating = await _is_namespace_terminating(context, resource["metadata"]["namespace"])
    if not is_released_unasked(resource, pool=pool_document, is_namespace_terminating=terminating):
        assert pool is not None
        is_held_back = is_paused(resource)
        waits = HELD_BACK if is_held_back else await _ask_brokers(context, pool, resource)
        if waits is not None:
            violation = Violation(Reason.DELETION_WAITS, waits, is_stalled=is_held_back)
            await context.write_status(resource, _kept_fields(resource), summary([violation]))
            if is_held_back:
                return None  # Only a person can change it, which is news.
            raise BrokersUnavailable(waits)
    await context.kube.set_finalizers(resource, without_ours(resource))
    faults.reach("finalizer-released")
    return None


async def _ask_brokers(context: Context, pool: Key, resource: Document) -> str | None:
    """None when it is deleted there, or was never there; else why not."""
    try:
        outcome = await context.brokers.apply(pool, document(resource))
    except BrokersUnavailable as error:
        return f"the brokers have not confirmed the deletion: {error}"
    if outcome.result in {ApplyResult.REFUSED, ApplyResult.CONFLICT}:
        return outcome.detail or str(outcome.code)
    context.observations.note_gone(pool, Key.of(resource))
    return None


async def _is_namespace_terminating(context: Context, namespace: str) -> bool:
    """Without the right to read namespaces: unknown, so it is asked for as usual."""
    try:
        found = await context.kube.get(Key("Namespace", "", namespace))
    except KubeForbidden:
        return False
    return found is None or found["metadata"].get("deletionTimestamp") is not None


def _kept_fields(resource: Document) -> Document:
    status = resource.get("status") or {}
    return {
        name: value
        for name, value in status.items()
        if name not in {"conditions", "observedGeneration"}
    }
