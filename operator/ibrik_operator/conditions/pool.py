"""Conditions of a BrokerPool. Pure.

Ready = Accepted, ObjectsApplied, BrokersReady, MetadataReady and StorageAvailable. Scaled,
VolumesGrown and UpToDate inform: the pool serves meanwhile.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from ibrik_api.kubernetes import claim_name, ordinal_of, pod_name
from ibrik_api.quantities import format_quantity
from ibrik_operator.conditions.condition import Verdict, Violation, summary, verdict
from ibrik_operator.conditions.reasons import Reason
from ibrik_operator.documents import is_ready
from ibrik_operator.keys import Document, Key
from ibrik_operator.observations import PoolObservation

CRASHES = 3
"""Restarts after which a pod that is not ready counts as crash looping, between crashes too."""
VOLUME = ("persistentvolumeclaim", "storageclass", "unbound")
"""One of these is in what the scheduler says of a volume that is not there."""
IMAGE = frozenset({"ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull"})


@dataclass(frozen=True)
class PoolFacts:
    pool: Key
    replicas: int
    pods: Sequence[Document]
    observation: PoolObservation
    accepted: Violation | None = None
    applied: Violation | None = None
    scaled: Violation | None = None
    grown: Violation | None = None
    rolled: Violation | None = None


def pool_verdicts(facts: PoolFacts) -> list[Verdict]:
    brokers = _brokers(facts)
    metadata = _metadata(facts)
    storage = _storage(facts)
    return [
        *summary([facts.accepted, facts.applied, brokers, metadata, storage]),
        verdict("Accepted", facts.accepted),
        verdict("ObjectsApplied", facts.applied),
        verdict("BrokersReady", brokers),
        verdict("MetadataReady", metadata),
        verdict("StorageAvailable", storage),
        verdict("Scaled", facts.scaled),
        verdict("VolumesGrown", facts.grown),
        verdict("UpToDate", facts.rolled),
    ]


def _brokers(facts: PoolFacts) -> Violation | None:
    """Every broker that there shall be is ready and answers."""
    found = {pod["metadata"]["name"]: pod for pod in facts.pods}
    for ordinal in range(facts.replicas):
        name = pod_name(facts.pool.name, ordinal)
        pod = found.get(name)
        if pod is None or not is_ready(pod):
            return pod_trouble(facts.pool, name, pod)
    for seen in facts.observation.brokers:
        if seen.observed is None and seen.pod in found:
            return Violation(
                Reason.BROKER_SILENT, f"{seen.pod} is ready but does not answer: {seen.error}"
            )
    return None


def pod_trouble(pool: Key, name: str, pod: Document | None) -> Violation:
    """Why a pod is not ready, in the words of what a person does next."""
    if pod is None:
        return Violation(Reason.STARTING, f"{name} is not there yet")
    status = pod.get("status") or {}
    for container in status.get("containerStatuses") or []:
        trouble = _container_trouble(pool, name, container)
        if trouble is not None:
            return trouble
    scheduled = next(
        (one for one in status.get("conditions") or [] if one["type"] == "PodScheduled"), None
    )
    if scheduled is not None and scheduled["status"] == "False":
        return _unscheduled(pool, name, scheduled.get("message", ""))
    return Violation(Reason.STARTING, f"{name} is starting")


def _container_trouble(pool: Key, name: str, container: Document) -> Violation | None:
    waiting = (container.get("state") or {}).get("waiting") or {}
    reason = waiting.get("reason", "")
    if reason in IMAGE:
        return Violation(
            Reason.IMAGE_UNAVAILABLE,
            f"{name}: image {container.get('image')} cannot be pulled ({reason}). Correct "
            "spec.image, or give spec.imagePullSecrets.",
        )
    if reason == "CreateContainerConfigError":
        return Violation(Reason.SECRET_MISSING, f"{name}: {waiting.get('message', '')}")
    if reason == "CrashLoopBackOff" or container.get("restartCount", 0) >= CRASHES:
        return Violation(
            Reason.CRASH_LOOPING,
            f"{name} ended {container.get('restartCount', 0)} times. See why: kubectl -n "
            f"{pool.namespace} logs {name} --previous",
        )
    return None


def _unscheduled(pool: Key, name: str, message: str) -> Violation:
    if any(word in message.lower() for word in VOLUME):
        claim = claim_name(pool.name, ordinal_of(name))
        step = f"See: kubectl -n {pool.namespace} describe pvc {claim}"
        return Violation(Reason.CLAIM_PENDING, f"{name}: {message}. {step}")
    return Violation(Reason.UNSCHEDULABLE, f"{name}: {message}")


def _metadata(facts: PoolFacts) -> Violation | None:
    for broker in facts.observation.answers():
        if not broker.is_metadata_ready:
            return Violation(
                Reason.POSTGRES_UNREACHABLE,
                f"{broker.name} does not reach its {broker.metadata_store}. Publishing and reading "
                "go on; leases, cursors and changes wait. Check the database and its Secret.",
            )
    return None


def _storage(facts: PoolFacts) -> Violation | None:
    for broker in facts.observation.answers():
        if broker.is_storage_low:
            return Violation(
                Reason.STORAGE_LOW,
                f"{broker.name} has {format_quantity(broker.free_bytes)} free of "
                f"{format_quantity(broker.capacity_bytes)}; publishing is refused below "
                f"{format_quantity(broker.min_free_bytes)}. Raise spec.storage.size, or lower the "
                "retention of topics.",
            )
    return None
