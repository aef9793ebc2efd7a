"""Conditions of a Channel: Resolved, CredentialsValid, MetadataStored, and Ready. Pure."""

from dataclasses import dataclass

from ibrik_operator.conditions.condition import Verdict, Violation, summary, verdict
from ibrik_operator.conditions.reasons import Reason
from ibrik_operator.conditions.serving import Serving, refusal_of
from ibrik_operator.keys import Key


@dataclass(frozen=True, slots=True)
class ChannelFacts:
    channel: Key
    credentials: Violation | None
    servings: tuple[Serving, ...]
    """At each pool that serves it."""


def channel_verdicts(facts: ChannelFacts) -> list[Verdict]:
    resolved = next(filter(None, map(refusal_of, facts.servings)), None)
    stored = _stored(facts)
    return [
        *summary([resolved, facts.credentials, stored]),
        verdict("Resolved", resolved),
        verdict("CredentialsValid", facts.credentials),
        verdict("MetadataStored", stored),
    ]


def _stored(facts: ChannelFacts) -> Violation | None:
    """Stored at every pool, at this generation."""
    if not facts.servings:
        return Violation(
            Reason.NOT_USED,
            f"no pool serves Channel '{facts.channel.name}' yet. Name it in a Subscription, or "
            f"create a Topic in namespace '{facts.channel.namespace}'.",
        )
    for serving in facts.servings:
        if not serving.is_confirmed:
            return (
                refusal_of(serving)
                or serving.trouble
                or Violation(Reason.BROKERS_UNAVAILABLE, "the brokers have not been asked yet")
            )
    return None
