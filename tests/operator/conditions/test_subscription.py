"""A Subscription is ready when topic and destination are there and the brokers confirmed it."""

from dataclasses import replace

import pytest

from ibrik_operator.conditions.condition import Violation
from ibrik_operator.conditions.reasons import REASONS, Reason
from ibrik_operator.conditions.serving import Serving
from ibrik_operator.conditions.subscription import SubscriptionFacts, subscription_verdicts
from ibrik_operator.keys import Key

CONFIRMED = Serving(is_known=True, is_confirmed=True, status={})
FINE = SubscriptionFacts(
    topic=Key("Topic", "shop", "orders"),
    is_topic_there=True,
    is_topic_ready=True,
    channel=Key("Channel", "shop", "billing"),
    is_channel_there=True,
    is_channel_allowed=True,
    namespace="shop",
    credentials=None,
    serving=CONFIRMED,
)
NEW = replace(FINE, serving=Serving())
GONE = replace(FINE, is_channel_there=False, is_channel_allowed=False)
TYPES = [
    "Ready",
    "Reconciling",
    "Stalled",
    "TopicResolved",
    "DestinationResolved",
    "DataPlaneReady",
]


def judged(facts: SubscriptionFacts) -> dict[str, str]:
    found = subscription_verdicts(facts)
    assert [one.type for one in found] == TYPES
    assert all(one.reason in REASONS for one in found)
    return {one.type: one.status if one.status == "True" else one.reason for one in found}


@pytest.mark.parametrize(
    ("facts", "topic", "destination", "data_plane"),
    [
        (FINE, "True", "True", "True"),
        (replace(FINE, channel=None, is_channel_there=False), "True", "True", "True"),
        (NEW, "True", "True", "BrokersUnavailable"),
        (
            replace(NEW, is_topic_there=False, is_topic_ready=False),
            "TopicNotFound", "True", "TopicNotFound",
        ),
        (replace(NEW, is_topic_ready=False), "TopicNotReady", "True", "TopicNotReady"),
        (replace(GONE, serving=Serving()), "True", "DestinationNotFound", "DestinationNotFound"),
        (
            replace(NEW, is_channel_allowed=False),
            "True", "DestinationNotAllowed", "DestinationNotAllowed",
        ),
        # What was confirmed stays confirmed; what it needs may be gone since.
        (replace(FINE, is_topic_ready=False), "True", "True", "True"),
        (replace(FINE, is_topic_there=False), "TopicNotFound", "True", "True"),
        (GONE, "True", "DestinationNotFound", "True"),
        (replace(FINE, is_channel_allowed=False), "True", "DestinationNotAllowed", "True"),
    ],
)  # fmt: skip
def test_each_aspect_has_its_own_reason(
    facts: SubscriptionFacts, topic: str, destination: str, data_plane: str
) -> None:
    found = judged(facts)
    assert (found["TopicResolved"], found["DestinationResolved"], found["DataPlaneReady"]) == (
        topic,
        destination,
        data_plane,
    )
    first = next((r for r in (topic, destination, data_plane) if r != "True"), "True")
    assert found["Ready"] == first


def test_the_sentences_say_the_next_step() -> None:
    assert subscription_verdicts(GONE)[0].message == (
        "there is no Channel 'billing' in namespace 'shop'. Create it, or name another in "
        "spec.channelRef."
    )
    foreign = replace(FINE, channel=Key("Channel", "tools", "mail"), is_channel_allowed=False)
    assert subscription_verdicts(foreign)[0].message == (
        "Channel 'mail' of namespace 'tools' does not allow namespace 'shop'. Set its "
        "allowedNamespaces to All, or name a Channel of this namespace."
    )
    lost = replace(FINE, is_topic_there=False)
    assert subscription_verdicts(lost)[0].message == (
        "there is no Topic 'orders' in namespace 'shop'. Create it, or create this Subscription "
        "with another topicRef."
    )


def test_secrets_of_an_inline_destination_count_as_the_destination() -> None:
    missing = Violation(Reason.SECRET_MISSING, "there is no Secret 'token'.")
    facts = replace(FINE, channel=None, credentials=missing)
    assert judged(facts)["DestinationResolved"] == "SecretMissing"
