"""Makes one resource so at a pool, unless the brokers serve this very generation already."""

from ibrik_api.desired import ApplyResult
from ibrik_operator import events
from ibrik_operator.brokers import BrokersUnavailable
from ibrik_operator.conditions.serving import Serving, serving_of, unavailable
from ibrik_operator.desired.document import document
from ibrik_operator.keys import Document, Key
from ibrik_operator.reconcile.context import Context

ADOPTED = events.News(
    "Adopted", "it was kept when it was deleted, and is served again with what it held"
)


async def serve(context: Context, pool: Key, resource: Document, *, confirmed_by: str) -> Serving:
    """`confirmed_by` is the condition that says, once true, that a generation was confirmed."""
    seen = context.observations.serves(pool, resource)
    generation = resource["metadata"].get("generation", 0)
    if seen is not None and seen.generation == generation:
        return Serving(is_known=True, is_confirmed=True, status=seen.status)
    confirmed = was_confirmed(resource, confirmed_by)
    was_known = seen is not None or confirmed
    try:
        outcome = await context.brokers.apply(pool, document(resource))
    except BrokersUnavailable as error:
        return unavailable(str(error), was_known=was_known, was_confirmed=confirmed)
    serving = serving_of(outcome, was_known=was_known, was_confirmed=confirmed)
    if serving.is_confirmed and serving.trouble is None:
        context.observations.note_applied(pool, resource, serving.status)
    if outcome.result is ApplyResult.ADOPTED:
        await events.publish(context.kube, resource, [ADOPTED])
    return serving


def retry_if_needed(*servings: Serving) -> None:
    """Raises BrokersUnavailable for what did not work, so that the queue tries again."""
    for serving in servings:
        if serving.trouble is not None:
            raise BrokersUnavailable(serving.trouble.message)


def was_confirmed(resource: Document, type_: str) -> bool:
    """Whether its status says that the brokers confirmed this generation."""
    generation = resource["metadata"].get("generation", 0)
    return any(
        one["type"] == type_
        and one["status"] == "True"
        and one.get("observedGeneration") == generation
        for one in (resource.get("status") or {}).get("conditions") or []
    )
