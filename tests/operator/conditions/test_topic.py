"""A Topic is ready when the brokers confirmed it; else the first reason says what to do."""

from dataclasses import replace

import pytest

from ibrik_api.desired import ApplyResult, Outcome
from ibrik_operator.conditions.condition import Violation
from ibrik_operator.conditions.reasons import REASONS, Reason
from ibrik_operator.conditions.serving import Serving
from ibrik_operator.conditions.topic import TopicFacts, topic_verdicts
from ibrik_operator.keys import Key

CONFIRMED = Serving(is_known=True, is_confirmed=True, status={})
SILENT = Violation(Reason.BROKERS_UNAVAILABLE, "default has no pods yet")
REFUSED = Outcome(
    kind="Topic",
    namespace="shop",
    name="orders",
    result=ApplyResult.REFUSED,
    code="unsupported-field",
    detail="spec.quota is not served yet. Leave it out.",
)
FINE = TopicFacts(
    pool=Key("BrokerPool", "shop", "default"),
    is_pool_there=True,
    is_pool_ready=True,
    topic_name="orders",
    rival=None,
    serving=CONFIRMED,
)
NEW = replace(FINE, serving=Serving())
TYPES = ["Ready", "Reconciling", "Stalled", "Accepted", "PoolReady", "Provisioned", "ConfigApplied"]


def judged(facts: TopicFacts) -> dict[str, str]:
    """`True`, or the reason why not."""
    return {v.type: v.status if v.status == "True" else v.reason for v in topic_verdicts(facts)}


def test_all_is_fine_when_the_brokers_confirmed_it() -> None:
    assert [v.type for v in topic_verdicts(FINE)] == TYPES
    assert judged(FINE) == {
        "Ready": "True",
        "Reconciling": "Ready",
        "Stalled": "Ready",
        "Accepted": "True",
        "PoolReady": "True",
        "Provisioned": "True",
        "ConfigApplied": "True",
    }


@pytest.mark.parametrize(
    ("facts", "ready", "aspect", "is_stalled"),
    [
        (replace(NEW, rival=Key("Topic", "shop", "old")), "Conflict", "Accepted", True),
        (replace(NEW, serving=Serving(refusal=REFUSED)), "SpecRefused", "Accepted", True),
        (replace(NEW, is_pool_there=False, is_pool_ready=False), "PoolNotFound", "PoolReady", True),
        (replace(NEW, is_pool_ready=False), "PoolNotReady", "PoolReady", False),
        (replace(NEW, serving=Serving(trouble=SILENT)), "BrokersUnavailable", "Provisioned", False),
    ],
)
def test_the_first_reason_is_the_one_that_people_see(
    facts: TopicFacts, ready: str, aspect: str, is_stalled: bool
) -> None:
    found = judged(facts)
    assert found["Ready"] == found[aspect] == ready
    assert (found["Stalled"] == "True") is is_stalled
    assert (found["Reconciling"] == "True") is not is_stalled
    assert found["ConfigApplied"] != "True"
    assert all(v.reason in REASONS for v in topic_verdicts(facts))


@pytest.mark.parametrize(
    "facts",
    [
        replace(FINE, is_pool_ready=False),
        replace(FINE, serving=replace(CONFIRMED, trouble=SILENT)),
        replace(FINE, is_pool_there=False, is_pool_ready=False),
    ],
)
def test_the_loss_of_brokers_shows_on_their_pool_alone(facts: TopicFacts) -> None:
    assert judged(facts)["Ready"] == "True"


def test_a_newer_spec_that_is_refused_leaves_the_topic_provisioned() -> None:
    found = judged(replace(FINE, serving=Serving(is_known=True, refusal=REFUSED)))
    assert (found["Ready"], found["Provisioned"]) == ("SpecRefused", "True")
    assert found["ConfigApplied"] == "SpecRefused"


@pytest.mark.parametrize(
    ("facts", "sentence"),
    [
        (
            replace(NEW, rival=Key("Topic", "shop", "old")),
            "the topic name 'orders' belongs to Topic 'old', which is older. Set another "
            "spec.topicName; deleting this Topic deletes nothing.",
        ),
        (
            replace(NEW, is_pool_there=False, is_pool_ready=False),
            "there is no BrokerPool 'default' in namespace 'shop'. Create it, or name another in "
            "spec.pool.name.",
        ),
        (
            replace(NEW, is_pool_ready=False),
            "BrokerPool 'default' is not ready. See: kubectl -n shop describe "
            "brokerpools.ibrik.dev default",
        ),
        (replace(NEW, serving=Serving(refusal=REFUSED)), REFUSED.detail),
    ],
)
def test_the_sentence_says_the_next_step(facts: TopicFacts, sentence: str) -> None:
    assert topic_verdicts(facts)[0].message == sentence
