"""Conditions of a Subscription: TopicResolved, DestinationResolved, DataPlaneReady, Ready. Pure.

DataPlaneReady means that the brokers confirmed this generation. Once true for a generation it stays
true: brokers load what they confirmed before they are ready.
"""

from dataclasses import dataclass

from ibrik_operator.conditions.condition import Verdict, Violation, summary, verdict
from ibrik_operator.conditions.reasons import Reason
from ibrik_operator.conditions.serving import Serving, refusal_of
from ibrik_operator.keys import Key


@dataclass(frozen=True, slots=True)
class SubscriptionFacts:
    topic: Key
    is_topic_there: bool
    is_topic_ready: bool
    channel: Key | None
    """None: it delivers to no Channel."""
    is_channel_there: bool
    is_channel_allowed: bool
    namespace: str
    credentials: Violation | None
    """Of a destination that is written inline."""
    serving: Serving


def subscription_verdicts(facts: SubscriptionFacts) -> list[Verdict]:
    topic = None if facts.is_topic_there and facts.serving.is_confirmed else _topic(facts)
    destination = _destination(facts)
    data_plane = None if facts.serving.is_confirmed else _data_plane(facts, topic, destination)
    return [
        *summary([topic, destination, data_plane]),
        verdict("TopicResolved", topic),
        verdict("DestinationResolved", destination),
        verdict("DataPlaneReady", data_plane),
    ]


def _topic(facts: SubscriptionFacts) -> Violation | None:
    topic = facts.topic
    if not facts.is_topic_there:
        return Violation(
            Reason.TOPIC_NOT_FOUND,
            f"there is no Topic '{topic.name}' in namespace '{topic.namespace}'. Create it, or "
            "create this Subscription with another topicRef.",
            is_stalled=True,
        )
    if not facts.is_topic_ready:
        return Violation(
            Reason.TOPIC_NOT_READY,
            f"Topic '{topic.name}' is not ready. See: kubectl -n {topic.namespace} describe "
            f"topics.ibrik.dev {topic.name}",
        )
    return None


def _destination(facts: SubscriptionFacts) -> Violation | None:
    channel = facts.channel
    if channel is None:
        return facts.credentials
    if not facts.is_channel_there:
        return Violation(
            Reason.DESTINATION_NOT_FOUND,
            f"there is no Channel '{channel.name}' in namespace '{channel.namespace}'. Create it, "
            "or name another in spec.channelRef.",
            is_stalled=True,
        )
    if not facts.is_channel_allowed:
        return Violation(
            Reason.DESTINATION_NOT_ALLOWED,
            f"Channel '{channel.name}' of namespace '{channel.namespace}' does not allow "
            f"namespace '{facts.namespace}'. Set its allowedNamespaces to All, or name a Channel "
            "of this namespace.",
            is_stalled=True,
        )
    return None


def _data_plane(
    facts: SubscriptionFacts, topic: Violation | None, destination: Violation | None
) -> Violation | None:
    return (
        refusal_of(facts.serving)
        or topic
        or destination
        or facts.serving.trouble
        or Violation(Reason.BROKERS_UNAVAILABLE, "the brokers have not been asked yet")
    )
