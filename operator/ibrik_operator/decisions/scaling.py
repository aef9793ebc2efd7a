"""How many brokers a set shall have. Pure.

Up is always fine. Down only while no broker that would go owns a topic: topics are never moved.
"""

from collections.abc import Sequence

from ibrik_api.kubernetes import claim_name, pod_name
from ibrik_operator.conditions.condition import Violation
from ibrik_operator.conditions.reasons import Reason
from ibrik_operator.keys import Document, Key
from ibrik_operator.observations import PoolObservation

SHOWN = 3


def scale(
    pool: Key,
    wished: int,
    current: int | None,
    observation: PoolObservation,
    claims: Sequence[Document],
) -> tuple[int, Violation | None]:
    """The number to apply, and why it is not the wished one. `current` None: there is no set."""
    if current is None or wished >= current:
        return wished, None
    seen = {one.pod: one.observed for one in observation.brokers}
    unbound = {one["metadata"]["name"] for one in claims if _is_unbound(one)}
    for ordinal in range(current - 1, wished - 1, -1):
        pod = pod_name(pool.name, ordinal)
        if claim_name(pool.name, ordinal) in unbound:
            continue  # It never had a volume, so it has no topics.
        observed = seen.get(pod)
        if observed is None:
            return ordinal + 1, Violation(
                Reason.SCALE_DOWN_UNSURE,
                f"broker {pod} does not answer, so nobody knows which topics it owns. Wait until "
                f"it answers, or set spec.replicas to {ordinal + 1}.",
            )
        topics = sorted(observed.broker.topics)
        if topics:
            more = f" and {len(topics) - SHOWN} more" if len(topics) > SHOWN else ""
            return ordinal + 1, Violation(
                Reason.BROKER_OWNS_TOPICS,
                f"broker {pod} owns {', '.join(topics[:SHOWN])}{more}. Delete them with their "
                f"data, or set spec.replicas to {ordinal + 1}.",
            )
    return wished, None


def _is_unbound(claim: Document) -> bool:
    return (claim.get("status") or {}).get("phase") == "Pending"
