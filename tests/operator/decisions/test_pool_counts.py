"""The numbers in the status of a pool change only when they say something."""

from ibrik_api.observed import ObservedBroker
from ibrik_operator.decisions.pool_counts import pool_counts
from tests.support.pool_documents import GIB, broker


def seen(**facts: object) -> ObservedBroker:
    observed = broker(0, **facts).observed
    assert observed is not None
    return observed.broker


def test_all_brokers_count_and_the_lowest_version_is_told() -> None:
    brokers = [seen(version="1.10", topics=["a"]), seen(version="1.9", topics=["a", "b"])]
    assert pool_counts({}, brokers) == {
        "version": "1.9",
        "metadataStore": "postgres",
        "storage": {"capacityBytes": 20 * GIB, "usedBytes": 2 * GIB},
        "topics": 2,
    }


def test_how_full_it_is_is_told_anew_after_a_tenth() -> None:
    before = pool_counts({}, [seen()])
    little, much = seen(free_bytes=9 * GIB - GIB // 20), seen(free_bytes=9 * GIB - GIB // 5)
    assert pool_counts(before, [little]) == before
    assert pool_counts(before, [much])["storage"]["usedBytes"] == GIB + GIB // 5


def test_a_volume_that_grew_is_told_at_once() -> None:
    before = pool_counts({}, [seen()])
    grown = seen(capacity_bytes=11 * GIB, free_bytes=10 * GIB)
    assert pool_counts(before, [grown])["storage"]["capacityBytes"] == 11 * GIB


def test_nothing_is_forgotten_while_no_broker_answers() -> None:
    before = pool_counts({}, [seen()])
    assert pool_counts(before, []) == before
