"""How many brokers a set has: more at once, fewer only when nothing is lost to those who read."""

import pytest

from ibrik_operator.decisions.scaling import scale
from ibrik_operator.keys import Key
from ibrik_operator.observations import PoolObservation
from tests.support.pool_documents import broker, claim, observation, silent

POOL = Key("BrokerPool", "shop", "default")
NOTHING_SEEN = PoolObservation()
BOUND = [claim(ordinal, size="1Gi", capacity="1Gi") for ordinal in range(9)]


@pytest.mark.parametrize(("wished", "current"), [(1, None), (3, None), (1, 1), (3, 1), (9, 3)])
def test_more_or_as_many_is_always_fine(wished: int, current: int | None) -> None:
    assert scale(POOL, wished, current, NOTHING_SEEN, BOUND) == (wished, None)


def test_brokers_without_topics_may_go() -> None:
    seen = observation(broker(0, topics=["orders"]), broker(1), broker(2))
    assert scale(POOL, 1, 3, seen, BOUND) == (1, None)


def test_a_broker_that_owns_topics_keeps_its_place_and_is_named_with_them() -> None:
    seen = observation(broker(0), broker(1, topics=["clicks", "billing", "a", "z"]), broker(2))
    replicas, violation = scale(POOL, 1, 3, seen, BOUND)
    assert replicas == 2  # The third one owns nothing.
    assert violation is not None
    assert violation.reason == "BrokerOwnsTopics"
    assert "ibrik-default-1 owns a, billing, clicks and 1 more" in violation.message
    assert "spec.replicas to 2" in violation.message


@pytest.mark.parametrize(
    "seen", [NOTHING_SEEN, observation(broker(0), silent(1))], ids=["nobody asked", "no answer"]
)
def test_doubt_keeps_a_broker(seen: PoolObservation) -> None:
    replicas, violation = scale(POOL, 1, 2, seen, BOUND)
    assert replicas == 2
    assert violation is not None
    assert violation.reason == "ScaleDownUnsure"
    assert "ibrik-default-1 does not answer" in violation.message


def test_a_broker_that_never_had_a_volume_owns_nothing() -> None:
    claims = [*BOUND[:1], claim(1, size="1Gi", capacity=None)]
    assert scale(POOL, 1, 2, observation(broker(0), silent(1)), claims) == (1, None)
