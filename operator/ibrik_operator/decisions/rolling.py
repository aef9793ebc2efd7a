"""Which pod to replace next. Pure.

One at a time, sick ones first, and only while all others are ready and answer, and their metadata
store does. So a wrong image stops after one pod, and putting it back heals that pod.
"""

from collections.abc import Collection, Sequence
from typing import NamedTuple

from ibrik_api.kubernetes import CONFIG_HASH, DATABASE_HASH, ordinal_of
from ibrik_operator.conditions.condition import Violation
from ibrik_operator.conditions.reasons import Reason
from ibrik_operator.documents import is_ready, is_terminating
from ibrik_operator.keys import Document
from ibrik_operator.observations import PoolObservation


class Roll(NamedTuple):
    pod: Document | None = None
    """To delete now; its set makes it anew."""
    waits: Violation | None = None
    """Why the pool is not up to date yet."""


def roll(
    pods: Sequence[Document],
    replicas: int,
    wished: str,
    observation: PoolObservation,
    database: str = "",
) -> Roll:
    """`wished` is the digest that an up-to-date pod carries, `database` that of its database."""
    pods = sorted(pods, key=_ordinal, reverse=True)
    outdated = [pod for pod in pods if _digest(pod) != wished]
    if not outdated:
        return Roll()
    progress = Violation(
        Reason.ROLLING, f"{len(outdated)} of {replicas} pods are to be replaced, one at a time"
    )
    unready = [pod for pod in outdated if not is_ready(pod) and not is_terminating(pod)]
    if unready:  # Nothing is lost by replacing what does not serve.
        return Roll(unready[0], progress)
    if _is_under_way(pods, replicas, observation):
        return Roll(None, progress)
    silent = [pod for pod in pods if _uid(pod) not in _answering(observation)]
    first = silent[0] if len(silent) == 1 and silent[0] in outdated else outdated[0]
    others = [pod for pod in silent if pod is not first]
    # A broker with a former address may be cut off for just that: only a new one is to be heard.
    former = {_uid(pod) for pod in pods if _annotation(pod, DATABASE_HASH) not in {None, database}}
    obstacle = _obstacle(pods, others, observation, former)
    if obstacle is None:
        return Roll(first, progress)
    sentence = f"{len(outdated)} of {replicas} pods wait to be replaced until {obstacle}"
    return Roll(None, Violation(Reason.ROLL_WAITS, sentence))


def _is_under_way(pods: Sequence[Document], replicas: int, observation: PoolObservation) -> bool:
    """One goes, comes, or has come so lately that nobody asked it yet."""
    asked = {seen.uid for seen in observation.brokers}
    return (
        len(pods) < replicas
        or any(map(is_terminating, pods))
        or any(is_ready(pod) and _uid(pod) not in asked for pod in pods)
    )


def _obstacle(
    pods: Sequence[Document],
    silent: Sequence[Document],
    observation: PoolObservation,
    former: Collection[str],
) -> str | None:
    """What has to be so before a pod that works is taken away."""
    sick = next((pod for pod in pods if not is_ready(pod)), None)
    if sick is not None:
        name = _name(sick)
        namespace = sick["metadata"]["namespace"]
        return f"{name} is ready. See: kubectl -n {namespace} describe pod {name}"
    if silent:
        return f"{', '.join(map(_name, silent))} answers"
    for seen in observation.brokers:
        is_cut_off = seen.observed is not None and not seen.observed.broker.is_metadata_ready
        if is_cut_off and seen.uid not in former:
            return "the database answers"
    return None


def _answering(observation: PoolObservation) -> set[str]:
    return {seen.uid for seen in observation.brokers if seen.observed is not None}


def _uid(pod: Document) -> str:
    return str(pod["metadata"]["uid"])


def _name(pod: Document) -> str:
    return str(pod["metadata"]["name"])


def _digest(pod: Document) -> str | None:
    return _annotation(pod, CONFIG_HASH)


def _annotation(pod: Document, name: str) -> str | None:
    return (pod["metadata"].get("annotations") or {}).get(name)


def _ordinal(pod: Document) -> int:
    return ordinal_of(pod["metadata"]["name"])
