"""Conditions of a Topic: Accepted, PoolReady, Provisioned, ConfigApplied, and Ready of all. Pure.

PoolReady, Provisioned and ConfigApplied stay true for a generation that the brokers have confirmed:
the loss of a broker shows on its BrokerPool, not on a thousand topics.
"""

from dataclasses import dataclass

from ibrik_operator.conditions.condition import Verdict, Violation, summary, verdict
from ibrik_operator.conditions.reasons import Reason
from ibrik_operator.conditions.serving import Serving, refusal_of
from ibrik_operator.keys import Key


@dataclass(frozen=True, slots=True)
class TopicFacts:
    pool: Key
    is_pool_there: bool
    is_pool_ready: bool
    topic_name: str
    rival: Key | None
    """The older Topic of the same topic name."""
    serving: Serving


def topic_verdicts(facts: TopicFacts) -> list[Verdict]:
    accepted = _accepted(facts)
    pool = None if facts.serving.is_confirmed else _pool(facts)
    provisioned = None if facts.serving.is_known else _provisioned(facts)
    applied = None if facts.serving.is_confirmed else accepted or pool or _provisioned(facts)
    return [
        *summary([accepted, pool, provisioned, applied]),
        verdict("Accepted", accepted),
        verdict("PoolReady", pool),
        verdict("Provisioned", provisioned),
        verdict("ConfigApplied", applied),
    ]


def _accepted(facts: TopicFacts) -> Violation | None:
    if facts.rival is not None:
        return Violation(
            Reason.CONFLICT,
            f"the topic name '{facts.topic_name}' belongs to Topic '{facts.rival.name}', which is "
            "older. Set another spec.topicName; deleting this Topic deletes nothing.",
            is_stalled=True,
        )
    return refusal_of(facts.serving)


def _pool(facts: TopicFacts) -> Violation | None:
    if not facts.is_pool_there:
        return Violation(
            Reason.POOL_NOT_FOUND,
            f"there is no BrokerPool '{facts.pool.name}' in namespace '{facts.pool.namespace}'. "
            "Create it, or name another in spec.pool.name.",
            is_stalled=True,
        )
    if not facts.is_pool_ready:
        return Violation(
            Reason.POOL_NOT_READY,
            f"BrokerPool '{facts.pool.name}' is not ready. See: kubectl -n {facts.pool.namespace} "
            f"describe brokerpools.ibrik.dev {facts.pool.name}",
        )
    return None


def _provisioned(facts: TopicFacts) -> Violation | None:
    return facts.serving.trouble or Violation(
        Reason.BROKERS_UNAVAILABLE, "the brokers have not been asked yet"
    )
